// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publish writes the records of this member's exports to the hub. It is the only writer of PublishedServices and
// PublishedEndpoints. Progress and Outcomes are the state of the publication, in memory, which presence and exportstatus read.
package publish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reconciler publishes one service at a time.
type Reconciler struct {
	Sources gather.Reader
	Hub     apply.Writer
	// MayWrite reports whether this process may write the records of this cluster now, and OnMayWrite calls a function when it may (spec K2).
	MayWrite   func() bool
	OnMayWrite func(notify func())
	Progress   *Progress
	Outcomes   *Outcomes
	Reverts    *queue.Reverts
	// HostPods has the pods in this cluster's host network, to which exports may lead (W5).
	HostPods cache.Cache

	// retries requeues services that the hub has refused; nil outside of a manager.
	retries *queue.Retries
	// memberVersion is the version of this cluster's Member at the last reset of the backoff, a string.
	memberVersion atomic.Value
}

// Add adds the controller to a manager.
func (r *Reconciler) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	r.retries = queue.NewRetries(r)
	options.Reconciler = r.retries
	r.Sources.Hub.Subscribe(func(event hub.Event) {
		if event.Deleted && event.Cluster == r.Sources.Cluster {
			r.Progress.RecordDeleted(event.Key)
		}
	})
	return queue.AddController(mgr, "publish", options,
		queue.Exports(members),
		queue.Kind(members, &corev1.Service{}, queue.OfExports[*corev1.Service](r.Sources.HasExport, queue.SameName)),
		queue.Kind(members, &discoveryv1.EndpointSlice{}, queue.OfExports[*discoveryv1.EndpointSlice](r.Sources.HasExport, caches.SourceService)),
		queue.FromHub(r.Sources.Hub, queue.RecordsOf(r.Sources.Cluster), r.allKeys),
		queue.FromSignal(r.OnMayWrite, r.allKeys),
		queue.Grants(members, r.Sources.ExportKeysIn),
		queue.Kind(members, &discoveryv1.EndpointSlice{}, r.ofRestricted()),
		queue.Kind(r.HostPods, &corev1.Pod{}, r.ofHostPods()),
		queue.OfMembers(r.Sources.Hub, r.Sources.KeysByCluster),
	)
}

// allKeys returns the services that are exported or published. The publication is complete when each has been reconciled since the
// last list of the hub.
func (r *Reconciler) allKeys(ctx context.Context) ([]clusterset.ServiceKey, error) {
	listing := r.Sources.Hub.Listing()
	if member := r.Sources.Hub.Member(r.Sources.Cluster); member != nil && r.memberVersion.Swap(member.ResourceVersion) != member.ResourceVersion {
		r.retries.ResetBackoff() // the hub may accept now what it refused, maybe a little later, when its policies have read the Member
	}
	keys, err := r.Sources.ExportKeys(ctx)
	if err != nil {
		return nil, err
	}
	keys = append(keys, r.Sources.Hub.LocalKeys()...)
	if !r.ready() {
		return nil, nil
	}
	r.Progress.Begin(listing, keys)
	return keys, nil
}

// ready reports whether this process may publish. If that changes, all services are enqueued again.
func (r *Reconciler) ready() bool { return r.Sources.Hub.Synced() && r.MayWrite() }

// Reconcile updates the records of one service on the hub.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := request.NamespacedName
	if !r.ready() {
		return reconcile.Result{}, nil
	}
	listing := r.Sources.Hub.Listing() // read before the records
	known, slices, leftOut, err := r.gather(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !known.Hub.Synced() || !r.MayWrite() { // another cluster's heartbeat with this ID may have arrived
		return reconcile.Result{}, nil
	}
	desired, outcome := r.decide(known, slices)
	outcome = withLeftOut(outcome, leftOut)
	if known.Local != nil {
		if outcome.HostNames, err = r.Sources.LocalHostNames(ctx, key); err != nil {
			return reconcile.Result{}, err
		}
	}
	if wait := r.revertDelay(key, desired, known.Hub); wait > 0 {
		log.FromContext(ctx).Info("another writer changes the records of this cluster; reverting them later", "after", wait)
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	loss := lossOf(known)
	services, endpoints, err := r.apply(ctx, desired, &known.Hub, loss)
	if isSettled(err, known.Hub.LocalMember, loss) {
		r.Progress.Done(key, listing, highest(known.Hub, services, endpoints))
	}
	if err != nil {
		return reconcile.Result{}, r.setFailure(key, fmt.Errorf("publish %s: %w", key, err), outcome)
	}
	outcome.Failure = unstored(desired.service, services)
	r.Outcomes.Set(key, outcome)
	if r.retries != nil && desired.freesQuota(known.Hub) {
		r.retries.RetryOldest()
	}
	if outcome.Failure != "" { // no event reports that the hub's kinds were changed
		return reconcile.Result{RequeueAfter: unstoredRetry}, nil
	}
	return reconcile.Result{}, nil
}

// revertDelay returns the time until the desired records may replace those of another writer; 0 if they may now.
func (r *Reconciler) revertDelay(key clusterset.ServiceKey, desired records, observed sources.Hub) time.Duration {
	if !apply.Reverts(r.Hub, plan.PublishedService(desired.service, observed.Local)) &&
		!apply.Reverts(r.Hub, plan.PublishedEndpoints(desired.endpoints, observed.LocalEndpoints)) {
		return 0
	}
	return r.Reverts.Delay(key)
}

// unstoredRetry is the time after which a record is compared again with the one that a hub of an earlier version has stored.
const unstoredRetry = 5 * time.Minute

// records are the existing or desired records of one service of this member.
type records struct {
	service   *hubv1alpha1.PublishedService
	endpoints []*hubv1alpha1.PublishedEndpoints
}

// freesQuota reports whether the hub is to store fewer records than before, so that a quota has room for others.
func (d records) freesQuota(observed sources.Hub) bool {
	return d.service == nil && observed.Local != nil || len(d.endpoints) < len(observed.LocalEndpoints)
}

// decide returns the desired records, and what they omit because the hub or other members would refuse it. In a namespace that the
// Member does not allow, they are those that the hub stores: it refuses every other one, and they have the age of the export.
func (r *Reconciler) decide(known sources.Sources, own []clusterset.Slice) (records, Outcome) {
	if known.Export != nil && known.Hub.ForbidsNamespace(known.Key.Namespace) {
		return records{known.Hub.Local, known.Hub.LocalEndpoints}, Outcome{}
	}
	if known.Local == nil {
		return records{service: inactive(known)}, Outcome{}
	}
	desired := records{service: known.Record()}
	var tooMany error
	if known.PublishesAvailability() {
		desired.service, tooMany = withAvailability(desired.service, *known.Local, own)
	}
	if !known.PublishesAddresses() {
		return desired, Outcome{Surplus: surplusOf(tooMany)}
	}
	inRanges, refused := export.InRanges(own, known.Hub.LocalRanges())
	bounded, surplus := clusterset.Bounded(inRanges, clusterset.Slice.Count)
	outcome := Outcome{LeftOut: texts(refused), Surplus: surplusOf(surplus, tooMany)}
	for _, slice := range bounded {
		slice.Network = known.Hub.LocalNetwork
		desired.endpoints = append(desired.endpoints, record.EncodeEndpoints(known.Key, slice))
	}
	return desired, outcome
}

// withAvailability returns a record with the availability of an export, and an error that describes what exceeds the limits.
func withAvailability(service *hubv1alpha1.PublishedService, local clusterset.Export, own []clusterset.Slice) (*hubv1alpha1.PublishedService, error) {
	service = record.WithAvailability(service, export.Available(local.Ports, own), export.Terminating(local.Ports, own))
	if local.Type != mcsv1beta1.Headless {
		return service, nil
	}
	hostnames, leftOut, surplus := export.Hostnames(local.Ports, own)
	return record.WithHostnames(service, hostnames, leftOut), surplus
}

// surplusOf joins what exceeds limits; the result is empty if nothing does.
func surplusOf(errs ...error) string { return strings.Join(texts(errs), "; ") }

// inactive returns the inactive record of a ServiceExport that exports nothing at present, so that the export keeps its age (spec
// E6). It returns nil if the hub has no record, or if the service must not be exported at all.
func inactive(known sources.Sources) *hubv1alpha1.PublishedService {
	if known.Rejection == nil || known.Rejection.Reason == export.ReasonNamespaceReserved || known.Hub.Local == nil {
		return nil
	}
	record := known.Hub.Local.DeepCopy()
	record.Spec.Inactive, record.Spec.GrantedTo, record.Spec.ExportedAt = true, nil, known.Export.CreationTimestamp
	return record
}

// narrow writes to which clusters an export is granted if the record on the hub still admits others, before all else: the hub may refuse
// the rest, for example because a quota is full. It sets the record in observed to the written one.
func (r *Reconciler) narrow(ctx context.Context, desired *hubv1alpha1.PublishedService, observed *sources.Hub) error {
	if desired == nil || desired.Spec.GrantedTo == nil || observed.Local == nil || !admitsOthers(observed.Local, desired.Spec.GrantedTo) {
		return nil
	}
	narrowed := observed.Local.DeepCopy()
	narrowed.Spec.Inactive, narrowed.Spec.GrantedTo = true, desired.Spec.GrantedTo
	written, err := apply.Do(ctx, r.Hub, plan.PublishedService(narrowed, observed.Local))
	if len(written) > 0 {
		observed.Local = written[0]
	}
	return err
}

// admitsOthers reports whether clusters import a record that are not among the granted ones.
func admitsOthers(record *hubv1alpha1.PublishedService, granted *hubv1alpha1.GrantedTo) bool {
	if record.Spec.GrantedTo == nil {
		return !record.Spec.Inactive
	}
	return slices.ContainsFunc(record.Spec.GrantedTo.Clusters, func(id hubv1alpha1.GrantedCluster) bool { return !slices.Contains(granted.Clusters, id) })
}

// apply writes endpoints before their service, and deletes them after it, so that other members see a new service complete. Endpoints that
// can never be stored do not hold back their service. It returns the records that it has written.
func (r *Reconciler) apply(
	ctx context.Context, desired records, observed *sources.Hub, export loss,
) (services []*hubv1alpha1.PublishedService, endpoints []*hubv1alpha1.PublishedEndpoints, err error) {
	if err := r.narrow(ctx, desired.service, observed); err != nil {
		return nil, nil, err
	}
	service := plan.PublishedService(desired.service, observed.Local)
	slices := plan.PublishedEndpoints(desired.endpoints, observed.LocalEndpoints)
	if len(desired.endpoints) == 0 {
		if services, err = apply.Do(ctx, r.Hub, service); err == nil {
			_, err = apply.Do(ctx, r.Hub, slices)
		}
		return services, nil, err
	}
	endpoints, err = apply.Do(ctx, r.Hub, slices)
	if isSettled(err, observed.LocalMember, export) {
		var serviceErr error
		services, serviceErr = apply.Do(ctx, r.Hub, service)
		err = apply.Join(err, serviceErr)
	}
	return services, endpoints, err
}

// unstored returns what to do if the hub has not stored to which clusters an export is granted, because its kinds are those of an
// earlier version; empty if it has. Such a record is inactive for all clusters (A1).
func unstored(desired *hubv1alpha1.PublishedService, written []*hubv1alpha1.PublishedService) string {
	if desired == nil || desired.Spec.GrantedTo == nil || len(written) == 0 || written[0].Spec.GrantedTo != nil {
		return ""
	}
	return "it does not store to which clusters an export is granted, so no other cluster imports this one; the hub's administrator applies the CRDs of this version"
}

// highest returns the highest versions of this cluster's records of a service: those observed, and those written since.
func highest(observed sources.Hub, services []*hubv1alpha1.PublishedService, endpoints []*hubv1alpha1.PublishedEndpoints) hub.Versions {
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
