// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// labelChanges returns the changes that restore the managed-by label of the import and the labels of its derived Service, if another user
// removed them. They precede the decision: without its labels, an import is unmanaged, and a derived Service blocks its name, so that the
// import would get another name and other addresses (spec D2, I5). A slice without labels is found when it is created.
func (o Observed) labelChanges() (imports []plan.Change[*mcsv1beta1.ServiceImport], services []plan.Change[*corev1.Service]) {
	recorded := ""
	if i := o.ServiceImport; i != nil && isOrWasManaged(i) {
		recorded = i.Annotations[clusterset.AnnotationDerivedService]
		if clusterset.HasLostLabel(i) {
			imports = append(imports, withLabels(i, map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}))
		}
	}
	for _, s := range o.Services {
		if isOrWasManaged(s) && !render.IsDerivedFor(s, o.Sources.Key.Name) && o.wasDerived(s, recorded) {
			services = append(services, withLabels(s, map[string]string{
				clusterset.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: o.Sources.Key.Name,
			}))
		}
	}
	return imports, services
}

// isOrWasManaged reports whether an object has our managed-by label, or has lost it.
func isOrWasManaged(object plan.Object) bool {
	return clusterset.ManagerOf(object) == clusterset.ManagedBy || clusterset.HasLostLabel(object)
}

// wasDerived reports whether a managed Service was created for this import: by its service name label, or, if that cannot be true,
// by the name that the import has recorded.
func (o Observed) wasDerived(s *corev1.Service, recorded string) bool {
	label := s.Labels[mcsv1beta1.LabelServiceName]
	if label == o.Sources.Key.Name {
		return true
	}
	possible := s.Name == clusterset.ShortDerivedName(label) || s.Name == clusterset.LongDerivedName(label)
	return !possible && s.Name == recorded && !slices.Contains(o.TakenNames, s.Name)
}

// withLabels returns the update that adds labels to an object.
func withLabels[T plan.Object](existing T, labels map[string]string) plan.Change[T] {
	object := existing.DeepCopyObject().(T)
	all := map[string]string{}
	maps.Copy(all, object.GetLabels())
	maps.Copy(all, labels)
	object.SetLabels(all)
	return plan.Change[T]{Verb: plan.Update, Object: object, Existing: existing}
}
