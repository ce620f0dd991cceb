// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Access writes the conditions of all rules about access. It has one request, for all of them: each depends on the members and on
// whether there are gateways.
type Access struct {
	Sources gather.Reader
	Member  apply.Writer
	Clock   clock.PassiveClock
}

// Add adds the controller to a manager.
func (r *Access) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	options.Reconciler = queue.NewRetries(r)
	options.MaxConcurrentReconciles = 1
	always := func(client.Object) (types.NamespacedName, bool) { return types.NamespacedName{}, true }
	return queue.AddController(mgr, "accessstatus", options,
		source.Kind(members, &policyv1alpha1.ServiceExportGrant{}, queue.Typed[*policyv1alpha1.ServiceExportGrant](always)),
		source.Kind(members, &policyv1alpha1.ClusterServiceAccessPolicy{}, queue.Typed[*policyv1alpha1.ClusterServiceAccessPolicy](always)),
		source.Kind(members, &mcsv1beta1.ServiceExport{}, queue.Typed[*mcsv1beta1.ServiceExport](always),
			predicate.TypedFuncs[*mcsv1beta1.ServiceExport]{UpdateFunc: func(event.TypedUpdateEvent[*mcsv1beta1.ServiceExport]) bool { return false }}),
		source.Kind(members, &mcsv1beta1.ServiceImport{}, queue.Typed[*mcsv1beta1.ServiceImport](always),
			predicate.TypedFuncs[*mcsv1beta1.ServiceImport]{UpdateFunc: func(event.TypedUpdateEvent[*mcsv1beta1.ServiceImport]) bool { return false }}),
		source.Kind(members, &corev1.Namespace{}, queue.Typed[*corev1.Namespace](always), predicate.TypedFuncs[*corev1.Namespace]{
			UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Namespace]) bool {
				return !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) || e.ObjectOld.DeletionTimestamp.IsZero() != e.ObjectNew.DeletionTimestamp.IsZero()
			},
		}),
		source.Kind(members, &corev1.Service{}, queue.Typed[*corev1.Service](func(object client.Object) (types.NamespacedName, bool) {
			return types.NamespacedName{}, client.ObjectKeyFromObject(object) == r.Sources.GatewayService()
		})),
		queue.FromMembers(r.Sources.Hub, types.NamespacedName{}),
	)
}

// Reconcile writes the status of all rules if it has changed.
func (r *Access) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	v, err := r.gather(ctx)
	if err != nil || len(v.objects.Grants) == 0 && len(v.objects.Policies) == 0 {
		return reconcile.Result{}, err
	}
	now := metav1.NewTime(r.Clock.Now())
	var grants []plan.Change[*policyv1alpha1.ServiceExportGrant]
	for i := range v.objects.Grants {
		g := &v.objects.Grants[i]
		status := policyv1alpha1.AccessStatus{Conditions: conditions.Set(g.Status.Conditions, v.ofGrant(g), g.Generation, now)}
		grants = append(grants, plan.GrantStatus(status, g)...)
	}
	var policies []plan.Change[*policyv1alpha1.ClusterServiceAccessPolicy]
	for i := range v.objects.Policies {
		p := &v.objects.Policies[i]
		status := policyv1alpha1.AccessStatus{Conditions: conditions.Set(p.Status.Conditions, v.ofPolicy(p), p.Generation, now)}
		policies = append(policies, plan.PolicyStatus(status, p)...)
	}
	_, grantsErr := apply.Do(ctx, r.Member, grants)
	_, policiesErr := apply.Do(ctx, r.Member, policies)
	if err := apply.Join(grantsErr, policiesErr); err != nil {
		return reconcile.Result{}, fmt.Errorf("write the status of rules about access: %w", err)
	}
	return reconcile.Result{}, nil
}

func (r *Access) hasGateways(ctx context.Context) (bool, error) {
	key := r.Sources.GatewayService()
	err := r.Sources.Member.Get(ctx, key, &corev1.Service{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get Service %s: %w", key, err)
	}
	return !apierrors.IsNotFound(err), nil
}

func (r *Access) gather(ctx context.Context) (accessView, error) {
	objects, err := caches.AccessObjects(ctx, r.Sources.Member)
	if err != nil || len(objects.Grants) == 0 && len(objects.Policies) == 0 {
		return accessView{}, err
	}
	hasGateways, err := r.hasGateways(ctx)
	if err != nil {
		return accessView{}, err
	}
	objects.Properties = r.Sources.Hub.Properties()
	v := accessView{objects: objects, own: r.Sources.Cluster, hasGateways: hasGateways, synced: r.Sources.Hub.Synced(), members: map[clusterset.ClusterID]reach.Cluster{}}
	for _, id := range r.Sources.Hub.Members() {
		v.members[id] = r.Sources.Hub.Cluster(id)
	}
	exports, err := r.Sources.ExportKeys(ctx)
	if err != nil {
		return accessView{}, err
	}
	v.exports = setOf(exports)
	if slices.ContainsFunc(objects.Policies, namesImports) {
		imports, err := r.Sources.ImportKeys(ctx)
		if err != nil {
			return accessView{}, err
		}
		v.imports = setOf(imports)
	}
	return v, nil
}

// namesImports reports whether a policy names services that this cluster imports.
func namesImports(p policyv1alpha1.ClusterServiceAccessPolicy) bool {
	return p.Spec.Direction == policyv1alpha1.DirectionImport && len(p.Spec.Services) > 0
}

func setOf(keys []clusterset.ServiceKey) map[types.NamespacedName]bool {
	result := map[types.NamespacedName]bool{}
	for _, key := range keys {
		result[key] = true
	}
	return result
}
