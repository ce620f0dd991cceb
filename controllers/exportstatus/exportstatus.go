// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exportstatus writes the status of ServiceExports. It is its only writer.
package exportstatus

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reconciler writes the conditions of one ServiceExport at a time.
type Reconciler struct {
	Sources  gather.Reader
	Member   apply.Writer
	Outcomes *publish.Outcomes
	// Refusal returns why this cluster may not publish; "" if it may.
	Refusal func() string
	// Unreached returns the time since which the hub is not reached; zero if it is.
	Unreached func() time.Time
	Events    events.EventRecorder
	Clock     clock.PassiveClock
}

// Add adds the controller to a manager.
func (r *Reconciler) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	options.Reconciler = queue.NewRetries(r)
	return queue.AddController(mgr, "exportstatus", options,
		// Also those that exist at the start: whether an export is valid does not depend on the hub.
		source.Kind(members, &mcsv1beta1.ServiceExport{}, queue.Typed[*mcsv1beta1.ServiceExport](queue.SameName)),
		queue.Kind(members, &corev1.Service{}, queue.OfExports[*corev1.Service](r.Sources.HasExport, queue.SameName)),
		queue.FromHub(r.Sources.Hub, queue.NewPacer(r.Sources.Cluster, clock.RealClock{}).Exports, r.Sources.ExportKeys),
		queue.Grants(members, r.Sources.ExportKeysIn),
		queue.OfMembers(r.Sources.Hub, r.Sources.KeysByCluster),
		r.Outcomes.Source(),
	)
}

// Reconcile writes the status of one ServiceExport if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if exported, err := r.Sources.HasExport(ctx, request.NamespacedName); err != nil || !exported {
		return reconcile.Result{}, err
	}
	known, err := r.Sources.Read(ctx, request.NamespacedName)
	if err != nil || known.Export == nil {
		return reconcile.Result{}, err
	}
	desired := r.decide(known)
	if wait := untilReported(known, desired, r.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	before := known.Export.Status.Conditions
	status := mcsv1beta1.ServiceExportStatus{
		Conditions: conditions.Set(kept(known.Export, desired), desired, known.Export.Generation, metav1.NewTime(r.Clock.Now())),
	}
	changes := plan.ServiceExportStatus(status, known.Export)
	if r.Refusal() != "" && apply.Reverts(r.Member, changes) { // the agent to which this one yields runs in this cluster, and writes the status
		return reconcile.Result{}, nil
	}
	written, err := apply.Do(ctx, r.Member, changes)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("write the status of ServiceExport %s: %w", request.NamespacedName, err)
	}
	for _, export := range written {
		r.announce(export, before)
	}
	return reconcile.Result{}, nil
}

// reportedAge is the age at which a new export that the hub does not store yet is reported as Pending. Usually the hub stores it by then,
// also if some hundred services are exported at once, and the status is written once.
const reportedAge = 5 * time.Second

// untilReported returns the time until the first status of an export is written; 0 if it is written now. An export that the clock of
// the API server dates in the future does not wait, nor one that gateways serve: they read in its status that it is valid.
func untilReported(known sources.Sources, desired []metav1.Condition, now time.Time) time.Duration {
	ready := meta.FindStatusCondition(desired, string(mcsv1beta1.ServiceExportConditionReady))
	isNew := known.Rejection == nil && !known.PublishesAvailability() && len(known.Export.Status.Conditions) == 0
	if !isNew || ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != string(mcsv1beta1.ServiceExportReasonPending) {
		return 0
	}
	age := now.Sub(known.Export.CreationTimestamp.Time)
	if age < 0 || age >= reportedAge {
		return 0
	}
	return reportedAge - age
}

// decide returns the conditions whose state is known. The others stay as they are, because nothing contradicts them after a restart
// of the agent, or while the hub is unreachable. It reads the hub's data only from known, which is of one moment: after a later
// list, records would look missing.
func (r *Reconciler) decide(known sources.Sources) []metav1.Condition {
	result := []metav1.Condition{conditions.Valid(known.Rejection)}
	if known.Rejection != nil {
		return append(result, conditions.Exported(known.Rejection, conditions.Publication{}), conditions.Conflict(merge.Merged{}))
	}
	if clusterset.HasProxyProtocol(known.Export) && known.Hub.Synced() { // the network and the other members are known
		result = append(result, proxyProtocol(known))
	}
	published := r.publication(known)
	if known.Hub.NotAllowed != nil {
		return append(result, conditions.Exported(nil, published), conditions.Conflict(merge.Merged{}))
	}
	existing := meta.FindStatusCondition(known.Export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady))
	switch {
	case published.Hub == conditions.HubSynced || published.Failure != "" || existing == nil:
		exported := conditions.Exported(nil, published)
		result = append(result, exported)
		if reason := r.outdated(known, exported); reason != "" {
			result = append(result, conditions.Outdated(reason))
		}
	case conditions.IsPending(*existing): // it may name an earlier reason; the hub has not contradicted Outdated
		result = append(result, conditions.Exported(nil, published))
		if outdated := meta.FindStatusCondition(known.Export.Status.Conditions, conditions.TypeOutdated); outdated != nil {
			result = append(result, *outdated)
		}
	}
	if known.Hub.Local != nil && known.Hub.Synced() { // the age is known, which decides the merge
		merged, _ := merge.Merge(known.AllExports())
		result = append(result, conditions.Conflict(merged))
	}
	return result
}

// proxyProtocol returns the condition of an export whose ports have a PROXY protocol header (G14).
func proxyProtocol(known sources.Sources) metav1.Condition {
	p := conditions.ProxyProtocol{HasGateways: known.Gateways != nil, Direct: known.Direct}
	p.Ports, p.Wrong = export.ProxyPorts(known.Export, known.Local.Ports)
	if granted := known.Local.GrantedTo; granted != nil {
		p.Direct = slices.DeleteFunc(slices.Clone(p.Direct), func(id clusterset.ClusterID) bool { return !slices.Contains(granted, id) })
	}
	return p.Condition()
}

// kept returns the existing conditions that still apply.
func kept(of *mcsv1beta1.ServiceExport, desired []metav1.Condition) []metav1.Condition {
	existing := of.Status.Conditions
	if !clusterset.HasProxyProtocol(of) || meta.IsStatusConditionFalse(desired, string(mcsv1beta1.ServiceExportConditionValid)) {
		meta.RemoveStatusCondition(&existing, conditions.TypeProxyProtocol)
	}
	isDecided := meta.FindStatusCondition(desired, string(mcsv1beta1.ServiceExportConditionReady)) != nil
	if isDecided && meta.FindStatusCondition(desired, conditions.TypeOutdated) == nil {
		meta.RemoveStatusCondition(&existing, conditions.TypeOutdated) // it copies
	}
	return existing
}

// outdated returns why other clusters use an older version of an export; empty if they do not, or none is known. Without a record on the
// hub, only the status says that it stored one.
func (r *Reconciler) outdated(known sources.Sources, ready metav1.Condition) string {
	switch {
	case ready.Status == metav1.ConditionTrue:
		return ""
	case known.Hub.Local == nil && conditions.WasStored(known.Export.Status.Conditions):
		return conditions.ReasonRecordLost
	case known.Hub.Local != nil && !record.IsInactive(known.Hub.Local) && r.Outcomes.Of(known.Key).Failure != "":
		return conditions.ReasonUpdateRefused
	}
	return ""
}

func (r *Reconciler) publication(known sources.Sources) conditions.Publication {
	outcome := r.Outcomes.Of(known.Key)
	result := conditions.Publication{
		Hub:       conditions.HubUnknown,
		Published: known.IsPublished(),
		Unreached: r.Unreached(), Unanswered: outcome.Unanswered,
		GrantedTo: known.Local.GrantedTo, GrantSurplus: known.GrantSurplus, NoMembers: known.NoMembers,
		Failure:   outcome.Failure,
		LeftOut:   outcome.LeftOut,
		NotPods:   outcome.NotPods,
		Surplus:   outcome.Surplus,
		HostNames: outcome.HostNames,
		Reserved:  export.Reserved(known.Export),
	}
	switch refusal := r.Refusal(); {
	case refusal != "":
		result.Failure = refusal
	case known.Hub.NotAllowed != nil: // the hub may store an old record, but no member accepts it
		result.NotAllowed = known.Hub.NotAllowed.Error()
	case known.Hub.Synced():
		result.Hub = conditions.HubSynced
	case known.Hub.Listed:
		result.Failure = fmt.Sprintf("it has no Member for cluster ID %q; the hub's administrator lets the cluster join first", r.Sources.Cluster)
	}
	return result
}

// announce sends an Event for each condition that has become bad, or is bad for another reason than before.
func (r *Reconciler) announce(export *mcsv1beta1.ServiceExport, before []metav1.Condition) {
	for _, condition := range export.Status.Conditions {
		previous := meta.FindStatusCondition(before, condition.Type)
		if !isBad(condition) || previous != nil && previous.Status == condition.Status && previous.Reason == condition.Reason {
			continue
		}
		r.Events.Eventf(export, nil, corev1.EventTypeWarning, conditions.EventReason(condition.Reason), "Export",
			"%s", conditions.EventNote(condition.Message))
	}
}

// isBad reports whether a condition requires an action of the export's owner.
func isBad(condition metav1.Condition) bool {
	switch condition.Type {
	case string(mcsv1beta1.ServiceExportConditionValid):
		return condition.Status == metav1.ConditionFalse
	case string(mcsv1beta1.ServiceExportConditionReady):
		return conditions.IsRefused(condition)
	case conditions.TypeProxyProtocol:
		return condition.Status == metav1.ConditionFalse
	case string(mcsv1beta1.ServiceExportConditionConflict):
		return condition.Status == metav1.ConditionTrue
	}
	return false
}
