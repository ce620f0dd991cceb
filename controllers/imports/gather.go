// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/export"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// view is all that the import of one service depends on.
type view struct {
	// place says whether services of this namespace are imported here now (spec I1, E8).
	place     place
	known     sources.Sources
	ownSlices []clusterset.Slice
	// ownFamilies are those that this cluster's Services can have.
	ownFamilies []corev1.IPFamily
	// unknown holds the settings that this cluster's API server has shown not to know.
	unknown map[clusterset.Setting]bool
	// metadataDomains are those whose labels and annotations this cluster admits.
	metadataDomains []string
	// missing is what the hub lacks of that which this cluster has imported, though nothing says that it is deleted.
	missing map[clusterset.ClusterID]hub.Missing
	// states says, for each other exporter, what is known of its life, and policies what follows from it.
	states   map[clusterset.ClusterID]liveness.State
	policies liveness.Policies

	// serviceImport is the import as it stands, nil if there is none.
	serviceImport *mcsv1beta1.ServiceImport
	// named are the Services that bear one of the derived Service's names, ours or not.
	named []*corev1.Service
	// recorded are the names, of those two, that other imports of the namespace have recorded.
	recorded []string
	// selection is how the derived Service finds pods; nil where it does not, or may not (spec D8).
	selection *clusterset.Selection
	// mirrored are our slices of this service, condensed as the cache has them. They must not be changed.
	mirrored []*discoveryv1.EndpointSlice
}

// isObstructed reports whether a ServiceImport that is not ours has the import's name.
func (v view) isObstructed() bool {
	return v.serviceImport != nil && !clusterset.IsManaged(v.serviceImport.Labels)
}

// place is a namespace as a place for imports.
type place string

const (
	// admitted: imports belong there.
	admitted place = "admitted"
	// denied: none do. Those that were made under another policy go.
	denied place = "denied"
	// absent: there is no such namespace, or it is about to go with all that is in it.
	absent place = "absent"
)

// gather reads everything, from caches. Of a place that is denied it reads only what is there already.
func (r *Reconciler) gather(ctx context.Context, key clusterset.ServiceKey) (view, error) {
	place, err := r.place(ctx, key.Namespace)
	if err != nil {
		return view{}, err
	}
	if place != admitted {
		r.Sources.Hub.Forget(key)
	}
	if place == absent {
		return view{place: place}, nil
	}
	if place == denied {
		v := view{place: place, known: sources.Sources{Key: key}}
		err = r.observe(ctx, key, &v)
		return v, err
	}
	v := view{place: place, known: sources.Sources{Key: key}, ownFamilies: r.IPFamilies, unknown: r.Unknown.settings(), metadataDomains: r.MetadataDomains, policies: r.Policies}
	if err := r.observe(ctx, key, &v); err != nil {
		return view{}, err
	}
	// What this cluster has comes before what the hub holds of it: that has to be of one moment.
	if v.known, err = r.Sources.ReadImport(ctx, key, v.imported(r.Sources.Hub)); err != nil {
		return view{}, err
	}
	v.missing = v.known.Hub.Missing
	if v.known.Local != nil {
		delete(v.missing, r.Sources.Cluster) // which its own API server knows
		if v.ownSlices, err = r.Sources.LocalSlices(ctx, key); err != nil {
			return view{}, err
		}
	}
	v.states = map[clusterset.ClusterID]liveness.State{}
	for _, export := range v.known.Hub.Exports {
		v.states[export.Cluster] = r.State(export.Cluster)
	}
	for id := range v.missing {
		v.states[id] = r.State(id)
	}
	return v, nil
}

// place returns what a namespace is to imports.
func (r *Reconciler) place(ctx context.Context, namespace string) (place, error) {
	found := namespaceMetadata()
	err := r.Member.Get(ctx, client.ObjectKey{Name: namespace}, found)
	switch {
	case apierrors.IsNotFound(err):
		return absent, nil
	case err != nil:
		return absent, fmt.Errorf("get namespace %s: %w", namespace, err)
	case !found.DeletionTimestamp.IsZero():
		return absent, nil
	case !r.Namespaces.Allows(namespace):
		return denied, nil
	}
	return admitted, nil
}

// observe reads what this cluster holds of the import.
func (r *Reconciler) observe(ctx context.Context, key clusterset.ServiceKey, v *view) error {
	serviceImport := &mcsv1beta1.ServiceImport{}
	switch err := r.Member.Get(ctx, key, serviceImport); {
	case err == nil:
		v.serviceImport = serviceImport
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("get ServiceImport %s: %w", key, err)
	}
	for _, name := range []string{clusterset.ShortDerivedName(key.Name), clusterset.LongDerivedName(key.Name)} {
		service := &corev1.Service{}
		switch err := r.Member.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, service); {
		case err == nil:
			v.named = append(v.named, service)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("get derived Service of %s: %w", key, err)
		}
	}
	for _, service := range v.derived() {
		if r.Sources.Selector == clusterset.OldestSelector {
			v.selection = export.Selection(service)
		}
	}
	recorded, err := r.recordedByOthers(ctx, key)
	if err != nil {
		return err
	}
	v.recorded = recorded
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexMirror: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list mirrored EndpointSlices of %s: %w", key, err)
	}
	for i := range list.Items {
		v.mirrored = append(v.mirrored, &list.Items[i])
	}
	return nil
}

// recordedByOthers returns the short name of a service's derived Service if another import has recorded it.
func (r *Reconciler) recordedByOthers(ctx context.Context, key clusterset.ServiceKey) ([]string, error) {
	short := clusterset.ShortDerivedName(key.Name)
	list := &mcsv1beta1.ServiceImportList{}
	if err := r.Member.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{caches.IndexDerived: short}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ServiceImports whose derived Service is %s: %w", short, err)
	}
	for _, other := range list.Items {
		if other.Name != key.Name {
			return []string{short}, nil
		}
	}
	return nil, nil
}

// imported returns what this cluster has of the service: the clusters that the import's status or its slices name. What names no
// cluster may be of any member.
func (v view) imported(store *hub.Store) hub.Imported {
	have := hub.Imported{}
	if i := v.ownImport(); i != nil {
		for _, status := range i.Status.Clusters {
			have[clusterset.ClusterID(status.Cluster)] = nil
		}
	}
	for _, slice := range v.mirrored {
		source := keyOf(slice)
		have[source.cluster] = append(have[source.cluster], source.id)
	}
	if v.isRemnant() {
		for _, id := range store.Members() {
			have[id] = nil
		}
	}
	return have
}

// isRemnant reports whether what is left of an import names no exporter: a derived Service whose import was deleted, or the import that
// was restored from it.
func (v view) isRemnant() bool {
	i := v.ownImport()
	return len(v.mirrored) == 0 && (i != nil && len(i.Status.Clusters) == 0 || i == nil && len(v.derived()) > 0)
}

// ownImport returns the ServiceImport if it is ours.
func (v view) ownImport() *mcsv1beta1.ServiceImport {
	if v.serviceImport == nil || !clusterset.IsManaged(v.serviceImport.Labels) {
		return nil
	}
	return v.serviceImport
}

// derived returns our derived Services for the import: one, unless its name has just been changed by hand.
func (v view) derived() []*corev1.Service {
	var ours []*corev1.Service
	for _, service := range v.named {
		if render.IsDerivedFor(service, v.known.Key.Name) {
			ours = append(ours, service)
		}
	}
	return ours
}

// hasLostService reports whether the Service that the import has recorded is not its own.
func (v view) hasLostService() bool {
	recorded := v.serviceImport.Annotations[clusterset.AnnotationDerivedService]
	return slices.ContainsFunc(v.named, func(s *corev1.Service) bool {
		return s.Name == recorded && !render.IsDerivedFor(s, v.known.Key.Name)
	})
}

func sourceOf(slice *discoveryv1.EndpointSlice) clusterset.ClusterID {
	return clusterset.ClusterID(slice.Labels[mcsv1beta1.LabelSourceCluster])
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// servicesOfNamespace enqueues all services that the hub holds of a namespace which appears or changes.
func (r *Reconciler) servicesOfNamespace() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, namespace *metav1.PartialObjectMetadata) []reconcile.Request {
		var requests []reconcile.Request
		for _, key := range r.Sources.Hub.KeysIn(namespace.Name) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
		return requests
	})
}
