// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package preference

import (
	"cmp"
	"maps"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ReturnDelay is how long a better level must have been available without interruption before it serves again, so that an endpoint
// that becomes available and unavailable again and again does not move the traffic each time.
const ReturnDelay = 10 * time.Second

// Port is a port of a merged service, by its merged name, in one address family.
type Port struct {
	Name   string
	Family discoveryv1.AddressType
}

// Availability says which endpoints a source has for a port. Greater is better.
type Availability int

// The values of Availability.
const (
	// Unavailable: none that kube-proxy uses.
	Unavailable Availability = iota
	// Terminating: only terminating endpoints that still serve, which kube-proxy uses if no endpoint is ready.
	Terminating
	// Ready: at least one ready endpoint.
	Ready
)

// AvailabilityOf returns the best availability of endpoints.
func AvailabilityOf(endpoints []clusterset.Endpoint) Availability {
	result := Unavailable
	for _, e := range endpoints {
		switch {
		case e.IsReady():
			return Ready
		case e.Serving != clusterset.False && e.Terminating == clusterset.True:
			result = Terminating
		}
	}
	return result
}

// AvailabilityOfMirrored returns the best availability of the endpoints of a mirrored slice, which may be condensed.
func AvailabilityOfMirrored(endpoints []discoveryv1.Endpoint) Availability {
	result := Unavailable
	for i := range endpoints {
		c := endpoints[i].Conditions
		result = max(result, AvailabilityOf([]clusterset.Endpoint{{
			Ready: clusterset.ConditionOf(c.Ready), Serving: clusterset.ConditionOf(c.Serving), Terminating: clusterset.ConditionOf(c.Terminating),
		}}))
	}
	return result
}

// Offer is a port that a source can serve.
type Offer struct {
	Port
	// Level is the index of the source of the policy. The first level is the best.
	Level        int
	Availability Availability
}

// Return is a level that is better than the one that serves a port, and available.
type Return struct {
	Port
	Level int
}

// Chosen is the level that serves a port, and what it has for the port.
type Chosen struct {
	Level        int
	Availability Availability
}

// Choice says which level serves each port.
type Choice struct {
	Ports map[Port]Chosen
	// Waiting are the levels that may serve later, and Wait is the time until the first of them does; 0 if there is none.
	Waiting []Return
	Wait    time.Duration
}

// Serves reports whether a level serves a port.
func (c Choice) Serves(port Port, level int) bool {
	chosen, ok := c.Ports[port]
	return ok && chosen.Level == level
}

// Choose returns which level serves each port that is offered: the best one with a ready endpoint. A level that is better than the one
// in use must have been available for ReturnDelay, unless the one in use has no ready endpoint. Without any ready endpoint, it is the
// best level with a terminating one, else the one in use. inUse are the levels that serve at present; available says for how long
// levels have been available without interruption.
func Choose(offers []Offer, inUse map[Port]int, available map[Return]time.Duration) Choice {
	offered := map[Port]map[int]Availability{}
	for _, offer := range offers {
		if offered[offer.Port] == nil {
			offered[offer.Port] = map[int]Availability{}
		}
		offered[offer.Port][offer.Level] = max(offered[offer.Port][offer.Level], offer.Availability)
	}
	result := Choice{Ports: map[Port]Chosen{}}
	for _, port := range slices.SortedFunc(maps.Keys(offered), ComparePorts) {
		levels := offered[port]
		chosen := choosePort(port, levels, inUse, available)
		result.Ports[port] = Chosen{chosen, levels[chosen]}
		for level := range chosen {
			if levels[level] == Ready {
				waiting := Return{port, level}
				result.Waiting = append(result.Waiting, waiting)
				rest := ReturnDelay - available[waiting]
				result.Wait = min(cmp.Or(result.Wait, rest), rest)
			}
		}
	}
	return result
}

// ComparePorts orders ports by name and family.
func ComparePorts(a, b Port) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Family, b.Family))
}

// choosePort returns the level that serves one port.
func choosePort(port Port, levels map[int]Availability, inUse map[Port]int, available map[Return]time.Duration) int {
	best, used := bestOf(levels), inUse[port] // 0 if none is in use, which has the same result: no level is better
	_, isOffered := levels[used]
	switch {
	case isOffered && levels[best] == Unavailable:
		return used
	case levels[used] != Ready:
		return best
	}
	for level := range used {
		if levels[level] == Ready && available[Return{port, level}] >= ReturnDelay {
			return level
		}
	}
	return used
}

// bestOf returns the first of the levels whose availability no other exceeds.
func bestOf(levels map[int]Availability) int {
	return slices.MaxFunc(slices.Sorted(maps.Keys(levels)), func(a, b int) int { return cmp.Compare(levels[a], levels[b]) })
}

// WithPorts returns a slice that has only the ports which keep reports, by their merged names. names are the merged names of the
// cluster's ports. The argument is not changed.
func WithPorts(slice clusterset.Slice, names map[string]string, keep func(merged string) bool) clusterset.Slice {
	slice.Ports = slices.DeleteFunc(slices.Clone(slice.Ports), func(port clusterset.EndpointPort) bool {
		merged, ok := names[port.Name]
		return !ok || !keep(merged)
	})
	return slice
}
