// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"maps"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// listening is what is known of the listening ports of the gateways.
type listening struct {
	// open are the listening ports of the gateways that have answered lately, by their addresses; nil for a gateway that does not report them.
	open    map[string]ports.Open
	changed []func(sets.Set[int32])
	once    sync.Once
	probed  chan struct{}
	awaited chan struct{}
}

// SubscribePorts calls changed with the listening ports that were opened or closed by a gateway. changed must not block.
func (r *Reach) SubscribePorts(changed func(sets.Set[int32])) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = append(r.changed, changed)
}

// Observe replaces what the probes have found: the listening ports that are open at the addresses of gateways that have answered lately,
// nil for an older gateway, which does not report them; and the addresses that do not answer.
func (r *Reach) Observe(open map[string]ports.Open, unanswering sets.Set[string]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.init()
	before := r.open
	r.open = open
	isSame := func(a, b ports.Open) bool { return (a == nil) == (b == nil) }
	if !maps.EqualFunc(before, open, isSame) || !r.unanswering.Equal(unanswering) {
		r.unanswering = unanswering
		r.notify(EveryCluster)
	} else if numbers := differing(before, open); len(numbers) > 0 {
		for _, changed := range r.changed {
			changed(numbers)
		}
	}
	select {
	case <-r.probed:
	default:
		close(r.probed)
	}
}

// differing returns the ports that differ in two maps with the same addresses.
func differing(a, b map[string]ports.Open) sets.Set[int32] {
	result := sets.New[int32]()
	for address, before := range a {
		for number, digest := range b[address] {
			if other, open := before[number]; !open || other != digest {
				result.Insert(number)
			}
		}
		for number := range before {
			if _, open := b[address][number]; !open {
				result.Insert(number)
			}
		}
	}
	return result
}

func (r *Reach) init() {
	r.once.Do(func() { r.probed, r.awaited = make(chan struct{}), make(chan struct{}, 1) })
}

// Probed is closed after the first Observe. What a slice listed before the start is true until then.
func (r *Reach) Probed() <-chan struct{} {
	r.init()
	return r.probed
}

// Await says that a slice waits until gateways listen on its ports, which they do soon.
func (r *Reach) Await() {
	r.init()
	select {
	case r.awaited <- struct{}{}:
	default:
	}
}

// Awaited receives a value after Await.
func (r *Reach) Awaited() <-chan struct{} {
	r.init()
	return r.awaited
}

// Closed are the listening ports of a service on which gateways do not listen, by the addresses of the gateways.
type Closed map[string]sets.Set[int32]

// Has reports whether a gateway does not listen on a port.
func (c Closed) Has(gateway string, port int32) bool { return c[gateway].Has(port) }

// Closed returns on which of the wanted ports the ready gateways do not listen, or listen for another owner (G8). An older gateway, which
// does not report its ports, listens on all but the recent ones. So does each gateway of an IP family if none has answered, because the
// agent itself may be cut off; guessed is set if the result depends on that. Otherwise a gateway that has not answered yet listens on none.
func (s Seen) Closed(gateways []clusterset.Slice, wanted map[ports.Owner]int32, recent sets.Set[ports.Owner]) (closed Closed, guessed bool) {
	if len(wanted) == 0 {
		return nil, false
	}
	byFamily := map[discoveryv1.AddressType][]string{}
	for _, slice := range gateways {
		for _, endpoint := range slice.Endpoints {
			if endpoint.IsReady() {
				byFamily[slice.AddressType] = append(byFamily[slice.AddressType], endpoint.Addresses...)
			}
		}
	}
	closed = Closed{}
	for _, addresses := range byFamily {
		isCutOff := !sets.KeySet(s.open).HasAny(addresses...)
		for _, address := range addresses {
			reported, answered := s.open[address]
			closed[address] = sets.New[int32]()
			isAssumed := isCutOff || answered && reported == nil
			guessed = guessed || isAssumed
			for owner, number := range wanted {
				if isAssumed && recent.Has(owner) || !isAssumed && !reported.Leads(number, owner) {
					closed[address].Insert(number)
				}
			}
		}
	}
	return closed, guessed
}
