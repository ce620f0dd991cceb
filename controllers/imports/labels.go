// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// restoreLabels restores the labels of the import and its derived Service if another user removed them, and reports whether it did:
// the watch event then enqueues the service again. It must precede the decision: without its labels, an import is unmanaged, and a
// derived Service blocks its name, so that the import would get another name and other addresses (spec D2, I5). A slice without
// labels is detected when it is created.
func (r *Reconciler) restoreLabels(ctx context.Context, v view) (bool, error) {
	imports, services := v.labelChanges()
	restored, err := applyLabels(ctx, r.Writer, imports)
	if err != nil {
		return false, err
	}
	another, err := applyLabels(ctx, r.Writer, services)
	return restored || another, err
}

// applyLabels applies changes of labels and reports whether they persisted. If an admission policy removes the labels again, no
// watch event follows.
func applyLabels[T client.Object](ctx context.Context, w apply.Writer, changes []plan.Change[T]) (bool, error) {
	written, err := apply.Do(ctx, w, changes)
	return slices.ContainsFunc(written, func(o T) bool {
		return slices.ContainsFunc(changes, func(c plan.Change[T]) bool { return maps.Equal(o.GetLabels(), c.Object.GetLabels()) })
	}), err
}

// labelChanges returns the changes that restore the managed-by label of the import and the labels of its derived Service.
func (v view) labelChanges() (imports []plan.Change[*mcsv1beta1.ServiceImport], services []plan.Change[*corev1.Service]) {
	recorded := ""
	if i := v.serviceImport; i != nil && isOrWasManaged(i) {
		recorded = i.Annotations[clusterset.AnnotationDerivedService]
		if clusterset.HasLostLabel(i) {
			imports = append(imports, withLabels(i, map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}))
		}
	}
	for _, s := range v.services {
		if isOrWasManaged(s) && !render.IsDerivedFor(s, v.sources.Key.Name) && v.wasDerived(s, recorded) {
			services = append(services, withLabels(s, map[string]string{
				clusterset.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: v.sources.Key.Name,
			}))
		}
	}
	return imports, services
}

// isOrWasManaged reports whether an object has our managed-by label, or has lost it.
func isOrWasManaged(object client.Object) bool {
	return clusterset.ManagerOf(object) == clusterset.ManagedBy || clusterset.HasLostLabel(object)
}

// wasDerived reports whether a managed Service was created for this import: by its service name label, or, if that cannot be true,
// by the name that the import has recorded.
func (v view) wasDerived(s *corev1.Service, recorded string) bool {
	label := s.Labels[mcsv1beta1.LabelServiceName]
	if label == v.sources.Key.Name {
		return true
	}
	possible := s.Name == clusterset.ShortDerivedName(label) || s.Name == clusterset.LongDerivedName(label)
	return !possible && s.Name == recorded && !slices.Contains(v.takenNames, s.Name)
}

// withLabels returns the update that adds labels to an object.
func withLabels[T client.Object](existing T, labels map[string]string) plan.Change[T] {
	object := existing.DeepCopyObject().(T)
	all := map[string]string{}
	maps.Copy(all, object.GetLabels())
	maps.Copy(all, labels)
	object.SetLabels(all)
	return plan.Change[T]{Verb: plan.Update, Object: object, Existing: existing}
}
