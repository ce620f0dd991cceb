// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sources gathers what is known of one service: what this cluster exports, by its own API server, and what the
// others export, by the hub. It is where all controllers begin, so that they agree on what they see.
package sources

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
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
	// Selector says whether this cluster shares how its Services find their pods, and listens to others who do.
	Selector clusterset.DerivedSelector
	// AgentNamespace is where this cluster's agent runs, from which nothing is exported; empty where it is not known.
	AgentNamespace string
}

// Sources is what is known of one service.
type Sources struct {
	Key clusterset.ServiceKey
	// Export is this cluster's ServiceExport, nil if there is none or it is being deleted.
	Export *mcsv1beta1.ServiceExport
	// Local is what it exports; nil if nothing. Its age is the effective one (spec R8): until the hub has recorded the
	// export, it is younger than any other.
	Local *clusterset.Export
	// Rejection is why a ServiceExport exports nothing; nil where it exports, or where there is none.
	Rejection *export.Rejection
	// Hub is what the others export, and this cluster's own records.
	Hub hub.Service
}

// unrecorded is the age of an export that the hub has not recorded: later than any that it has.
var unrecorded = time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)

// Exports returns all exports of the service, this cluster's own among them, as far as it is acceptable.
func (s Sources) Exports() []clusterset.Export {
	if s.Local == nil {
		return s.Hub.Exports
	}
	if s.Hub.NotAllowed != nil { // whatever it says: nobody else takes it (spec R7)
		return s.Hub.Exports
	}
	return append(slices.Clone(s.Hub.Exports), s.acceptable())
}

// acceptable returns what counts of this cluster's own export: all of it, unless the others would refuse it, as they
// would a label that no object can have. Then it is what they go on with, the record that the hub still holds, so that
// everybody agrees (spec R7) and the import of what others export is not held up (spec C7). Where there is no record it
// is the export without what can be illegal in it: its metadata.
func (s Sources) acceptable() clusterset.Export {
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

// IsPublished reports whether the hub stores the record of the local export as it should be. It does not compare endpoints.
func (s Sources) IsPublished() bool {
	return s.Local != nil && len(plan.PublishedService(s.Record(), s.Hub.Local)) == 0
}

// Read returns what is known of a service. Nothing it returns may be changed.
func (r Reader) Read(ctx context.Context, key clusterset.ServiceKey) (Sources, error) {
	return r.read(ctx, Sources{Key: key, Hub: r.Hub.Service(key)})
}

// ReadImport is Read for a caller that imports the service, and has this of it already: what the hub lacks of that is missing.
func (r Reader) ReadImport(ctx context.Context, key clusterset.ServiceKey, have hub.Imported) (Sources, error) {
	return r.read(ctx, Sources{Key: key, Hub: r.Hub.Import(key, have)})
}

func (r Reader) read(ctx context.Context, result Sources) (Sources, error) {
	key := result.Key
	if r.Selector != clusterset.OldestSelector {
		forgetSelections(&result.Hub)
	}
	found := &mcsv1beta1.ServiceExport{}
	exists, err := get(ctx, r.Member, key, found)
	if err != nil || !exists || !found.DeletionTimestamp.IsZero() {
		return result, err
	}
	result.Export = found
	if r.AgentNamespace != "" && key.Namespace == r.AgentNamespace {
		result.Rejection = export.NamespaceReserved(key.Namespace)
		return result, nil
	}
	service := &corev1.Service{}
	if exists, err = get(ctx, r.Member, key, service); err != nil {
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
	return result, nil
}

// HasExport reports whether this cluster has a ServiceExport for a service: much less than Read to ask for, of which most that the
// hub announces needs no more.
func (r Reader) HasExport(ctx context.Context, key clusterset.ServiceKey) (bool, error) {
	return get(ctx, r.Member, key, &mcsv1beta1.ServiceExport{})
}

// forgetSelections makes the hub's records say nothing of how Services find their pods (spec D8).
func forgetSelections(known *hub.Service) {
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

// LocalSlices returns the EndpointSlices of this cluster's Service of that name, as other clusters may see them, but
// for the names of nodes, which they carry here.
func (r Reader) LocalSlices(ctx context.Context, key clusterset.ServiceKey) ([]clusterset.Slice, error) {
	list, err := r.localSlices(ctx, key)
	return export.Slices(r.Cluster, list), err
}

// LocalHostNames returns the names of those EndpointSlices that are not exported because they have host names.
func (r Reader) LocalHostNames(ctx context.Context, key clusterset.ServiceKey) ([]string, error) {
	list, err := r.localSlices(ctx, key)
	return export.HostNames(list), err
}

// localSlices returns the EndpointSlices of this cluster's Service of that name, from the cache. They must not be changed.
func (r Reader) localSlices(ctx context.Context, key clusterset.ServiceKey) ([]*discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexSource: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list EndpointSlices of Service %s: %w", key, err)
	}
	return pointers(list.Items), nil
}

// get reads an object and reports whether it exists.
func get(ctx context.Context, reader client.Reader, key client.ObjectKey, into client.Object) (bool, error) {
	err := reader.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get %T %s: %w", into, key, err)
	}
	return true, nil
}

func pointers[T any](items []T) []*T {
	result := make([]*T, len(items))
	for i := range items {
		result[i] = &items[i]
	}
	return result
}
