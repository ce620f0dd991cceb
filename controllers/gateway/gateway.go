// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway gives the gateways of this cluster their identity, publishes on the hub how other members reach them, and publishes
// RemoteGateways with the addresses of the gateways of other members. It is the only writer of the two Secrets, of this cluster's PublishedGateway and of the
// RemoteGateways. It does so if the Service of the gateways exists.
package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// staleRetry is the delay after which a write is retried whose object has changed meanwhile. The Secrets are not watched.
const staleRetry = time.Second

// clockCheck is the longest time until what depends on the time of day is decided again: timers do not notice that the clock was set.
const clockCheck = 10 * time.Minute

// Reconciler reconciles the gateways of this cluster. Its only request is for their Service.
type Reconciler struct {
	Sources gather.Reader
	// Live reads this cluster without a cache: the agent may not watch Secrets, and a cluster without gateways does not serve
	// RemoteGateways.
	Live client.Reader
	// Remote watches RemoteGateways and GatewayStatuses in the agent's namespace, the only one in which the agent may read them, and nodes.
	Remote cache.Cache
	// Reach receives what the gateways report.
	Reach           *reach.Reach
	ToMember, ToHub apply.Writer
	// Allowed reports whether this cluster may use its ID now (spec K2).
	Allowed func() bool
	// MayWrite reports whether this process may write the records of this cluster now, and OnMayWrite calls a function when it may.
	MayWrite   func() bool
	OnMayWrite func(notify func())
	Reverts    *queue.Reverts
	// Addresses replace those of the Service.
	Addresses []hubv1alpha1.GatewayAddress
	Events    events.EventRecorder
	Clock     clock.PassiveClock

	// watchRemote starts the watches of RemoteGateways and GatewayStatuses. It is called if the Service exists.
	watchRemote func()
	// watchNodes starts the watch of nodes. It is called if other members reach the gateways at the addresses of nodes.
	watchNodes func()
	presence   presence
	// RecordRefused is 1 while the hub refuses the record of the gateways.
	RecordRefused prometheus.Gauge

	// warned are the texts of the last Events, by their reason and cluster.
	warned map[warning]string
}

// Add adds the controller to a manager.
func (r *Reconciler) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	options.Reconciler = queue.NewRetries(r)
	options.MaxConcurrentReconciles = 1
	service := r.Sources.GatewayService()
	only := func(keyOf func(client.Object) (types.NamespacedName, bool)) func(client.Object) (types.NamespacedName, bool) {
		return func(object client.Object) (types.NamespacedName, bool) {
			key, ok := keyOf(object)
			return key, ok && key == service
		}
	}
	remote := source.Kind(r.Remote, &gatewayv1alpha1.RemoteGateway{}, queue.Typed[*gatewayv1alpha1.RemoteGateway](
		func(object client.Object) (types.NamespacedName, bool) {
			return service, object.GetNamespace() == service.Namespace
		}))
	nodes := source.Kind(r.Remote, &corev1.Node{}, queue.Typed[*corev1.Node](
		func(client.Object) (types.NamespacedName, bool) { return service, true }), addressChanges())
	reports := source.Kind(r.Remote, &gatewayv1alpha1.GatewayStatus{}, r.reports())
	return queue.AddController(mgr, "gateway", options,
		source.Kind(members, &corev1.Service{}, queue.Typed[*corev1.Service](only(queue.SameName))),
		source.Kind(members, &discoveryv1.EndpointSlice{}, queue.Typed[*discoveryv1.EndpointSlice](only(caches.SourceService))),
		source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			enqueue := func() { queue.Enqueue(q, 0, service) }
			// The sources wait for the CRDs, which only clusters with gateways have. What has changed since the last reconciliation and
			// before the first list is no event.
			r.watchRemote = sync.OnceFunc(func() {
				go func() {
					err := errors.Join(remote.Start(ctx, q), reports.Start(ctx, q), remote.WaitForSync(ctx), reports.WaitForSync(ctx))
					if err != nil && ctx.Err() == nil {
						log.FromContext(ctx).Error(err, "cannot watch RemoteGateways and GatewayStatuses")
					}
					enqueue()
				}()
			})
			r.watchNodes = sync.OnceFunc(func() {
				go func() {
					if err := nodes.Start(ctx, q); err != nil && ctx.Err() == nil {
						log.FromContext(ctx).Error(err, "cannot watch the nodes of the gateways")
					}
				}()
			})
			r.subscribe(enqueue)
			return nil
		}),
	)
}

// addressChanges drops updates of nodes that leave their addresses as they are: a node renews its status all the time.
func addressChanges() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
		return !slices.Equal(e.ObjectOld.Status.Addresses, e.ObjectNew.Status.Addresses)
	}}
}

// CompactNode is the transform of the cache of nodes: it keeps their addresses.
func CompactNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Status:     corev1.NodeStatus{Addresses: node.Status.Addresses},
	}, nil
}

// reports returns the handler of what the gateways report. It enqueues nothing.
func (r *Reconciler) reports() handler.TypedEventHandler[*gatewayv1alpha1.GatewayStatus, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	type status = *gatewayv1alpha1.GatewayStatus
	return handler.TypedFuncs[status, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[status], _ queue) {
			r.Reach.Report(e.Object.Name, &e.Object.Report)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[status], _ queue) {
			r.Reach.Report(e.ObjectNew.Name, &e.ObjectNew.Report)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[status], _ queue) { r.Reach.Report(e.Object.Name, nil) },
	}
}

// subscribe calls enqueue now, and for each change on the hub that can matter: of Members, of gateways, and of this cluster's state.
func (r *Reconciler) subscribe(enqueue func()) {
	r.Sources.Hub.Subscribe(func(event hub.Event) {
		if event.All {
			enqueue()
		}
	})
	r.Sources.Hub.SubscribeMembers(func(event hub.MemberEvent) {
		if event.Type != hub.HeartbeatRenewed {
			enqueue()
		}
	})
	r.OnMayWrite(enqueue)
	enqueue()
}

// Reconcile updates what belongs to the gateways, or deletes it from the hub and for the gateways if there are none.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !r.Allowed() || !r.Sources.Hub.InitialListDone() {
		return reconcile.Result{}, nil
	}
	v, err := r.gather(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if v.service == nil && !v.grace.IsZero() { // directly after a start
		return reconcile.Result{RequeueAfter: r.until(v.grace)}, nil
	}
	var next time.Time
	remoteErr := r.writeRemote(ctx, v)
	if v.service != nil {
		r.watchRemote()
		next, err = r.writeOwn(ctx, v)
	} else {
		_, err = r.publish(ctx, v, nil)
	}
	if !v.grace.IsZero() && (next.IsZero() || v.grace.Before(next)) {
		next = v.grace
	}
	switch err := apply.Join(remoteErr, err); {
	case errors.Is(err, apply.ErrStale):
		return reconcile.Result{RequeueAfter: staleRetry}, nil
	case err != nil:
		return reconcile.Result{}, err
	case next.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: r.until(next)}, nil
}

// until returns the delay until a time, which it bounds.
func (r *Reconciler) until(at time.Time) time.Duration {
	return min(max(staleRetry, at.Sub(r.Clock.Now())), clockCheck)
}

// managed returns the labels of an object that the agent manages.
func managed() map[string]string {
	return map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}
}
