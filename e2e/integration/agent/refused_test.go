// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
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
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	lab.Must(t, a.Create(t.Context(), world.Service(k, world.Port("http", 80))))
	invalid := world.Export(k)
	invalid.Spec = mcsv1beta1.ServiceExportSpec{ExportedAnnotations: map[string]string{}, ExportedLabels: map[string]string{}}
	for i := range 10 {
		name := fmt.Sprintf("key-%d", i)
		invalid.Spec.ExportedAnnotations[name], invalid.Spec.ExportedLabels[name] = strings.Repeat("x", 4097), "no label has spaces"
	}
	before := w.settled(t)
	lab.Must(t, a.Create(t.Context(), invalid))
	a.Condition(t, k, ready, metav1.ConditionFalse, "Failed")
	for range 3 { // an endless loop writes dozens of times a second
		a.beats(t, w)
	}
	spent := w.settled(t).since(before)
	for what, most := range map[string]int{"a serviceexports/status PUT 200": 3, "hub publishedservices POST 422": 3} {
		if spent[what] > most {
			t.Errorf("%d writes %q, want %d at most", spent[what], what, most)
		}
	}
	world.Update(t, a, k, invalid, func() { invalid.Spec = mcsv1beta1.ServiceExportSpec{} })
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.Imported(t, k)
}
