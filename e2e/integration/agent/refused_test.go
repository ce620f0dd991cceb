// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// TestInvalidExport: an export that the hub's schema refuses costs a few writes and no more, though the API server lists what is wrong
// with it in another order each time. It is published once it is valid.
//
// spec: C2, C3
func TestInvalidExport(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.Start(t)
	b.Start(t)
	ns := world.Namespace(t, a, b)
	for name, spoil := range map[string]func(*mcsv1beta1.ServiceExportSpec, string){
		"annotations": func(s *mcsv1beta1.ServiceExportSpec, key string) {
			s.ExportedAnnotations[key] = strings.Repeat("x", 4097)
		},
		"labels": func(s *mcsv1beta1.ServiceExportSpec, key string) { s.ExportedLabels[key] = "no label has spaces" },
	} {
		k := key{Namespace: ns, Name: name}
		lab.Must(t, a.Create(t.Context(), world.Service(k, world.Port("http", 80))))
		invalid := world.Export(k)
		invalid.Spec = mcsv1beta1.ServiceExportSpec{ExportedAnnotations: map[string]string{}, ExportedLabels: map[string]string{}}
		for i := range 10 {
			spoil(&invalid.Spec, fmt.Sprintf("key-%d", i))
		}
		before := w.settled(t)
		lab.Must(t, a.Create(t.Context(), invalid))
		a.Condition(t, k, ready, metav1.ConditionFalse, "Failed")
		for range 5 { // an endless loop writes dozens of times a second
			a.beats(t, w)
		}
		spent := w.settled(t).since(before)
		for what, most := range map[string]int{"a serviceexports/status PUT 200": 3, "hub publishedservices POST 422": 3} {
			if spent[what] > most {
				t.Errorf("%s: %d writes %q, want %d at most", name, spent[what], what, most)
			}
		}
		t.Logf("%s:\n%s", name, spent)

		valid := &mcsv1beta1.ServiceExport{}
		lab.Must(t, a.Get(t.Context(), k, valid))
		valid.Spec = mcsv1beta1.ServiceExportSpec{}
		lab.Must(t, a.Update(t.Context(), valid))
		a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
		b.Imported(t, k)
	}
}

// TestQuotaFreed: what a quota has refused is published when something else is withdrawn, and is not asked for all the time until then.
//
// spec: C2
func TestQuotaFreed(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a := w.members["a"]
	a.Start(t)
	ns := world.Namespace(t, a)
	w.limitServices(t, "a", "1")
	first := key{Namespace: ns, Name: "first"}
	a.ExportWeb(t, first)
	a.Condition(t, first, ready, metav1.ConditionTrue, "Exported")
	var refused []key
	for i := range 3 {
		k := key{Namespace: ns, Name: fmt.Sprintf("more-%d", i)}
		a.ExportWeb(t, k)
		a.Condition(t, k, ready, metav1.ConditionFalse, "Failed")
		refused = append(refused, k)
	}
	for range 40 { // heartbeats, each a second: what is tried every 10 s would be tried four times
		a.beats(t, w)
	}
	before, err := w.writes(t.Context())
	lab.Must(t, err)
	for range 15 {
		a.beats(t, w)
	}
	after, err := w.writes(t.Context())
	lab.Must(t, err)
	const again = "hub publishedservices POST 403"
	if n := after.since(before)[again]; n > len(refused) {
		t.Errorf("%d refused writes for %d services in 15 s", n, len(refused))
	}

	lab.Must(t, a.Delete(t.Context(), world.Export(first)))
	world.Eventually(t, func(ctx context.Context) error { return a.exportedSome(ctx, refused) })
}

// exportedSome returns nil once one of these services is exported.
func (m *member) exportedSome(ctx context.Context, keys []key) error {
	for _, k := range keys {
		e := &mcsv1beta1.ServiceExport{}
		if err := m.Get(ctx, k, e); err != nil {
			return err
		}
		for _, c := range e.Status.Conditions {
			if c.Type == string(ready) && c.Status == metav1.ConditionTrue {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: none of %v is exported", m.ID, keys)
}
