// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// refusedForGood has a member export what can never be stored: too long, in a namespace that its Member does not allow, and an update of an
// export that the hub stores. Another member misses a withdrawal meanwhile, and deletes its import when the exporter confirms it. The
// export with the refused update stays as it was.
func refusedForGood(ctx context.Context, w *world) error {
	m := w.members[0]
	older, annotated := oracle.Key{Namespace: scratch, Name: "older"}, oracle.Key{Namespace: scratch, Name: "annotated"}
	forbidden := oracle.Key{Namespace: plain, Name: "forbidden"}
	w.must(w.offer(ctx, m, service(older, 0), w.random), w.awaitStable(ctx, m, older), w.exportScratch(ctx))
	w.must(w.allowNamespaces(ctx, m, moving, still, scratch), w.offer(ctx, m, service(forbidden, 0), w.random), w.offer(ctx, m, service(annotated, 0), w.random))
	for _, k := range []oracle.Key{older, annotated} {
		export := framework.Export(k)
		w.watch.will(oracle.Source, m.id, k)
		err := m.edit(ctx, export, func() { export.Spec.ExportedAnnotations = map[string]string{"note": longText} })
		w.must(err, m.saysReady(ctx, k, "False"))
	}
	w.must(m.saysReady(ctx, forbidden, "False"), w.missesWithdrawal(ctx, w.members[1]), w.imported(ctx, older))
	export := framework.Export(older)
	err := m.edit(ctx, export, func() { export.Spec.ExportedAnnotations = nil })
	w.must(err, m.saysReady(ctx, older, "True"))
	return errors.Join(w.withdraw(ctx, m, older), w.withdraw(ctx, m, annotated), w.withdraw(ctx, m, forbidden), w.allowNamespaces(ctx, m))
}

// allowNamespaces has the Member of a cluster allow these namespaces; all if there are none.
func (w *world) allowNamespaces(ctx context.Context, m *member, names ...hubv1alpha1.NamespaceName) error {
	found := &hubv1alpha1.Member{}
	found.Namespace, found.Name = "member-"+m.id, hubv1alpha1.MemberName
	return (&member{Client: w.hubKube}).edit(ctx, found, func() { found.Spec.Namespaces = names })
}

// saysReady returns when the condition Ready of an export has a status for its last change.
func (m *member) saysReady(ctx context.Context, k oracle.Key, want string) error {
	export := &mcsv1beta1.ServiceExport{}
	return shown(ctx, m, k, export, func() error {
		c := apimeta.FindStatusCondition(export.Status.Conditions, "Ready")
		if c == nil || string(c.Status) != want || c.ObservedGeneration != export.Generation {
			return fmt.Errorf("%s must have Ready %s (%v): %w", k, want, export.Status.Conditions, errNoEffect)
		}
		return nil
	})
}
