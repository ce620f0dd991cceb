// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// gather reads the input of the decision from caches, and reserves nothing. If the namespace is denied, it reads only existing objects.
func (r *Reconciler) gather(ctx context.Context, key clusterset.ServiceKey) (importing.Observed, error) {
	o := importing.Observed{
		Cluster: r.Sources.Cluster, Families: r.IPFamilies, MetadataDomains: r.MetadataDomains, Unsupported: r.Unsupported.settings(),
		Sources: sources.Sources{Key: key}, Policies: r.Policies, Reach: r.GatewayReach.Seen(), Now: r.Clock.Now(),
	}
	r.GatewayPorts.held(key, &o.Numbers)
	r.VirtualIPs.held(key, &o.Numbers)
	var err error
	if o.Namespace, err = r.namespaceState(ctx, key.Namespace); err != nil {
		return o, err
	}
	if o.Namespace != importing.NamespaceAllowed {
		r.Sources.Hub.RemoveWaiting(key)
	}
	if o.Namespace == importing.NamespaceNotFound {
		o.Last = r.Retained.seen(key)
		return o, nil
	}
	if o.Existing, err = r.existing(ctx, key); err != nil || o.Namespace == importing.NamespaceDenied {
		return o, err
	}
	if i := o.ServiceImport; i == nil {
		if o.Retained, err = r.Retained.of(ctx, key); err != nil {
			return o, err
		}
	} else if clusterset.IsManaged(i.Labels) && i.Spec.Type == mcsv1beta1.ClusterSetIP {
		r.Retained.see(key, i.Spec.IPs)
	}
	for _, object := range o.All() {
		if added := r.Writer.Added(object); !added.IsEmpty() {
			if o.Added == nil {
				o.Added = map[importing.Name]plan.Metadata{}
			}
			o.Added[importing.NameOf(object)] = added
		}
	}
	// Read the existing objects first, because ReadImport compares them with one state of the hub.
	if o.Sources, err = r.Sources.ReadImport(ctx, key, o.Imported(r.Sources.Hub.Members())); err != nil {
		return o, err
	}
	if o.Sources.Local != nil {
		if o.LocalSlices, err = r.Sources.LocalSlices(ctx, key); err != nil {
			return o, err
		}
		for i := range o.LocalSlices {
			o.LocalSlices[i].Local = true
		}
	}
	o.States = r.states(o.Sources.Hub)
	o.Routing, err = r.routing(ctx, o)
	return o, err
}

// states returns which sources are connected, silent or unknown.
func (r *Reconciler) states(known sources.Hub) map[clusterset.ClusterID]liveness.State {
	result := map[clusterset.ClusterID]liveness.State{}
	for _, export := range known.Exports {
		result[export.Cluster] = r.State(export.Cluster)
	}
	for id := range known.Missing {
		result[id] = r.State(id)
	}
	return result
}

// existing reads the existing objects of an import.
func (r *Reconciler) existing(ctx context.Context, key clusterset.ServiceKey) (importing.Existing, error) {
	result, serviceImport := importing.Existing{}, &mcsv1beta1.ServiceImport{}
	exists, err := caches.Get(ctx, r.Member, key, serviceImport)
	if err != nil {
		return result, err
	}
	if exists {
		result.ServiceImport = serviceImport
	}
	for _, name := range []string{clusterset.ShortDerivedName(key.Name), clusterset.LongDerivedName(key.Name)} {
		service := &corev1.Service{}
		exists, err := caches.Get(ctx, r.Member, client.ObjectKey{Namespace: key.Namespace, Name: name}, service)
		if err != nil {
			return result, err
		}
		if exists {
			result.Services = append(result.Services, service)
		}
	}
	for _, service := range result.Derived(key.Name) {
		if r.Sources.Selector == clusterset.OldestSelector {
			result.Selection = export.Selection(service)
		}
	}
	if result.TakenNames, err = r.recordedByOthers(ctx, key); err != nil {
		return result, err
	}
	services, mirrored, virtual := &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}, &discoveryv1.EndpointSliceList{}
	for _, read := range []struct {
		list  client.ObjectList
		index string
	}{{mirrored, caches.IndexMirror}, {services, caches.IndexVirtual}, {virtual, caches.IndexVirtual}} {
		err := r.Member.List(ctx, read.list, client.InNamespace(key.Namespace), client.MatchingFields{read.index: key.Name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return result, fmt.Errorf("list %s of the import %s: %w", clusterset.KindOf(read.list), key, err)
		}
	}
	result.Mirrored, result.VirtualServices, result.VirtualSlices = caches.Pointers(mirrored.Items), caches.Pointers(services.Items), caches.Pointers(virtual.Items)
	return result, nil
}

// recordedByOthers returns the short name of a service's derived Service if another import has recorded it.
func (r *Reconciler) recordedByOthers(ctx context.Context, key clusterset.ServiceKey) ([]string, error) {
	short := clusterset.ShortDerivedName(key.Name)
	list := &mcsv1beta1.ServiceImportList{}
	if err := r.Member.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexDerived: short}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ServiceImports whose derived Service is %s: %w", short, err)
	}
	for _, other := range list.Items {
		if other.Name != key.Name {
			return []string{short}, nil
		}
	}
	return nil, nil
}
