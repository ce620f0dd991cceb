// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imports creates the ServiceImport, derived Service and mirrored EndpointSlices of each service that any cluster exports.
// It is the only writer of these objects.
package imports

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reconciler imports one service at a time.
type Reconciler struct {
	Sources gather.Reader
	// Member reads this cluster from the same cache as Sources.
	Member client.Reader
	Writer apply.Writer
	// Allowed reports whether the hub was listed, or is unreachable, and this cluster may use its ID (spec K2). Before that,
	// existing objects stay as they are.
	Allowed func() bool
	// IPFamilies are the IP families of this cluster's Services, and ServiceRanges returns the ranges of their addresses.
	IPFamilies    []corev1.IPFamily
	ServiceRanges func(context.Context) ([]netip.Prefix, error)
	// State returns the state of a member. Policies are the policies for endpoints of silent members.
	State    func(clusterset.ClusterID) liveness.State
	Policies liveness.Policies
	// Namespaces selects the namespaces into which services are imported.
	Namespaces NamespacePolicy
	// MetadataDomains are the domains whose labels and annotations are imported. Keys without a domain always are.
	MetadataDomains []string
	// GatewayPorts allocates the listening ports of this cluster's gateways; nil in a cluster without an agent namespace.
	GatewayPorts *GatewayPorts
	// VirtualIPs counts the virtual IPs of this cluster; nil in a cluster without an agent namespace.
	VirtualIPs *VirtualIPs
	// Retained stores the addresses of imports that do not exist for a while; nil in a cluster without an agent namespace.
	Retained *Retained
	// GatewayReach returns which gateways of this cluster reach which other cluster.
	GatewayReach *reach.Reach
	// DefaultSources are the sources of imports that no policy selects; empty means all (P2).
	DefaultSources []policyv1alpha1.Source
	// Returns stores since when preferred sources that do not serve have been available.
	Returns *Returns
	// Reported stores the states that Events have reported.
	Reported *Reported
	// Unsupported stores the settings that this cluster's API server does not support.
	Unsupported *UnsupportedSettings
	Events      events.EventRecorder
	Clock       clock.PassiveClock
	Metrics     Metrics

	own ownWrites
}

// Add adds the controller to a manager.
func (r *Reconciler) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	options.Reconciler = queue.NewRetries(r)
	pacer := queue.NewPacer(r.Sources.Cluster, clock.RealClock{})
	return queue.AddController(mgr, "imports", options,
		queue.Kind(members, &mcsv1beta1.ServiceImport{}, queue.Paced[*mcsv1beta1.ServiceImport](pacer, queue.SameName)),
		queue.Exports(members),
		queue.Kind(members, &corev1.Service{}, queue.OfExports[*corev1.Service](r.Sources.HasExport, queue.SameName)),
		queue.Kind(members, &corev1.Service{}, queue.Paced[*corev1.Service](pacer, caches.DerivedService)),
		queue.Kind(members, &discoveryv1.EndpointSlice{}, queue.OfExports[*discoveryv1.EndpointSlice](r.Sources.HasExport, caches.SourceService)),
		queue.Kind(members, &discoveryv1.EndpointSlice{}, r.own.without(queue.Paced[*discoveryv1.EndpointSlice](pacer, caches.MirroredService))),
		queue.Kind(members, &corev1.Service{}, queue.Paced[*corev1.Service](pacer, caches.VirtualIPService)),
		queue.Kind(members, &discoveryv1.EndpointSlice{}, queue.Paced[*discoveryv1.EndpointSlice](pacer, caches.VirtualIPService)),
		queue.Kind(members, &corev1.Service{}, foreignObjects[*corev1.Service](r)),
		queue.Kind(members, &discoveryv1.EndpointSlice{}, foreignObjects[*discoveryv1.EndpointSlice](r)),
		queue.Kind(members, caches.NamespaceMetadata(), r.servicesOfNamespace()),
		queue.Kind(members, &discoveryv1.EndpointSlice{}, r.importsOfGateways()),
		source.Func(r.gatewayChanges),
		queue.Kind(members, &policyv1alpha1.ServiceImportRoutingPolicy{}, r.importsOfPolicy(), queue.SpecChanges[*policyv1alpha1.ServiceImportRoutingPolicy]()),
		queue.Kind(members, &corev1.Service{}, r.gatewayService()),
		firstProbe{r.GatewayReach},
		queue.FromHub(r.Sources.Hub, pacer.Remote, r.allKeys),
	)
}

// allKeys returns the services that are exported or imported, and those with remaining objects in this cluster: first those without
// a record on the hub, then those with the most recent records. It finds the changes that no event has reported.
func (r *Reconciler) allKeys(ctx context.Context) ([]clusterset.ServiceKey, error) {
	exports, err := r.Sources.ExportKeys(ctx)
	if err != nil {
		return nil, err
	}
	imports, err := r.Sources.ImportKeys(ctx)
	if err != nil {
		return nil, err
	}
	derived, err := r.Sources.DerivedKeys(ctx)
	if err != nil {
		return nil, err
	}
	onHub := r.Sources.Hub.Keys()
	published := sets.New(onHub...)
	others := slices.DeleteFunc(slices.Concat(exports, imports, derived), published.Has)
	return slices.Concat(others, onHub), nil
}

// Reconcile updates the import of one service.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := request.NamespacedName
	if !r.Allowed() { // check first: records must be read after the initial list of the hub
		return reconcile.Result{}, nil
	}
	r.own.begin(key)
	defer r.own.end(key)
	observed, err := r.gather(ctx, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !r.Allowed() { // check again: another cluster's heartbeat with this ID may have arrived
		return reconcile.Result{}, nil
	}
	done, err := r.settle(ctx, observed)
	r.Metrics.update(observed, done)
	r.Returns.update(key, observed.Routing.Sources, done.Waiting, observed.Now)
	if err = cmp.Or(err, done.Err()); err != nil {
		return reconcile.Result{RequeueAfter: done.After}, fmt.Errorf("import %s: %w", key, err)
	}
	return reconcile.Result{RequeueAfter: done.After}, nil
}

// settle plans and applies until nothing differs, and returns the last plan. It ends early if the result of a write is not known, or a plan
// was stale.
func (r *Reconciler) settle(ctx context.Context, observed importing.Observed) (importing.Plan, error) {
	r.send(observed.Sources.Key, observed.RefusedRecords())
	next := importing.Plan{}
	for range importing.Rounds {
		next = importing.PlanOf(observed)
		if next.AwaitsPorts {
			r.GatewayReach.Await()
		}
		outcome, err := r.apply(ctx, observed, next)
		if err != nil {
			return next, err
		}
		observed = observed.With(next, outcome)
		r.Unsupported.add(observed.Unsupported)
		if !outcome.IsAsPlanned() {
			continue
		}
		r.send(observed.Sources.Key, next.Events...)
		if next.IsLast {
			return next, nil
		}
	}
	return next, fmt.Errorf("its objects still differ after %d plans", importing.Rounds)
}

// send sends Events. An Event about a state is sent if the state differs from the one that was sent before.
func (r *Reconciler) send(key clusterset.ServiceKey, all ...importing.Event) {
	for _, event := range all {
		if !event.IsState || r.Reported.isNew(key, event.Reason, event.Note) {
			r.Events.Eventf(event.Regarding, nil, corev1.EventTypeWarning, event.Reason, "Import", "%s", event.Note)
		}
	}
}
