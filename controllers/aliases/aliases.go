// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package aliases gives Services with the annotation tombolo-mcs.io/import the endpoints of the import that it names (L1). It copies the
// mirrored slices of the import, which controller imports has written, so an alias follows liveness, policies and gateways. It is the only
// writer of the EndpointSlices of aliases, and of the condition tombolo-mcs.io/Alias of Services.
package aliases

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
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
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reconciler writes the EndpointSlices and the condition of one alias at a time.
type Reconciler struct {
	Cluster clusterset.ClusterID
	// Member reads this cluster, from a cache with the indexes of AddIndexes. Live reads from its API server: the cache may have only
	// digests of the endpoints of mirrored slices.
	Member, Live client.Reader
	Writer       apply.Writer
	Events       events.EventRecorder
	Clock        clock.PassiveClock
}

// Add adds the controller to a manager.
func (r *Reconciler) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	options.Reconciler = queue.NewRetries(r)
	return queue.AddController(mgr, "aliases", options,
		source.Kind(members, &corev1.Service{}, queue.Typed[*corev1.Service](concerned)),
		source.Kind(members, &discoveryv1.EndpointSlice{}, queue.Typed[*discoveryv1.EndpointSlice](caches.NamedForAlias)),
		source.Kind(members, &discoveryv1.EndpointSlice{}, aliasesOf[*discoveryv1.EndpointSlice](r.Member, caches.MirroredService)),
		source.Kind(members, &discoveryv1.EndpointSlice{}, aliasesWithPods(r.Member)),
		source.Kind(members, &mcsv1beta1.ServiceImport{}, aliasesOf[*mcsv1beta1.ServiceImport](r.Member, queue.SameName), predicate.Or(
			queue.SpecChanges[*mcsv1beta1.ServiceImport](), managedChanges(),
		)),
	)
}

// managedChanges drops updates of ServiceImports that are managed before and after, or not managed before and after.
func managedChanges() predicate.TypedPredicate[*mcsv1beta1.ServiceImport] {
	return predicate.TypedFuncs[*mcsv1beta1.ServiceImport]{UpdateFunc: func(e event.TypedUpdateEvent[*mcsv1beta1.ServiceImport]) bool {
		return clusterset.IsManaged(e.ObjectOld.Labels) != clusterset.IsManaged(e.ObjectNew.Labels)
	}}
}

// concerned returns the key of a Service that is an alias, or has the condition of one. The agent may write nothing in the reserved
// namespaces, which have no imports.
func concerned(object client.Object) (types.NamespacedName, bool) {
	service, ok := object.(*corev1.Service)
	return client.ObjectKeyFromObject(object), ok && !clusterset.IsReservedNamespace(object.GetNamespace()) && (clusterset.IsAlias(service) || hasCondition(service))
}

func hasCondition(service *corev1.Service) bool {
	return meta.FindStatusCondition(service.Status.Conditions, conditions.TypeAlias) != nil
}

// aliasesOf returns an event handler that enqueues the aliases of the import that keyOf returns for an object, if any.
func aliasesOf[T client.Object](from client.Reader, keyOf func(client.Object) (types.NamespacedName, bool)) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, object T) []reconcile.Request {
		key, ok := keyOf(object)
		if !ok {
			return nil
		}
		list := &corev1.ServiceList{}
		if err := from.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexAliases: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "cannot list the aliases of an import", "import", key)
		}
		requests := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
		}
		return requests
	})
}

// aliasesWithPods returns an event handler that enqueues an alias if the EndpointSlices of its own pods change.
func aliasesWithPods(from client.Reader) handler.TypedEventHandler[*discoveryv1.EndpointSlice, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, slice *discoveryv1.EndpointSlice) []reconcile.Request {
		key, ok := caches.SourceService(slice)
		service := &corev1.Service{}
		if !ok || clusterset.IsReservedNamespace(key.Namespace) {
			return nil
		}
		exists, err := caches.Get(ctx, from, key, service)
		if err != nil {
			log.FromContext(ctx).Error(err, "cannot read the Service of an EndpointSlice", "service", key)
		}
		if !exists || !clusterset.IsAlias(service) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	})
}

// Reconcile updates one alias, or removes what is left of it.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	v, err := r.gather(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decide(v)
	if d.kept {
		return reconcile.Result{}, nil
	}
	if unread := slices.Concat(d.unread, unreadSlices(plan.EndpointSlices(d.slices, v.existing))); len(unread) > 0 {
		if v.mirrored, err = r.readLive(ctx, v.mirrored, unread); err != nil {
			return reconcile.Result{}, err
		}
		d = decide(v)
	}
	err = r.write(ctx, v, d)
	if apply.IsRefused(err) {
		d.condition = new(conditions.AliasNotWritten(errors.New(conditions.EventNote(err.Error()))))
	}
	if err = apply.Join(err, r.writeStatus(ctx, v, d)); err != nil {
		return reconcile.Result{}, fmt.Errorf("alias %s: %w", request.NamespacedName, err)
	}
	return reconcile.Result{}, nil
}

// gather reads the input of the decision from the cache.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (view, error) {
	v := view{cluster: r.Cluster}
	existing := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, existing, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexAliasSlices: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return view{}, fmt.Errorf("list EndpointSlices of alias %s: %w", key, err)
	}
	v.existing = caches.Pointers(existing.Items)
	service := &corev1.Service{}
	exists, err := caches.Get(ctx, r.Member, key, service)
	if err != nil || !exists || !service.DeletionTimestamp.IsZero() {
		return v, err
	}
	v.service = service
	name, refused := clusterset.AliasImport(service)
	if !clusterset.IsAlias(service) || refused != nil {
		return v, nil //nolint:nilerr // decide reports it
	}
	serviceImport := &mcsv1beta1.ServiceImport{}
	if exists, err = caches.Get(ctx, r.Member, client.ObjectKey{Namespace: key.Namespace, Name: name}, serviceImport); err != nil {
		return view{}, err
	}
	if exists && clusterset.IsManaged(serviceImport.Labels) {
		v.serviceImport = serviceImport
	}
	mirrored := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, mirrored, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexMirror: name}, client.UnsafeDisableDeepCopy); err != nil {
		return view{}, fmt.Errorf("list mirrored EndpointSlices of %s/%s: %w", key.Namespace, name, err)
	}
	v.mirrored = caches.Pointers(mirrored.Items)
	pods := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, pods, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexSource: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return view{}, fmt.Errorf("list EndpointSlices of the pods of alias %s: %w", key, err)
	}
	v.pods = caches.Pointers(pods.Items)
	return v, nil
}

// unreadSlices returns the names of the mirrored slices whose endpoints are to be written, but of which only the digest is known.
func unreadSlices(changes []plan.Change[*discoveryv1.EndpointSlice]) []string {
	var names []string
	for _, change := range changes {
		if _, mirrored, ok := clusterset.AliasOf(change.Object.Name); ok && change.Verb != plan.Delete && plan.IsCondensed(change.Object.Endpoints) {
			names = append(names, mirrored)
		}
	}
	return names
}

// readLive returns mirrored slices of which the named ones are as the API server has them. Those that it does not have are left out.
func (r *Reconciler) readLive(ctx context.Context, mirrored []*discoveryv1.EndpointSlice, names []string) ([]*discoveryv1.EndpointSlice, error) {
	result := make([]*discoveryv1.EndpointSlice, 0, len(mirrored))
	for _, slice := range mirrored {
		if !slices.Contains(names, slice.Name) {
			result = append(result, slice)
			continue
		}
		live := &discoveryv1.EndpointSlice{}
		exists, err := caches.Get(ctx, r.Live, client.ObjectKeyFromObject(slice), live)
		if err != nil {
			return nil, err
		}
		if exists {
			result = append(result, live)
		}
	}
	return result, nil
}

// write writes the EndpointSlices of an alias. It deletes none while the others are not written, unless they are refused.
func (r *Reconciler) write(ctx context.Context, v view, d decision) error {
	first, last := plan.AddedThenRemoved(d.slices, v.existing)
	_, err := apply.Do(ctx, r.Writer, first)
	if err != nil && !apply.IsRefused(err) {
		return err
	}
	_, lastErr := apply.Do(ctx, r.Writer, last)
	return apply.Join(err, lastErr)
}

// writeStatus sets or removes the condition of an alias, and sends an Event if the condition reports something new that is to be mended.
func (r *Reconciler) writeStatus(ctx context.Context, v view, d decision) error {
	if v.service == nil || d.condition == nil && !hasCondition(v.service) {
		return nil
	}
	status := v.service.Status
	status.Conditions = slices.Clone(status.Conditions)
	if d.condition == nil {
		meta.RemoveStatusCondition(&status.Conditions, conditions.TypeAlias)
	} else {
		status.Conditions = conditions.SetOne(status.Conditions, *d.condition, v.service.Generation, metav1.NewTime(r.Clock.Now()))
	}
	before := meta.FindStatusCondition(v.service.Status.Conditions, conditions.TypeAlias)
	written, err := apply.Do(ctx, r.Writer, plan.ServiceStatus(status, v.service))
	for _, service := range written {
		after := meta.FindStatusCondition(service.Status.Conditions, conditions.TypeAlias)
		if after != nil && after.Reason != conditions.ReasonAliased && (before == nil || before.Message != after.Message) {
			r.Events.Eventf(service, nil, corev1.EventTypeWarning, after.Reason, "Alias", "%s", conditions.EventNote(after.Message))
		}
	}
	return err
}
