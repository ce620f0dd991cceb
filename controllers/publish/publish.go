// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publish keeps this member's records on the hub the same as what it exports. It is the only writer of
// PublishedServices and PublishedEndpoints.
package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/publication"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/controllers/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/export"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/record"
)

// Reconciler publishes one service at a time.
type Reconciler struct {
	Sources sources.Reader
	Hub     apply.Writer
	// Allowed reports whether this cluster may speak for its ID now (spec K2).
	Allowed  func() bool
	Progress *publication.Progress
	Outcomes *publication.Outcomes

	// retries decides when what the hub has refused is tried again; nil outside of a manager.
	retries *queue.Retries
	// member is the version of this cluster's Member that the hub's refusals were made by.
	member string
}

// Add adds the controller to a manager.
func (r *Reconciler) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	r.retries = queue.NewRetries(r)
	options.Reconciler = r.retries
	r.Sources.Hub.Subscribe(func(news hub.Event) {
		if news.Deleted && news.Cluster == r.Sources.Cluster {
			r.Progress.Lost(news.Key)
		}
	})
	return queue.AddController(mgr, "publish", options,
		queue.Exports(members),
		source.Kind(members, &corev1.Service{}, queue.Typed[*corev1.Service](queue.SameName)),
		source.Kind(members, &discoveryv1.EndpointSlice{}, queue.Typed[*discoveryv1.EndpointSlice](caches.SourceService)),
		queue.FromHub(r.Sources.Hub, queue.RecordsOf(r.Sources.Cluster), r.everything),
		r.retries.Source(),
	)
}

// everything returns the services that are exported or published. Until each has been looked at since the hub was last
// listed, the publication is not complete.
func (r *Reconciler) everything(ctx context.Context) ([]clusterset.ServiceKey, error) {
	listing := r.Sources.Hub.Listing()
	if member := r.Sources.Hub.Member(r.Sources.Cluster); member != nil && member.ResourceVersion != r.member {
		r.member = member.ResourceVersion
		r.retries.Reset() // it may allow now what the hub has refused, whose policies may see it later than this cluster
	}
	keys, err := r.Sources.ExportKeys(ctx)
	if err != nil {
		return nil, err
	}
	keys = append(keys, r.Sources.Hub.LocalKeys()...)
	if r.ready() {
		r.Progress.Begin(listing, keys)
	}
	return keys, nil
}

// ready reports whether anything may be published at all. When that changes, everything comes again.
func (r *Reconciler) ready() bool { return r.Sources.Hub.Synced() && r.Allowed() }

// Reconcile makes the hub's records of one service what this cluster exports.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := request.NamespacedName
	if !r.ready() {
		return reconcile.Result{}, nil
	}
	listing := r.Sources.Hub.Listing() // before its records are read
	known, slices, err := r.gather(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !known.Hub.Synced() || !r.Allowed() { // a record may have come meanwhile that says that they are another cluster's
		return reconcile.Result{}, nil
	}
	desired, outcome := r.decide(known, slices)
	if known.Local != nil {
		if outcome.HostNames, err = r.Sources.LocalHostNames(ctx, key); err != nil {
			return reconcile.Result{}, err
		}
	}
	versions, err := r.apply(ctx, desired, known.Hub)
	if err != nil {
		return reconcile.Result{}, r.failed(key, listing, fmt.Errorf("publish %s: %w", key, err), outcome)
	}
	r.Outcomes.Set(key, outcome)
	r.Progress.Done(key, listing, versions)
	if r.retries != nil && desired.frees(known.Hub) {
		r.retries.Freed()
	}
	return reconcile.Result{}, nil
}

func (r *Reconciler) gather(ctx context.Context, key clusterset.ServiceKey) (sources.Sources, []clusterset.Slice, error) {
	known, err := r.Sources.Read(ctx, key)
	if err != nil || known.Local == nil {
		return known, nil, err
	}
	slices, err := r.Sources.LocalSlices(ctx, key)
	return known, slices, err
}

// records are what the hub holds, or is to hold, of one service of this member.
type records struct {
	service   *hubv1alpha1.PublishedService
	endpoints []*hubv1alpha1.PublishedEndpoints
}

// frees reports whether the hub is to hold fewer records than it does, so that a quota has room for others.
func (d records) frees(observed hub.Service) bool {
	return d.service == nil && observed.Local != nil || len(d.endpoints) < len(observed.LocalEndpoints)
}

// decide returns the records of what is exported, and what is left out of them because the hub or the other clusters
// would refuse it.
func (r *Reconciler) decide(known sources.Sources, own []clusterset.Slice) (records, publication.Outcome) {
	if known.Local == nil {
		return records{service: inactive(known)}, publication.Outcome{}
	}
	inRanges, refused := export.InRanges(own, known.Hub.LocalRanges())
	outcome := publication.Outcome{LeftOut: texts(refused)}
	bounded, surplus := clusterset.Bounded(inRanges, clusterset.Slice.Count)
	if surplus != nil {
		outcome.Surplus = surplus.Error()
	}
	desired := records{service: known.Record()}
	for _, slice := range bounded {
		desired.endpoints = append(desired.endpoints, record.EncodeEndpoints(known.Key, slice))
	}
	return desired, outcome
}

// inactive returns the record of a ServiceExport that exports nothing at present: the one that the hub holds, marked, so that the
// export keeps its age (spec E6); nil if the hub holds none, or if the service may not be exported at all.
func inactive(known sources.Sources) *hubv1alpha1.PublishedService {
	if known.Rejection == nil || known.Rejection.Reason == export.ReasonNamespaceReserved || known.Hub.Local == nil {
		return nil
	}
	record := known.Hub.Local.DeepCopy()
	record.Spec.Inactive, record.Spec.ExportedAt = true, known.Export.CreationTimestamp
	return record
}

// apply writes endpoints before the service that they belong to, and deletes them after it, so that others see a new
// service complete. It returns the highest versions of the records that it has found or written.
func (r *Reconciler) apply(ctx context.Context, desired records, observed hub.Service) (hub.Versions, error) {
	service := plan.PublishedService(desired.service, observed.Local)
	endpoints := plan.PublishedEndpoints(desired.endpoints, observed.LocalEndpoints)
	if len(desired.endpoints) == 0 {
		writtenService, err := apply.Do(ctx, r.Hub, service)
		if err == nil {
			_, err = apply.Do(ctx, r.Hub, endpoints)
		}
		return highest(observed, writtenService, nil), err
	}
	writtenEndpoints, err := apply.Do(ctx, r.Hub, endpoints)
	if err != nil {
		return hub.Versions{}, err
	}
	writtenService, err := apply.Do(ctx, r.Hub, service)
	return highest(observed, writtenService, writtenEndpoints), err
}

// highest returns the highest versions of this cluster's own records of a service: those that were observed, and those that
// were written since.
func highest(observed hub.Service, services []*hubv1alpha1.PublishedService, endpoints []*hubv1alpha1.PublishedEndpoints) hub.Versions {
	if observed.Local != nil {
		services = append(services, observed.Local)
	}
	var result hub.Versions
	for _, record := range services {
		result = result.Latest(hub.Versions{Services: record.ResourceVersion})
	}
	for _, record := range slices.Concat(endpoints, observed.LocalEndpoints) {
		result = result.Latest(hub.Versions{Endpoints: record.ResourceVersion})
	}
	return result
}

// failed stores the refusal of a record, and returns the error. A record that the schema refuses is done with until it changes. A record
// that a quota, a right or an admission policy refuses keeps the publication Partial: the hub should store it. An API server that has
// just started refuses every record, as Invalid, until its policies have found the Member.
func (r *Reconciler) failed(key clusterset.ServiceKey, listing int, err error, outcome publication.Outcome) error {
	if errors.Is(err, apply.ErrStale) || !apply.IsRefused(err) {
		return err
	}
	outcome.Failure = apply.Reason(err)
	r.Outcomes.Set(key, outcome)
	if apply.IsFinal(err) {
		r.Progress.Done(key, listing, hub.Versions{})
		return reconcile.TerminalError(err)
	}
	return err
}

func texts(errs []error) []string {
	var result []string
	for _, err := range errs {
		result = append(result, err.Error())
	}
	slices.Sort(result)
	return slices.Compact(result)
}
