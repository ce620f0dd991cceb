// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// TestLifecycle follows services through their ordinary life, between two members and their hub.
//
//nolint:tparallel // the subtests share two clusters
func TestLifecycle(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	a.Start(t)
	b.Start(t)
	for name, test := range map[string]func(*testing.T, *env){
		"CustomController":    testCustomController,
		"PortChanges":         testPortChanges,
		"TakenOver":           testTakenOver,
		"NamesCollide":        testNamesCollide,
		"BothNamesTaken":      testBothNamesTaken,
		"OldestLeaves":        testOldestLeaves,
		"NamespaceNotAllowed": testNamespaceNotAllowed,
		"InvalidExport":       testInvalidExport,
		"HeartbeatByHand":     testHeartbeatByHand,
	} {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

// spec: E1, E3, I1, I2, I3, D1, C1, C2, C3
func testExportWithdraw(t *testing.T, a, b *member) {
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	private := world.Service(k, world.Port("http", 80)) // b does not export it
	lab.Must(t, b.Create(t.Context(), private))
	lab.Must(t, b.Create(t.Context(), world.Slice(private, "v4", "10.2.0.1")))
	service, _ := a.ExportWeb(t, k, "10.1.0.1", "10.1.0.2")
	for _, m := range []*member{a, b} {
		serviceImport, derived := m.Imported(t, k)
		m.Endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.2:http:8080")
		lab.Equal(t, "exporters", []mcsv1beta1.ClusterStatus{{Cluster: "a"}}, serviceImport.Status.Clusters)
		if serviceImport.Status.EndpointSliceObjects != mcsv1beta1.EndpointSliceObjectsPresent {
			t.Errorf("endpointSliceObjects is %q", serviceImport.Status.EndpointSliceObjects)
		}
		if derived.Spec.Type != corev1.ServiceTypeClusterIP || derived.Spec.Selector != nil {
			t.Errorf("the derived Service has type %s and selector %v", derived.Spec.Type, derived.Spec.Selector)
		}
	}
	a.Condition(t, k, valid, metav1.ConditionTrue, "Valid")
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")

	lab.Must(t, a.Delete(t.Context(), world.Slice(service, "v4")))
	for _, m := range []*member{a, b} { // without an endpoint the import lives on
		m.Endpoints(t, k)
		m.Imported(t, k)
	}
	lab.Must(t, a.Delete(t.Context(), world.Export(k)))
	a.Gone(t, k)
	b.Gone(t, k)
}
