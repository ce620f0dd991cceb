// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sources gathers the data of one service: the local export from the local API server, and the exports of other members
// from the hub. All controllers use it, so that they decide on the same data.
package sources

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/pkg/access"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/export"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/record"
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

// Sources is the data of one service.
type Sources struct {
	Key clusterset.ServiceKey
	// Export is this cluster's ServiceExport, nil if there is none or it is being deleted.
	Export *mcsv1beta1.ServiceExport
	// Local is the local export; nil if there is none. Its age is the effective one (spec R8): until the hub has recorded the
	// export, it is younger than any other, so it displaces nothing before all members can see it.
	Local *clusterset.Export
	// GrantSurplus is the number of clusters to which the local export is granted and that the record cannot name.
	GrantSurplus int
	// NoMembers are the clusters to which the local export is granted and that are no members; none if the members are not known.
	NoMembers []clusterset.ClusterID
	// Rejection is why a ServiceExport exports nothing; nil if it exports, or if there is none.
	Rejection *export.Rejection
	// Hub has the exports of the other members, and this cluster's own records.
	Hub hub.Service
	// Gateways are the gateways of this cluster; nil if it has none.
	Gateways *Gateways
}

// Gateways are the gateways of this cluster.
type Gateways struct {
	// Slices are the EndpointSlices of their Service.
	Slices []clusterset.Slice
}

// PublishesAvailability reports whether the record of the local export contains the availability of its ports: other clusters need it
// to reach its endpoints through gateways (W2).
func (s Sources) PublishesAvailability() bool { return s.Gateways != nil || !s.PublishesAddresses() }

// PublishesAddresses reports whether this cluster publishes the addresses of its endpoints.
func (s Sources) PublishesAddresses() bool {
	return s.Hub.LocalMember == nil || s.Hub.LocalMember.Spec.Publish != hubv1alpha1.PublishAvailability
}

// unrecorded is the age of an export that the hub has not recorded: later than any other.
var unrecorded = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// Exports returns the accepted exports of the service that this cluster imports: those granted to it, and the local one.
func (s Sources) Exports() []clusterset.Export { return s.withLocal(s.Hub.Exports) }

// AllExports returns all accepted exports of the service, whomever they are granted to. Conflicts are computed from them (A1).
func (s Sources) AllExports() []clusterset.Export {
	return s.withLocal(slices.Concat(s.Hub.Exports, s.Hub.Ungranted))
}

func (s Sources) withLocal(others []clusterset.Export) []clusterset.Export {
	if s.Local == nil || s.Hub.NotAllowed != nil { // no other member accepts it (spec R7)
		return others
	}
	return append(slices.Clone(others), s.acceptedLocal())
}

// acceptedLocal returns the local export as other members accept it. If they would refuse it, for example for an invalid label,
// that is the record that the hub still stores, so that all members agree (spec R7), and the import of other exports is not blocked
// (spec C7). Without a record, it is the export without its metadata, the only part that can be invalid.
func (s Sources) acceptedLocal() clusterset.Export {
	own := *s.Local
	if record.Check(own) == nil {
		return own
	}
	if s.Hub.LocalExport != nil {
		return *s.Hub.LocalExport
	}
	own.Labels, own.Annotations = nil, nil
	return own
}

// Record returns the record of the local export as the hub should store it, with the age that the ServiceExport claims: importers
// bound the age themselves (spec R8). There must be a local export.
func (s Sources) Record() *hubv1alpha1.PublishedService {
	own := *s.Local
	own.Age = s.Export.CreationTimestamp.UTC()
	return record.EncodeService(own)
}

// IsPublished reports whether the hub stores the record of the local export as it should be. It does not compare endpoints and
// their availability.
func (s Sources) IsPublished() bool {
	if s.Local == nil || s.Hub.Local == nil {
		return false
	}
	return len(plan.PublishedService(s.Record(), record.WithoutAvailability(s.Hub.Local))) == 0
}

// Read returns the data of a service. It must not be changed.
func (r Reader) Read(ctx context.Context, key clusterset.ServiceKey) (Sources, error) {
	return r.read(ctx, Sources{Key: key, Hub: r.Hub.Service(key)})
}

// ReadImport is Read for a caller that imports the service, and already has this part of it. What the hub lacks of that part is
// missing.
func (r Reader) ReadImport(ctx context.Context, key clusterset.ServiceKey, have hub.Imported) (Sources, error) {
	return r.read(ctx, Sources{Key: key, Hub: r.Hub.Import(key, have)})
}

func (r Reader) read(ctx context.Context, result Sources) (Sources, error) {
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
	err = r.readGrants(ctx, &result)
	return result, err
}

// readGrants sets to which clusters the local export is granted (A1).
func (r Reader) readGrants(ctx context.Context, result *Sources) error {
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
func removeSelections(known *hub.Service) {
	for i := range known.Exports {
		known.Exports[i].Selection = nil
	}
	if known.LocalExport != nil {
		known.LocalExport.Selection = nil
	}
}

func effectiveAge(claimed time.Time, recorded hub.Service) time.Time {
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
func (r Reader) gateways(ctx context.Context) (*Gateways, error) {
	key := r.GatewayService()
	if r.AgentNamespace == "" {
		return nil, nil
	}
	if exists, err := caches.Get(ctx, r.Member, key, &corev1.Service{}); err != nil || !exists {
		return nil, err
	}
	slices, err := r.LocalSlices(ctx, key)
	return &Gateways{slices}, err
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
