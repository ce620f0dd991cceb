// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/lab"
)

// TestLife follows services through their ordinary life, between two members and their hub.
func TestLife(t *testing.T) {
	w := newWorld(t, lab.Member("a"), lab.Member("b"))
	a, b := w.members["a"], w.members["b"]
	a.start(t)
	b.start(t)

	// spec: E1, E3, I1, I2
	t.Run("ExportWithdraw", func(t *testing.T) {
		k := key{Namespace: namespace(t, a, b), Name: "web"}
		service := clusterIPService(k, port("http", 80))
		a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1", "10.1.0.2"))
		for _, m := range []*member{a, b} {
			m.imported(t, k)
			m.endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.2:http:8080")
		}
		a.condition(t, k, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, "Exported")
		must(t, a.Delete(t.Context(), export(k)))
		a.gone(t, k)
		b.gone(t, k)
	})
}
