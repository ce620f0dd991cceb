// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Slice is one EndpointSlice of a source cluster, reduced to what crosses clusters (spec D6).
type Slice struct {
	Cluster ClusterID
	// ID tells the slices of one service in one cluster apart. It is SliceID of the source slice's name.
	ID          string
	AddressType discoveryv1.AddressType
	Ports       []EndpointPort
	Endpoints   []Endpoint
	// Trigger is when the change that this slice reflects happened in its source cluster; zero if unknown.
	// It is for measuring only: two slices that differ in nothing else are the same.
	Trigger time.Time
}

// What one cluster may contribute to one service at most (design decision 4): each of its changes is written in every
// other cluster.
const (
	MaxSlices    = 1000
	MaxEndpoints = 10_000
)

// Bounded returns the slices of one cluster and service, in their order, up to the one that exceeds MaxSlices or
// MaxEndpoints, and an error that says what is left out; nil where nothing is. count returns how many endpoints a slice has,
// in whatever form it is.
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

// Count returns how many endpoints the slice has.
func (s Slice) Count() int { return len(s.Endpoints) }

// EndpointPort is a port that endpoints listen on. Its name is that of the Service port it belongs to.
type EndpointPort struct {
	Name     string
	Protocol corev1.Protocol
	// Port is 0 where the source slice leaves it open.
	Port        int32
	AppProtocol string
}

// Endpoint is one backend. Its strings are empty where the source says nothing.
type Endpoint struct {
	Addresses []string
	Hostname  string
	Zone      string
	// NodeName is known for the cluster's own endpoints only (spec D6).
	NodeName                    string
	Ready, Serving, Terminating Condition
}

// IsReady reports whether the endpoint takes new traffic. Unset means ready, as in discovery.k8s.io/v1.
func (e Endpoint) IsReady() bool { return e.Ready != False }

// Condition is a condition of an endpoint as its source wrote it: a bool that may be absent.
type Condition uint8

// The three states of a Condition.
const (
	Unset Condition = iota
	True
	False
)

// ConditionOf returns the Condition that an optional bool stands for.
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

// Pointer returns the optional bool that c stands for: nil for Unset.
func (c Condition) Pointer() *bool {
	if c == Unset {
		return nil
	}
	return new(c == True)
}
