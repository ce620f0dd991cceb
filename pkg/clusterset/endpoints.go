// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Slice is an EndpointSlice of an exporter, with only the fields that are published (spec D6).
type Slice struct {
	Cluster ClusterID
	// ID identifies the slice among those of one service in one cluster. It is the SliceID of the source slice's name.
	ID string
	// Network is the network in which the addresses exist; empty for the default one.
	Network     string
	AddressType discoveryv1.AddressType
	Ports       []EndpointPort
	Endpoints   []Endpoint
	// Local is set for the slices of the local Service in the cluster's own import.
	Local bool
	// Listen are the listening ports of the gateways by the numbers of the Service ports that they lead to; nil if the endpoints are not
	// gateways (G2).
	Listen map[int32]int32
	// Available is the number of available endpoints of the source if the slice lists more gateways than that; otherwise 0.
	Available int
	// Trigger is the time of the change that caused this version of the slice, in its source cluster; zero if unknown. It is used
	// for metrics only: slices that differ only in it are equal.
	Trigger time.Time
}

// The maximum that one cluster can export for one service (decision 1). The limits exist because every importer writes each
// change of the exporter.
const (
	MaxSlices    = 1000
	MaxEndpoints = 10_000
)

// Bounded returns the slices of one cluster and service, in their order, before the first one that exceeds MaxSlices or
// MaxEndpoints, and an error that describes the others; nil if there are none. count returns the number of endpoints of a slice.
func Bounded[T any](slices []T, count func(T) int) ([]T, error) {
	endpoints := 0
	for i, slice := range slices {
		endpoints += count(slice)
		if i < MaxSlices && endpoints <= MaxEndpoints {
			continue
		}
		for _, surplus := range slices[i+1:] {
			endpoints += count(surplus)
		}
		return slices[:i:i], fmt.Errorf("%d of %d slices: a cluster contributes at most %d slices and %d endpoints to a service, and these have %d",
			len(slices)-i, len(slices), MaxSlices, MaxEndpoints, endpoints)
	}
	return slices, nil
}

// Count returns the number of endpoints of the slice.
func (s Slice) Count() int { return len(s.Endpoints) }

// EndpointPort is a port on which endpoints listen. Its name is that of the Service port.
type EndpointPort struct {
	Name     string
	Protocol corev1.Protocol
	// Port is 0 if the source slice does not set it.
	Port        int32
	AppProtocol string
}

// Endpoint is one endpoint of a slice. Its strings are empty if the source does not set them.
type Endpoint struct {
	Addresses []string
	Hostname  string
	Zone      string
	// NodeName is set for local endpoints only (spec D6).
	NodeName                    string
	Ready, Serving, Terminating Condition
}

// IsReady reports whether the endpoint takes new traffic. Unset means ready, as in discovery.k8s.io/v1.
func (e Endpoint) IsReady() bool { return e.Ready != False }

// Condition is a condition of an endpoint: an optional bool.
type Condition uint8

// The three states of a Condition.
const (
	Unset Condition = iota
	True
	False
)

// ConditionOf returns the Condition for an optional bool.
func ConditionOf(b *bool) Condition {
	switch {
	case b == nil:
		return Unset
	case *b:
		return True
	default:
		return False
	}
}

// Pointer returns the optional bool for c; nil for Unset.
func (c Condition) Pointer() *bool {
	if c == Unset {
		return nil
	}
	return new(c == True)
}
