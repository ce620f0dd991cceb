// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package properties shows the properties of this cluster's Member as ClusterProperties (A5, KEP-2149). It is the only writer of those
// with the managed-by label.
package properties

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reconciler writes the ClusterProperties of this cluster. Its only request is for all of them.
type Reconciler struct {
	Cluster clusterset.ClusterID
	Hub     *hub.Store
	// Member reads this cluster from a cache.
	Member client.Reader
	Writer apply.Writer
	// Allowed reports whether this cluster may use its ID now (spec K2).
	Allowed func() bool
	Events  events.EventRecorder
}

// Add adds the controller to a manager.
func (r *Reconciler) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	all := types.NamespacedName{Name: string(r.Cluster)}
	options.Reconciler = queue.NewRetries(r)
	options.MaxConcurrentReconciles = 1
	return queue.AddController(mgr, "properties", options,
		source.Kind(members, &aboutv1beta1.ClusterProperty{}, queue.Typed[*aboutv1beta1.ClusterProperty](
			func(client.Object) (types.NamespacedName, bool) { return all, true })),
		queue.FromMembers(r.Hub, all), // the permission to use the ID is reported as a list of the hub
	)
}

// Reconcile writes the ClusterProperties. While the local Member is not known, they stay as they are.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	properties, known := r.Hub.Properties()[r.Cluster]
	if !known || !r.Hub.Synced() || !r.Allowed() {
		return reconcile.Result{}, nil
	}
	list := &aboutv1beta1.ClusterPropertyList{}
	if err := r.Member.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ClusterProperties: %w", err)
	}
	changes, obstructed := decide(properties, list.Items)
	for _, object := range obstructed {
		r.Events.Eventf(object, nil, corev1.EventTypeWarning, "PropertyObstructed", "Show",
			"The Member of this cluster has another value for this property, but this ClusterProperty is not managed by Tombolo and is left alone. Delete it to show that value.")
	}
	_, err := apply.Do(ctx, r.Writer, changes)
	if errors.Is(err, apply.ErrUnmanaged) { // the cache did not have it yet: its watch event enqueues this again
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, err
}

// decide returns the changes of ClusterProperties so that they show the properties of the Member, and the unmanaged ones with other
// values. It is pure.
func decide(properties map[string]string, existing []aboutv1beta1.ClusterProperty) (changes []plan.Change[*aboutv1beta1.ClusterProperty], obstructed []*aboutv1beta1.ClusterProperty) {
	shown := maps.Clone(properties)
	var managed []*aboutv1beta1.ClusterProperty
	for i := range existing {
		object := &existing[i]
		value, desired := shown[object.Name]
		switch {
		case clusterset.ManagerOf(object) == clusterset.ManagedBy || desired && clusterset.HasLostLabel(object):
			managed = append(managed, object)
		case desired:
			delete(shown, object.Name)
			if object.Spec.Value != value {
				obstructed = append(obstructed, object)
			}
		}
	}
	var desired []*aboutv1beta1.ClusterProperty
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		desired = append(desired, &aboutv1beta1.ClusterProperty{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}},
			Spec:       aboutv1beta1.ClusterPropertySpec{Value: shown[name]},
		})
	}
	return plan.ClusterProperties(desired, managed), obstructed
}
