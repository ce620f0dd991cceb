// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package balance spreads the streams to a service over its endpoints (G3).
package balance

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Endpoints are the available endpoints of a service.
type Endpoints struct {
	Addresses []netip.AddrPort
	// Permit returns why no connection to an address is allowed; nil if one is. It is nil if all are.
	Permit func(netip.AddrPort) error
	// Affinity is set if the service has session affinity: a client gets the same endpoint at every gateway of the cluster.
	Affinity bool
	// HasProxyHeader is set if connections to them begin with a PROXY protocol header (G14).
	HasProxyHeader bool
}

// Balancer counts the streams to each endpoint.
type Balancer struct {
	mu      sync.Mutex
	streams map[netip.AddrPort]int
}

// Order returns the endpoints in the order in which to try them: first the less loaded of two, or with affinity the one of the client,
// which is the highest by rendezvous hash (G3).
func (b *Balancer) Order(endpoints Endpoints, cluster clusterset.ClusterID, client netip.Addr) []netip.AddrPort {
	result := slices.Clone(endpoints.Addresses)
	if endpoints.Affinity {
		weights := make(map[netip.AddrPort]uint64, len(result))
		for _, endpoint := range result {
			sum := sha256.Sum256([]byte(string(cluster) + " " + client.String() + " " + endpoint.String()))
			weights[endpoint] = binary.BigEndian.Uint64(sum[:])
		}
		slices.SortFunc(result, func(x, y netip.AddrPort) int {
			return cmp.Or(cmp.Compare(weights[y], weights[x]), x.Compare(y))
		})
		return result
	}
	rand.Shuffle(len(result), func(i, j int) { result[i], result[j] = result[j], result[i] })
	if len(result) > 1 && b.load(result[1]) < b.load(result[0]) {
		result[0], result[1] = result[1], result[0]
	}
	return result
}

func (b *Balancer) load(endpoint netip.AddrPort) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.streams[endpoint]
}

// Enter counts a stream to an endpoint until the result is called.
func (b *Balancer) Enter(endpoint netip.AddrPort) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.streams == nil {
		b.streams = map[netip.AddrPort]int{}
	}
	b.streams[endpoint]++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.streams[endpoint]--
		if b.streams[endpoint] == 0 {
			delete(b.streams, endpoint)
		}
	}
}
