// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// The last quarter of the virtual IPs is for source clusters with fewer than virtualIPShare, so that one cluster cannot use up those of all
// others.
const (
	virtualIPReserve = importing.MaxVirtualIPs / 4
	virtualIPShare   = importing.MaxVirtualIPs / 16
)

// VirtualIPs counts the virtual IPs of this cluster, so that all imports together have at most MaxVirtualIPs. If there are not enough, an
// import keeps none that it does not use at present.
type VirtualIPs struct {
	// Live reads from the API server.
	Live client.Reader

	mu sync.Mutex
	// imports are those that have or lack virtual IPs; nil until they are read.
	imports map[clusterset.ServiceKey]virtualIPCount
	notify  func(clusterset.ServiceKey)
}

// virtualIPCount counts the virtual IPs of an import.
type virtualIPCount struct {
	// held counts those of each source cluster, and unused those of them that the import does not use.
	held   map[clusterset.ClusterID]int
	unused int
	// lacks counts those that it lacks because all are in use. limited is set if it lacks some because of a cluster's share.
	lacks   int
	limited bool
	// answered is the last request, and granted the virtual IPs that were its answer. They are not set if the import lacks some, and before
	// the first request since the start.
	answered *importing.VirtualIPRequest
	granted  []clusterset.VirtualIP
}

func (c virtualIPCount) total() int {
	total := 0
	for _, n := range c.held {
		total += n
	}
	return total
}

// Subscribe calls notify for each import that gets or gives up virtual IPs if it is reconciled. It must be called before assign.
func (p *VirtualIPs) Subscribe(notify func(clusterset.ServiceKey)) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notify = notify
	}
}

// held sets what is counted for an import.
func (p *VirtualIPs) held(key clusterset.ServiceKey, into *importing.Numbers) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	count, ok := p.imports[key]
	into.VirtualIPs, into.VirtualIPsFor, into.HoldsVirtualIPs = count.granted, count.answered, ok
}

// assign sets the virtual IPs that an import gets: of those that it uses the first ones for which there is room, then of the unused ones.
func (p *VirtualIPs) assign(ctx context.Context, key clusterset.ServiceKey, request importing.VirtualIPRequest, into *importing.Numbers) error {
	into.VirtualIPs, into.VirtualIPsFor, into.HoldsVirtualIPs = nil, &request, false
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.imports == nil {
		if err := p.load(ctx); err != nil {
			return err
		}
	}
	used, unused := request.Used, request.Unused
	room, needed, ofOthers := importing.MaxVirtualIPs, 0, map[clusterset.ClusterID]int{}
	for other, count := range p.imports {
		if other != key {
			room, needed = room-count.total(), needed+count.lacks
			for id, n := range count.held {
				ofOthers[id] += n
			}
		}
	}
	before, now := p.imports[key], virtualIPCount{held: map[clusterset.ClusterID]int{}}
	var granted []clusterset.VirtualIP
	for _, ip := range used {
		n := now.held[ip.Cluster]
		switch isNew, isScarce := n >= before.held[ip.Cluster], room-len(granted) <= virtualIPReserve; {
		case isNew && isScarce && ofOthers[ip.Cluster]+n >= virtualIPShare:
			now.limited = true
		case len(granted) >= room:
			now.lacks++
		default:
			granted, now.held[ip.Cluster] = append(granted, ip), n+1
		}
	}
	now.unused = min(len(unused), max(0, room-len(granted)-needed))
	for _, ip := range unused[:now.unused] {
		granted = append(granted, ip)
		now.held[ip.Cluster]++
	}
	if len(granted) == len(used)+len(unused) {
		now.answered, now.granted = &request, granted
	}
	p.set(key, now)
	into.VirtualIPs = granted
	return nil
}

// set stores the count of an import, and notifies the other imports that can give or get virtual IPs now.
func (p *VirtualIPs) set(key clusterset.ServiceKey, now virtualIPCount) {
	before := p.imports[key]
	gives, needs := now.total() < before.total(), now.lacks > before.lacks
	if now.total() == 0 && now.lacks == 0 && !now.limited {
		delete(p.imports, key)
	} else {
		p.imports[key] = now
	}
	for other, count := range p.imports {
		isConcerned := needs && count.unused > 0 || gives && (count.lacks > 0 || count.limited)
		if other != key && isConcerned && p.notify != nil {
			p.notify(other)
		}
	}
}

// load counts the existing virtual IPs. Those that their imports do not use are not known until these are reconciled.
func (p *VirtualIPs) load(ctx context.Context) error {
	list := &corev1.ServiceList{}
	if err := p.Live.List(ctx, list, client.HasLabels{clusterset.LabelVirtualIPOf}); err != nil {
		return fmt.Errorf("list the Services of virtual IPs: %w", err)
	}
	p.imports = map[clusterset.ServiceKey]virtualIPCount{}
	for i := range list.Items {
		if ip, ok := render.VirtualIPOf(&list.Items[i]); ok {
			if p.imports[ip.Service].held == nil {
				p.imports[ip.Service] = virtualIPCount{held: map[clusterset.ClusterID]int{}}
			}
			p.imports[ip.Service].held[ip.Cluster]++
		}
	}
	return nil
}
