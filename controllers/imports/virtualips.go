// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// MaxVirtualIPs is the largest number of virtual IPs in a cluster (G9).
const MaxVirtualIPs = 1000

// VirtualIPs counts the virtual IPs of this cluster, so that all imports together have at most MaxVirtualIPs. If there are not enough, an
// import keeps none that it does not use at present.
type VirtualIPs struct {
	// Live reads from the API server.
	Live client.Reader

	mu sync.Mutex
	// held counts the virtual IPs of each import, and unused those of them that it does not use; nil until they are read.
	held, unused map[clusterset.ServiceKey]int
	// waiting counts the virtual IPs that imports lack.
	waiting map[clusterset.ServiceKey]int
	notify  func(clusterset.ServiceKey)
}

// Subscribe calls notify for each import that gets or gives up virtual IPs if it is reconciled. It must be called before assign.
func (p *VirtualIPs) Subscribe(notify func(clusterset.ServiceKey)) {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notify = notify
	}
}

// assign returns the virtual IPs that an import gets: of those that it uses the first ones for which there is room, then of the unused
// ones.
func (p *VirtualIPs) assign(ctx context.Context, key clusterset.ServiceKey, used, unused []clusterset.VirtualIP) ([]clusterset.VirtualIP, error) {
	if p == nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		if len(used)+len(unused) == 0 { // a cluster without virtual IPs reads nothing
			return nil, nil
		}
		if err := p.load(ctx); err != nil {
			return nil, err
		}
	}
	room := MaxVirtualIPs
	for other, n := range p.held {
		if other != key {
			room -= n
		}
	}
	room = max(0, room)
	needed := 0 // by others
	for other, n := range p.waiting {
		if other != key {
			needed += n
		}
	}
	granted := slices.Clone(used[:min(room, len(used))])
	keep := min(len(unused), max(0, room-len(granted)-needed))
	granted = append(granted, unused[:keep]...)
	p.set(key, len(granted), keep, len(used)-min(room, len(used)))
	return granted, nil
}

// set stores the counts of an import, and notifies the other imports that can give or get virtual IPs now.
func (p *VirtualIPs) set(key clusterset.ServiceKey, held, unused, lacks int) {
	others := map[clusterset.ServiceKey]int{}
	if lacks > p.waiting[key] {
		maps.Copy(others, p.unused)
	}
	if held < p.held[key] {
		maps.Copy(others, p.waiting)
	}
	p.held[key], p.unused[key], p.waiting[key] = held, unused, lacks
	for _, counts := range []map[clusterset.ServiceKey]int{p.held, p.unused, p.waiting} {
		if counts[key] == 0 {
			delete(counts, key)
		}
	}
	delete(others, key)
	for other := range others {
		if p.notify != nil {
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
	p.held, p.unused, p.waiting = map[clusterset.ServiceKey]int{}, map[clusterset.ServiceKey]int{}, map[clusterset.ServiceKey]int{}
	for i := range list.Items {
		if ip, ok := caches.VirtualIP(&list.Items[i]); ok {
			p.held[ip.Service]++
		}
	}
	return nil
}

// readVirtualIPs reads the existing Services and slices of the import's virtual IPs.
func (r *Reconciler) readVirtualIPs(ctx context.Context, key clusterset.ServiceKey, v *view) error {
	services, endpoints := &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}
	for _, list := range []client.ObjectList{services, endpoints} {
		if err := r.Member.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexVirtual: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list %T of the virtual IPs of %s: %w", list, key, err)
		}
	}
	v.virtualServices, v.virtualSlices = caches.Pointers(services.Items), caches.Pointers(endpoints.Items)
	return nil
}
