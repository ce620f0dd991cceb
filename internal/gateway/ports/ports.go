// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ports allocates the listening ports of a cluster's gateways: one for each port of each service of each source cluster (G2).
// It is pure: the caller passes the time and stores what must survive a restart.
package ports

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// The allocated ports, which are below the default range of NodePorts and the usual range of ephemeral ports.
const (
	First = 10_000
	Last  = 29_999
)

// The last quarter of the ports is for source clusters that have fewer than share ports, so that one cluster cannot use up those of all
// others.
const (
	number  = Last - First + 1
	reserve = number / 4
	share   = number / 16
)

// Quarantine is the time for which a released port is not allocated again: a node whose kube-proxy is late still sends traffic for the
// former service to it.
const Quarantine = 10 * time.Minute

// Block is the number of ports that the caller reserves at once. See Allocator.
const Block = 256

// Owner is what a listening port leads to: a TCP port of a service in a source cluster.
type Owner struct {
	Service clusterset.ServiceKey
	Cluster clusterset.ClusterID
	// Port is the number of the Service port.
	Port int32
	// Hostname is that of the endpoint of a headless service; empty for endpoints without one.
	Hostname string
}

// Allocator allocates ports in their order, so that a port is not allocated again before all others were. The caller stores a State for a
// block of ports, before the first port of the block is allocated. What the State does not call free, and no slice records, may have been
// released shortly before a restart, or its slice is lost: it is in quarantine from the restart on. An Allocator must not be used
// concurrently.
type Allocator struct {
	owners map[int32]Owner
	// allocated says when each port was allocated; it lacks those that were adopted.
	allocated map[int32]time.Time
	ports     map[clusterset.ServiceKey]map[Owner]int32
	// released are the ports in quarantine, and some whose quarantine has ended.
	released map[int32]release
	// used are the numbers of ports of each source cluster: those with an owner, and those in released.
	used map[clusterset.ClusterID]int
	// next is the next port, and left the number of ports that are left in the reserved block.
	next int32
	left int
}

// release says when a port was released, and which cluster had it; no cluster is known for one from before a restart.
type release struct {
	at time.Time
	by clusterset.ClusterID
}

// New returns an Allocator that continues from a stored State. If its cursor is none of the ports, it is First.
func New(from State, now time.Time) *Allocator {
	a := &Allocator{
		owners: map[int32]Owner{}, allocated: map[int32]time.Time{}, ports: map[clusterset.ServiceKey]map[Owner]int32{}, released: map[int32]release{},
		used: map[clusterset.ClusterID]int{}, next: from.Cursor,
	}
	if a.next < First || a.next > Last {
		a.next = First
	}
	for n := range int32(number) {
		if port := First + n; !from.isFree(port) {
			a.released[port] = release{at: now}
			a.used[""]++
		}
	}
	return a
}

// Adopt records a port that a mirrored slice records, and reports whether the owner has it now: not if another owner has the port, or
// the owner has another port.
func (a *Allocator) Adopt(owner Owner, port int32) bool {
	if port < First || port > Last {
		return false
	}
	holder, taken := a.owners[port]
	if _, has := a.ports[owner.Service][owner]; taken || has {
		return holder == owner
	}
	a.set(owner, port)
	return true
}

// Assign returns the ports of the wanted owners of a service, and releases those of its other owners. An owner keeps its port. The
// result lacks the owners for which no port is free, or whose cluster has its share. store is called with the State to store before a
// block is used; if it fails, nothing has changed for the owners without a port, and Assign returns the error.
func (a *Allocator) Assign(service clusterset.ServiceKey, wanted []Owner, now time.Time, store func(State) error) (map[Owner]int32, error) {
	keep := sets.New(wanted...)
	for owner, port := range a.ports[service] {
		if !keep.Has(owner) {
			a.release(owner, port, now)
		}
	}
	if a.isScarce() {
		for port, released := range a.released {
			if now.Sub(released.at) >= Quarantine {
				a.endQuarantine(port)
			}
		}
	}
	for _, owner := range wanted {
		if _, has := a.ports[service][owner]; has {
			continue
		}
		if a.used[owner.Cluster] >= share && a.isScarce() {
			continue
		}
		port, err := a.take(now, store)
		if err != nil {
			return nil, err
		}
		if port == 0 {
			break
		}
		a.set(owner, port)
		a.allocated[port] = now
	}
	return maps.Clone(a.ports[service]), nil
}

// Of returns the ports of the owners of a service, and when they were allocated; the latter without those that were adopted.
func (a *Allocator) Of(service clusterset.ServiceKey) (map[Owner]int32, map[Owner]time.Time) {
	since := map[Owner]time.Time{}
	for owner, port := range a.ports[service] {
		if at, ok := a.allocated[port]; ok {
			since[owner] = at
		}
	}
	return maps.Clone(a.ports[service]), since
}

// Owner returns the owner of a port; false if it has none.
func (a *Allocator) Owner(port int32) (Owner, bool) {
	owner, ok := a.owners[port]
	return owner, ok
}

// isScarce reports whether only the reserve is left.
func (a *Allocator) isScarce() bool { return len(a.owners)+len(a.released) >= number-reserve }

// take returns the next free port; 0 if there is none. It reserves no block in which no port is free.
func (a *Allocator) take(now time.Time, store func(State) error) (int32, error) {
	for n := range number {
		port := after(a.next, int32(n))
		if !a.isFree(port, now) {
			continue
		}
		if n >= a.left {
			if err := store(a.stateAfter(port, now)); err != nil {
				return 0, err
			}
			a.left = n + Block
		}
		a.next, a.left = after(port, 1), a.left-n-1
		return port, nil
	}
	return 0, nil
}

// stateAfter returns the State to store before the block from a port on is used.
func (a *Allocator) stateAfter(port int32, now time.Time) State {
	result := State{Cursor: after(port, Block)}
	for n := range int32(number) {
		if p := First + n; after(p, Last+1-port)-First >= Block && a.isFree(p, now) { // not in the block
			result.add(p)
		}
	}
	return result
}

// NextFree returns the first time at which a port may be free, if none is free now: the end of the first quarantine. A port that has an
// owner now is in quarantine longer than that.
func (a *Allocator) NextFree(now time.Time) time.Time {
	first := now.Add(Quarantine)
	for _, released := range a.released {
		if end := released.at.Add(Quarantine); end.Before(first) {
			first = end
		}
	}
	return first
}

// after returns the port n places after another; the first port follows the last.
func after(port int32, n int32) int32 { return First + (port-First+n)%number }

func (a *Allocator) isFree(port int32, now time.Time) bool {
	if _, taken := a.owners[port]; taken {
		return false
	}
	if released, ok := a.released[port]; ok && now.Sub(released.at) < Quarantine {
		return false
	}
	a.endQuarantine(port)
	return true
}

func (a *Allocator) set(owner Owner, port int32) {
	a.endQuarantine(port)
	a.owners[port] = owner
	a.used[owner.Cluster]++
	if a.ports[owner.Service] == nil {
		a.ports[owner.Service] = map[Owner]int32{}
	}
	a.ports[owner.Service][owner] = port
}

// endQuarantine removes a port from the released ones.
func (a *Allocator) endQuarantine(port int32) {
	released, ok := a.released[port]
	if !ok {
		return
	}
	delete(a.released, port)
	a.used[released.by]--
	if a.used[released.by] == 0 {
		delete(a.used, released.by)
	}
}

func (a *Allocator) release(owner Owner, port int32, now time.Time) {
	a.released[port] = release{now, owner.Cluster} // it stays one of the cluster's used ports
	delete(a.owners, port)
	delete(a.allocated, port)
	delete(a.ports[owner.Service], owner)
	if len(a.ports[owner.Service]) == 0 {
		delete(a.ports, owner.Service)
	}
}
