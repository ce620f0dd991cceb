// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package autoexport creates ServiceExports for Services that a label exports, and deletes them with the label (P3). It is the only
// writer of ServiceExports with the managed-by label.
package autoexport

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reasons of the Events on Services.
const (
	reasonLimit   = "AutoExportLimit"
	reasonRefused = "AutoExportRefused"
)

// DefaultLimit is the Limit of an agent that is given none.
const DefaultLimit = 100

// Reconciler writes the automatic exports of one namespace at a time.
type Reconciler struct {
	Cluster clusterset.ClusterID
	// Member reads this cluster from a cache.
	Member client.Reader
	Writer apply.Writer
	// Limit is the number of automatic exports of a namespace beyond which none is created.
	Limit int
	// AgentNamespace is the namespace of this cluster's agent, which exports nothing.
	AgentNamespace string
	Events         events.EventRecorder
	Clock          clock.PassiveClock

	// By namespace: the last Event, and when a label was first seen to ask for an export, by the name of the Service. One worker uses them.
	announced map[string]string
	asked     map[string]map[string]time.Time
}

// Add adds the controller to a manager.
func (r *Reconciler) Add(mgr manager.Manager, members cache.Cache, options controller.Options) error {
	r.announced, r.asked = map[string]string{}, map[string]map[string]time.Time{}
	options.Reconciler = queue.NewRetries(r)
	options.MaxConcurrentReconciles = 1
	return queue.AddController(mgr, "autoexport", options,
		source.Kind(members, &corev1.Service{}, queue.Typed[*corev1.Service](ofService)),
		source.Kind(members, &mcsv1beta1.ServiceExport{}, queue.Typed[*mcsv1beta1.ServiceExport](ofExport)),
		source.Kind(members, caches.NamespaceMetadata(), queue.Typed[*metav1.PartialObjectMetadata](ofNamespace)),
	)
}

// ofService returns the namespace of a Service that is not derived from an import.
func ofService(object client.Object) (types.NamespacedName, bool) {
	return types.NamespacedName{Name: object.GetNamespace()}, !clusterset.IsManaged(object.GetLabels())
}

func ofExport(object client.Object) (types.NamespacedName, bool) {
	return types.NamespacedName{Name: object.GetNamespace()}, true
}

func ofNamespace(object client.Object) (types.NamespacedName, bool) {
	return types.NamespacedName{Name: object.GetName()}, true
}

// Reconcile writes the automatic exports of a namespace. It leaves a namespace alone that is being deleted, or that the cache lacks.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	v, exists, err := r.gather(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !exists || request.Name == r.AgentNamespace {
		delete(r.announced, request.Name)
		delete(r.asked, request.Name)
		return reconcile.Result{}, nil
	}
	v.Now = r.Clock.Now()
	v.Asked = askedSince(r.asked[request.Name], v)
	r.asked[request.Name] = v.Asked
	d := decide(v)
	written, err := apply.Do(ctx, r.Writer, d.changes)
	r.announce(request.Name, d, written, err)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("automatic exports of namespace %s%s: %w", request.Name, hint(err), err)
	}
	return reconcile.Result{RequeueAfter: d.after}, nil
}

// askedSince returns Asked of a View, from the times that were known before. It has no Service that need not be exported.
func askedSince(before map[string]time.Time, v View) map[string]time.Time {
	v.Asked = nil
	d := decide(v)
	result := map[string]time.Time{}
	for _, s := range slices.Concat(d.created, d.leftOut) {
		result[s.Name] = v.Now
		if since, known := before[s.Name]; known {
			result[s.Name] = since
		}
	}
	return result
}

// gather reads a namespace, and reports whether it exists and is not being deleted.
func (r *Reconciler) gather(ctx context.Context, name string) (v View, exists bool, err error) {
	namespace := caches.NamespaceMetadata()
	exists, err = caches.Get(ctx, r.Member, client.ObjectKey{Name: name}, namespace)
	if err != nil || !exists || !namespace.DeletionTimestamp.IsZero() {
		return View{}, false, err
	}
	services, exports := &corev1.ServiceList{}, &mcsv1beta1.ServiceExportList{}
	for _, list := range []client.ObjectList{services, exports} {
		if err := r.Member.List(ctx, list, client.InNamespace(name), client.UnsafeDisableDeepCopy); err != nil {
			return View{}, false, fmt.Errorf("list %s of namespace %s: %w", clusterset.KindOf(list), name, err)
		}
	}
	return View{
		Cluster: r.Cluster, Labels: namespace.Labels, Limit: r.Limit,
		Services: caches.Pointers(services.Items), Exports: caches.Pointers(exports.Items),
	}, true, nil
}

// announce sends an Event on the first Service that should be exported and is not, unless it was the last Event of the namespace.
func (r *Reconciler) announce(namespace string, d decision, written []*mcsv1beta1.ServiceExport, err error) {
	object, reason, note := problem(d, r.Limit, written, err)
	if object == nil {
		if err == nil {
			delete(r.announced, namespace)
		}
		return
	}
	if r.announced[namespace] == note {
		return
	}
	r.announced[namespace] = note
	r.Events.Eventf(object, nil, corev1.EventTypeWarning, reason, "Export", "%s", conditions.EventNote(note))
}

// problem returns the object, the reason and the text of the Event to send about the limit or a refused write; a nil object if there is
// none. written are the exports that were created. An error that is retried at once is no problem.
func problem(d decision, limit int, written []*mcsv1beta1.ServiceExport, err error) (object *corev1.Service, reason, note string) {
	if apply.IsRefused(err) && !apply.IsUnmanaged(err) {
		for _, s := range d.created {
			if !slices.ContainsFunc(written, func(e *mcsv1beta1.ServiceExport) bool { return e.Name == s.Name }) {
				return s, reasonRefused, fmt.Sprintf("A ServiceExport that the label %s asks for is refused%s: %v", clusterset.LabelAutoExport, hint(err), err)
			}
		}
	}
	if len(d.leftOut) == 0 {
		return nil, "", ""
	}
	return d.leftOut[0], reasonLimit, fmt.Sprintf(
		"%d Services of namespace %s with the label %s are not exported, the first is %s: the agent exports at most %d of a namespace by label (--auto-export-limit). "+
			"Create their ServiceExports yourself, or remove labels.",
		len(d.leftOut), d.leftOut[0].Namespace, clusterset.LabelAutoExport, d.leftOut[0].Name, limit)
}

// hint returns what to do if the agent lacks the rights.
func hint(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	return `; if the agent lacks the rights, "kubectl clusterset join --auto-export" or the kustomization manifests/autoexport gives them`
}
