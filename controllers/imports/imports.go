// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imports gives this cluster, for every service that is exported anywhere, its ServiceImport, derived Service
// and mirrored EndpointSlices. It is the only writer of these.
package imports

import (
	"context"
	"fmt"
	"slices"

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
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// Reconciler imports one service at a time.
type Reconciler struct {
	Sources sources.Reader
	// Member reads this cluster from the same cache as Sources.
	Member client.Reader
	Writer apply.Writer
	// Allowed reports whether the hub has been heard, or is away, and does not say that this cluster's ID is another's
	// (spec K2). Until then what this cluster holds stays as it is.
	Allowed func() bool
	// IPFamilies are those that this cluster's Services can have.
	IPFamilies []corev1.IPFamily
	// State returns what is known of a member's life, and Policies what becomes of the endpoints of silent ones.
	State    func(clusterset.ClusterID) liveness.State
	Policies liveness.Policies
	// Namespaces says into which namespaces services are imported.
	Namespaces NamespacePolicy
	// MetadataDomains are those whose labels and annotations are imported, beside keys without a domain.
	MetadataDomains []string
	// Refusals remembers what has been said of records that were refused.
	Refusals *Refusals
	// Unknown remembers which settings this cluster's API server does not know.
	Unknown *Unknown
	Events  events.EventRecorder
	Clock   clock.PassiveClock
	Metrics Metrics
}

// Add adds the controller to a manager.
func (r *Reconciler) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	options.Reconciler = queue.NewRetries(r)
	pacer := queue.NewPacer(r.Sources.Cluster, clock.RealClock{})
	return queue.AddController(mgr, "imports", options,
		source.Kind(members, &mcsv1beta1.ServiceImport{}, queue.Paced[*mcsv1beta1.ServiceImport](pacer, queue.SameName)),
		queue.Exports(members),
		source.Kind(members, &corev1.Service{}, queue.Typed[*corev1.Service](queue.SameName)),
		source.Kind(members, &corev1.Service{}, queue.Paced[*corev1.Service](pacer, caches.DerivedService)),
		source.Kind(members, &discoveryv1.EndpointSlice{}, queue.Typed[*discoveryv1.EndpointSlice](caches.SourceService)),
		source.Kind(members, &discoveryv1.EndpointSlice{}, queue.Paced[*discoveryv1.EndpointSlice](pacer, caches.MirroredService)),
		source.Kind(members, &corev1.Service{}, obstacles[*corev1.Service](r)),
		source.Kind(members, &discoveryv1.EndpointSlice{}, obstacles[*discoveryv1.EndpointSlice](r)),
		source.Kind(members, namespaceMetadata(), r.servicesOfNamespace()),
		queue.FromHub(r.Sources.Hub, pacer.Remote, r.everything),
	)
}

// everything returns the services that are exported or imported, here or elsewhere, and those of which anything is left here:
// first what the hub holds nothing of, then what was written there last. What has changed while nobody looked is found among
// these.
func (r *Reconciler) everything(ctx context.Context) ([]clusterset.ServiceKey, error) {
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
	recorded := r.Sources.Hub.Keys()
	held := sets.New(recorded...)
	unrecorded := slices.DeleteFunc(slices.Concat(exports, imports, derived), held.Has)
	return slices.Concat(unrecorded, recorded), nil
}

// Reconcile makes what this cluster holds of one service what its exporters offer.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.Allowed() { // before the hub's records are read: what is read must be what was heard
		return reconcile.Result{}, nil
	}
	view, err := r.gather(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !r.Allowed() { // and after: a record may have come that says that they are another cluster's
		return reconcile.Result{}, nil
	}
	if view.place == absent {
		r.Metrics.found(request.NamespacedName, view, decision{})
		return reconcile.Result{}, nil
	}
	reclaimed, err := r.reclaim(ctx, view)
	if err == nil && !reclaimed {
		err = r.carryOut(ctx, view)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("import %s: %w", request.NamespacedName, err)
	}
	return reconcile.Result{}, nil
}

// carryOut makes what this cluster holds what is decided.
func (r *Reconciler) carryOut(ctx context.Context, v view) error {
	r.announceRefusals(v)
	decision := decide(v)
	r.Metrics.found(v.known.Key, v, decision)
	switch decision.verdict {
	case exported:
		return r.write(ctx, v, decision)
	case withdrawn:
		return r.withdraw(ctx, v)
	case undecided:
	}
	return nil
}

// now returns the time of a condition's transition.
func (r *Reconciler) now() metav1.Time { return metav1.NewTime(r.Clock.Now()) }
