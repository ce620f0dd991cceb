// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gather reads the data of one service: the local export from the local API server, and the exports of other members
// from the hub. All controllers use it, so that they decide on the same data.
package gather

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reader reads the sources of services.
type Reader struct {
	Cluster clusterset.ClusterID
	// Member reads this cluster, from a cache with the indexes of AddIndexes.
	Member client.Reader
	Hub    *hub.Store
	// Selector says whether this cluster publishes the selectors of its Services, and uses those of other members.
	Selector clusterset.DerivedSelector
	// Grants has the ServiceExportGrants of this cluster.
	Grants client.Reader
	// AgentNamespace is the namespace of this cluster's agent, which exports nothing; empty if it is not known.
	AgentNamespace string
	// Unrestricted reads all namespaces, if Member reads only some; nil if Member reads all.
	Unrestricted client.Reader
	// HostPods returns the pods in this cluster's host network with an address that have not finished. nil if there are none.
	HostPods func(context.Context, netip.Addr) ([]corev1.Pod, error)
}

// unrecorded is the age of an export that the hub has not recorded: later than any other.
var unrecorded = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// Read returns the data of a service. It must not be changed.
func (r Reader) Read(ctx context.Context, key clusterset.ServiceKey) (sources.Sources, error) {
	return r.read(ctx, sources.Sources{Key: key, Hub: r.Hub.Service(key)})
}

// ReadImport is Read for a caller that imports the service, and already has this part of it. What the hub lacks of that part is
// missing.
func (r Reader) ReadImport(ctx context.Context, key clusterset.ServiceKey, have sources.Imported) (sources.Sources, error) {
	return r.read(ctx, sources.Sources{Key: key, Hub: r.Hub.Import(key, have)})
}

func (r Reader) read(ctx context.Context, result sources.Sources) (sources.Sources, error) {
	key := result.Key
	gateways, err := r.gateways(ctx)
	if err != nil {
		return result, err
	}
	result.Gateways = gateways
	if r.Selector != clusterset.OldestSelector {
		removeSelections(&result.Hub)
	}
	found := &mcsv1beta1.ServiceExport{}
	exists, err := caches.Get(ctx, r.Member, key, found)
	if err != nil || !exists || !found.DeletionTimestamp.IsZero() {
		return result, err
	}
	result.Export = found
	if r.AgentNamespace != "" && key.Namespace == r.AgentNamespace {
		result.Rejection = export.NamespaceReserved(key.Namespace)
		return result, nil
	}
	service := &corev1.Service{}
	if exists, err = caches.Get(ctx, r.Member, key, service); err != nil {
		return result, err
	}
	if !exists {
		service = nil
	}
	own, rejection := export.Decide(r.Cluster, found, service)
	if rejection != nil {
		result.Rejection = rejection
		return result, nil
	}
	own.Age = effectiveAge(own.Age, result.Hub)
	if r.Selector == clusterset.OldestSelector {
		own.Selection = export.Selection(service)
	}
	result.Local = &own
	if clusterset.HasProxyProtocol(found) && result.PublishesAddresses() {
		result.Direct = r.Hub.Neighbors()
	}
	err = r.readGrants(ctx, &result)
	return result, err
}

// readGrants sets to which clusters the local export is granted (A1).
func (r Reader) readGrants(ctx context.Context, result *sources.Sources) error {
	grants, err := caches.GrantsIn(ctx, r.Grants, result.Key.Namespace)
	if err != nil {
		return err
	}
	service := access.Service{Key: result.Key, GrantedOnly: clusterset.IsGrantedOnly(result.Export)}
	var properties access.Properties
	if len(access.NamespacesByCluster(grants)) > 0 {
		properties = r.Hub.Properties()
	}
	result.Local.GrantedTo, result.GrantSurplus = access.GrantedTo(r.Cluster, service, grants, properties)
	if result.Hub.Synced() {
		result.NoMembers = access.NoMembers(result.Local.GrantedTo, properties)
	}
	return nil
}

// HasExport reports whether this cluster has a ServiceExport for a service. It costs much less than Read, and is sufficient for
// most events of the hub.
func (r Reader) HasExport(ctx context.Context, key clusterset.ServiceKey) (bool, error) {
	return caches.Get(ctx, r.Member, key, &mcsv1beta1.ServiceExport{})
}

// removeSelections removes the selectors of Services from the hub's records (spec D8).
func removeSelections(known *sources.Hub) {
	for i := range known.Exports {
		known.Exports[i].Selection = nil
	}
	if known.LocalExport != nil {
		known.LocalExport.Selection = nil
	}
}

func effectiveAge(claimed time.Time, recorded sources.Hub) time.Time {
	if recorded.Local == nil || recorded.LocalMember == nil {
		return unrecorded
	}
	return record.EffectiveAge(claimed, recorded.Local.CreationTimestamp.Time, recorded.LocalMember.Spec.ClaimedAges)
}

// GatewayService returns the key of the Service of this cluster's gateways.
func (r Reader) GatewayService() clusterset.ServiceKey {
	return clusterset.ServiceKey{Namespace: r.AgentNamespace, Name: clusterset.GatewayService}
}

// gateways returns the gateways of this cluster; nil if it has none.
func (r Reader) gateways(ctx context.Context) (*sources.Gateways, error) {
	key := r.GatewayService()
	if r.AgentNamespace == "" {
		return nil, nil
	}
	if exists, err := caches.Get(ctx, r.Member, key, &corev1.Service{}); err != nil || !exists {
		return nil, err
	}
	slices, err := r.LocalSlices(ctx, key)
	return &sources.Gateways{Slices: slices}, err
}

// LocalSlices returns the EndpointSlices of the local Service, as other clusters read them, but with names of nodes.
func (r Reader) LocalSlices(ctx context.Context, key clusterset.ServiceKey) ([]clusterset.Slice, error) {
	list, err := r.localSlices(ctx, key)
	return export.Slices(r.Cluster, list), err
}

// LocalHostNames returns the names of the EndpointSlices that are not exported because they have host names.
func (r Reader) LocalHostNames(ctx context.Context, key clusterset.ServiceKey) ([]string, error) {
	list, err := r.localSlices(ctx, key)
	return export.HostNames(list), err
}

// localSlices returns the EndpointSlices of the local Service from the cache. They must not be changed.
func (r Reader) localSlices(ctx context.Context, key clusterset.ServiceKey) ([]*discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexSource: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list EndpointSlices of Service %s: %w", key, err)
	}
	return caches.Pointers(list.Items), nil
}
