// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Routing writes the status of the policies of one namespace at a time. The request without a name is for all.
type Routing struct {
	Cluster clusterset.ClusterID
	Hub     *hub.Store
	// Member reads this cluster from a cache.
	Member client.Reader
	Writer apply.Writer
	Clock  clock.PassiveClock
}

// Add adds the controller to a manager.
func (r *Routing) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	options.Reconciler = queue.NewRetries(r)
	options.MaxConcurrentReconciles = 1
	return queue.AddController(mgr, "routing", options,
		source.Kind(members, &policyv1alpha1.ServiceImportRoutingPolicy{}, queue.Typed[*policyv1alpha1.ServiceImportRoutingPolicy](namespaceOf)),
		source.Kind(members, &mcsv1beta1.ServiceImport{}, queue.Typed[*mcsv1beta1.ServiceImport](namespaceOf), typeChanges()),
		source.Kind(members, &corev1.Service{}, queue.Typed[*corev1.Service](namespaceOf), selectorChanges()),
		queue.FromMembers(r.Hub, types.NamespacedName{}),
	)
}

func namespaceOf(object client.Object) (types.NamespacedName, bool) {
	return types.NamespacedName{Name: object.GetNamespace()}, true
}

// typeChanges filters the updates of ServiceImports that do not matter to policies.
func typeChanges() predicate.TypedPredicate[*mcsv1beta1.ServiceImport] {
	return predicate.TypedFuncs[*mcsv1beta1.ServiceImport]{UpdateFunc: func(e event.TypedUpdateEvent[*mcsv1beta1.ServiceImport]) bool {
		derived := func(i *mcsv1beta1.ServiceImport) string { return i.Annotations[clusterset.AnnotationDerivedService] }
		return e.ObjectOld.Spec.Type != e.ObjectNew.Spec.Type || derived(e.ObjectOld) != derived(e.ObjectNew)
	}}
}

// selectorChanges filters the events of derived Services that get a selector, or lose it: a policy has no effect on their import.
func selectorChanges() predicate.TypedPredicate[*corev1.Service] {
	selects := func(s *corev1.Service) bool { return clusterset.IsManaged(s.Labels) && len(s.Spec.Selector) > 0 }
	return predicate.TypedFuncs[*corev1.Service]{
		CreateFunc: func(e event.TypedCreateEvent[*corev1.Service]) bool { return selects(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Service]) bool {
			return selects(e.ObjectOld) != selects(e.ObjectNew)
		},
		DeleteFunc: func(event.TypedDeleteEvent[*corev1.Service]) bool { return false }, // its import changes too
	}
}

// Reconcile writes the status of the policies of one namespace, or of all.
func (r *Routing) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	policies, err := caches.ListRoutingPolicies(ctx, r.Member, request.Name)
	if err != nil || len(policies) == 0 {
		return reconcile.Result{}, err
	}
	v := routingView{own: r.Cluster, properties: r.Hub.Properties(), synced: r.Hub.Synced()}
	if v.imports, err = r.imports(ctx, request.Name); err != nil {
		return reconcile.Result{}, err
	}
	now := metav1.NewTime(r.Clock.Now())
	var changes []plan.Change[*policyv1alpha1.ServiceImportRoutingPolicy]
	for _, policy := range policies {
		status := policy.Status
		status.Conditions = conditions.Set(status.Conditions, v.decide(policy, policies), policy.Generation, now)
		changes = append(changes, plan.RoutingPolicyStatus(status, policy)...)
	}
	if _, err := apply.Do(ctx, r.Writer, changes); err != nil {
		return reconcile.Result{}, fmt.Errorf("write the status of policies: %w", err)
	}
	return reconcile.Result{}, nil
}

// imports returns the managed imports of a namespace, or all if it is empty.
func (r *Routing) imports(ctx context.Context, namespace string) ([]imported, error) {
	list := &mcsv1beta1.ServiceImportList{}
	if err := r.Member.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ServiceImports: %w", err)
	}
	var result []imported
	for i := range list.Items {
		object := &list.Items[i]
		if !clusterset.IsManaged(object.Labels) {
			continue
		}
		result = append(result, imported{key: client.ObjectKeyFromObject(object), headless: object.Spec.Type == mcsv1beta1.Headless})
		derived := &corev1.Service{}
		err := r.Member.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: object.Annotations[clusterset.AnnotationDerivedService]}, derived)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get the derived Service of %s: %w", client.ObjectKeyFromObject(object), err)
		}
		result[len(result)-1].selector = err == nil && len(derived.Spec.Selector) > 0
	}
	return result, nil
}
