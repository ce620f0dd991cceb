// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/controllers/sources"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/reach"
)

const (
	// probeInterval is the time between two probes of a gateway, and the timeout of one.
	probeInterval = time.Second
	// probeFailures is after how many failures in a row a gateway is not used.
	probeFailures = 3
	probePort     = 8081
)

// probeClient uses no proxy, which the environment of the agent may name.
var probeClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Prober probes the gateways of this cluster each second, because the kubelet of a node that has died does not say that its pods are
// not ready (G8).
type Prober struct {
	Sources sources.Reader
	Reach   *reach.Reach
	// Port is that of the readiness check of gateways; 0 means 8081.
	Port int

	failures map[string]int // in a row, by address
}

// NeedLeaderElection returns true: only the leader writes slices.
func (p *Prober) NeedLeaderElection() bool { return true }

// Start probes until ctx ends.
func (p *Prober) Start(ctx context.Context) error {
	p.failures = map[string]int{}
	wait.UntilWithContext(ctx, p.probe, probeInterval)
	return nil
}

// probe probes each ready gateway once.
func (p *Prober) probe(ctx context.Context) {
	gateways, err := p.Sources.LocalSlices(ctx, p.Sources.GatewayService())
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot probe the gateways")
		return
	}
	addresses := sets.New[string]()
	for _, slice := range gateways {
		for _, endpoint := range slice.Endpoints {
			if endpoint.IsReady() {
				addresses.Insert(endpoint.Addresses...)
			}
		}
	}
	p.count(addresses, p.failed(ctx, sets.List(addresses)))
}

// count counts the failures, and says which gateways do not answer.
func (p *Prober) count(probed, failed sets.Set[string]) {
	before := p.failures
	p.failures = map[string]int{}
	unanswering := sets.New[string]()
	for address := range probed.Intersection(failed) {
		p.failures[address] = before[address] + 1
		if p.failures[address] >= probeFailures {
			unanswering.Insert(address)
		}
	}
	p.Reach.SetUnanswering(unanswering)
}

// failed returns which of the addresses do not answer in time.
func (p *Prober) failed(ctx context.Context, addresses []string) sets.Set[string] {
	ctx, cancel := context.WithTimeout(ctx, probeInterval)
	defer cancel()
	errs := make([]error, len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		all.Go(func() { errs[i] = p.ready(ctx, address) })
	}
	all.Wait()
	result := sets.New[string]()
	for i, err := range errs {
		if err != nil {
			result.Insert(addresses[i])
		}
	}
	return result
}

// ready returns nil if a gateway says that it is ready.
func (p *Prober) ready(ctx context.Context, address string) error {
	port := p.Port
	if port == 0 {
		port = probePort
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(address, strconv.Itoa(port))+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := probeClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}
