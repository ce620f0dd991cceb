// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imports creates the ServiceImport, derived Service and mirrored EndpointSlices of each service that any cluster exports.
// It is the only writer of these objects.
package imports

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/controllers/sources"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/reach"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// Reconciler imports one service at a time.
type Reconciler struct {
	Sources sources.Reader
	// Member reads this cluster from the same cache as Sources.
	Member client.Reader
	Writer apply.Writer
	// Allowed reports whether the hub was listed, or is unreachable, and this cluster may use its ID (spec K2). Before that,
	// existing objects stay as they are.
	Allowed func() bool
	// IPFamilies are the IP families of this cluster's Services.
	IPFamilies []corev1.IPFamily
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
	// GatewayReach returns which gateways of this cluster reach which other cluster.
	GatewayReach *reach.Reach
	// DefaultSources are the sources of imports that no policy selects; empty means all (P2).
	DefaultSources []policyv1alpha1.Source
	// Returns stores since when preferred sources that do not serve have been available.
	Returns *Returns
	// Refusals stores the refusals that were reported.
	Refusals *Refusals
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
	if !r.Allowed() { // check first: records must be read after the initial list of the hub
		return reconcile.Result{}, nil
	}
	r.own.begin(request.NamespacedName)
	defer r.own.end(request.NamespacedName)
	view, err := r.gather(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !r.Allowed() { // check again: another cluster's heartbeat with this ID may have arrived
		return reconcile.Result{}, nil
	}
	if view.namespaceState == namespaceNotFound {
		r.Metrics.update(request.NamespacedName, view, decision{})
		r.Returns.update(request.NamespacedName, nil, nil, r.Clock.Now())
		return reconcile.Result{}, nil
	}
	restored, err := r.restoreLabels(ctx, view)
	if len(view.opening) > 0 {
		r.GatewayReach.Await()
	}
	after := view.portsAfter // no event reports the end of a quarantine, nor that a gateway does not listen in time
	if err == nil && !restored {
		var wait time.Duration
		if wait, err = r.apply(ctx, view); after == 0 || wait > 0 && wait < after {
			after = wait
		}
	}
	if err != nil {
		// The time counts if the error is only that an unmanaged object is in the way.
		return reconcile.Result{RequeueAfter: after}, fmt.Errorf("import %s: %w", request.NamespacedName, err)
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// apply decides on the import and writes it. It returns the time after which a preferred source may serve again; 0 if none waits.
func (r *Reconciler) apply(ctx context.Context, v view) (time.Duration, error) {
	r.announceRefusals(v)
	decision := decide(v)
	r.Metrics.update(v.sources.Key, v, decision)
	r.Returns.update(v.sources.Key, v.routing.sources, decision.choice.Waiting, r.Clock.Now())
	switch decision.state {
	case exported:
		return decision.choice.Wait, r.write(ctx, v, decision)
	case withdrawn:
		return 0, r.withdraw(ctx, v)
	case undecided:
	}
	return 0, nil
}

// now returns the transition time of conditions.
func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.Clock.Now()) }
