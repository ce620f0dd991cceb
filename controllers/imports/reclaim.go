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

// reclaim gives the import and its derived Service back the labels by which we know them, where somebody has taken these away,
// and reports whether it did: the watch then brings the service again. Before that nothing is decided. Without its mark an
// import is another's, and without its labels a derived Service is in the way, so that its import would get another name and
// other addresses (spec D2, I5). A slice is found out when it is to be created.
func (r *Reconciler) reclaim(ctx context.Context, v view) (bool, error) {
	imports, services := v.unlabelled()
	reclaimed, err := relabel(ctx, r.Writer, imports)
	if err != nil {
		return false, err
	}
	another, err := relabel(ctx, r.Writer, services)
	return reclaimed || another, err
}

// relabel carries out changes of labels and reports whether there were any. Where an admission policy takes the labels away
// again there were none, and no watch would bring anything.
func relabel[T client.Object](ctx context.Context, w apply.Writer, changes []plan.Change[T]) (bool, error) {
	written, err := apply.Do(ctx, w, changes)
	return slices.ContainsFunc(written, func(o T) bool {
		return slices.ContainsFunc(changes, func(c plan.Change[T]) bool { return maps.Equal(o.GetLabels(), c.Object.GetLabels()) })
	}), err
}

// unlabelled returns the changes that give the import its mark back, and its derived Service its mark and its import's name.
func (v view) unlabelled() (imports []plan.Change[*mcsv1beta1.ServiceImport], services []plan.Change[*corev1.Service]) {
	recorded := ""
	if i := v.serviceImport; i != nil && isOurs(i) {
		recorded = i.Annotations[clusterset.AnnotationDerivedService]
		if clusterset.HasLostMark(i) {
			imports = append(imports, labelled(i, map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}))
		}
	}
	for _, s := range v.named {
		if isOurs(s) && !render.IsDerivedFor(s, v.known.Key.Name) && v.wasDerived(s, recorded) {
			services = append(services, labelled(s, map[string]string{
				clusterset.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: v.known.Key.Name,
			}))
		}
	}
	return imports, services
}

// isOurs reports whether an object bears our mark, or has lost it.
func isOurs(object client.Object) bool {
	return clusterset.MarkOf(object) == clusterset.ManagedBy || clusterset.HasLostMark(object)
}

// wasDerived reports whether a Service of ours was made for this import: by the label that says so, or, where that cannot be
// true, by the name that the import has recorded.
func (v view) wasDerived(s *corev1.Service, recorded string) bool {
	said := s.Labels[mcsv1beta1.LabelServiceName]
	if said == v.known.Key.Name {
		return true
	}
	possible := s.Name == clusterset.ShortDerivedName(said) || s.Name == clusterset.LongDerivedName(said)
	return !possible && s.Name == recorded && !slices.Contains(v.recorded, s.Name)
}

// labelled returns the write that gives an object labels besides those that it has.
func labelled[T client.Object](observed T, labels map[string]string) plan.Change[T] {
	object := observed.DeepCopyObject().(T)
	all := map[string]string{}
	maps.Copy(all, object.GetLabels())
	maps.Copy(all, labels)
	object.SetLabels(all)
	return plan.Change[T]{Verb: plan.Update, Object: object, Observed: observed}
}
