// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// TestMetadataDomains: labels and annotations of a domain are imported where the cluster's agent admits it, from its next start on; else
// they are left out, and the import says so once. Conflicts are those of all that is exported, in each cluster.
//
// spec: D3, E7, R4, R7
func TestMetadataDomains(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.start(t)
	stop := b.start(t)
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	for _, m := range []*member{a, b} {
		exported := export(k)
		exported.Spec.ExportedLabels = map[string]string{"team": "blue", "example.com/tier": m.id, "kuma.io/mesh": "x"}
		exported.Spec.ExportedAnnotations = map[string]string{"docs": "y", "example.com/note": "z", "kube-vip.io/x": "x"}
		service := clusterIPService(k, port("http", 80))
		lab.Must(t, m.Create(t.Context(), service))
		lab.Must(t, m.Create(t.Context(), slice(service, "v4", discoveryv1.AddressTypeIPv4, fmt.Sprintf("10.%s.0.1", subnets[m.id]))))
		lab.Must(t, m.Create(t.Context(), exported))
		m.condition(t, k, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, string(mcsv1beta1.ServiceExportReasonExported))
	}
	b.condition(t, k, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, "LabelsConflict")
	none := "The service is imported. Left out: labels and annotations of these domains: example.com, kube-vip.io, kuma.io. " +
		"To import them, add the domains to --allow-metadata-domains of this cluster's agent."
	some := "The service is imported. Left out: labels and annotations of these domains: kube-vip.io, kuma.io. " +
		"To import them, add the domains to --allow-metadata-domains of this cluster's agent."
	for _, m := range []*member{a, b} {
		m.admits(t, k, "", none)
	}
	eventually(t, func(ctx context.Context) error { return b.hasEvent(ctx, k, "MetadataLeftOut") })

	stop()
	stop = b.startWith(t, func(o *agent.Options) { o.MetadataDomains = []string{"example.com"} })
	b.admits(t, k, "a", some)
	a.admits(t, k, "", none)
	for _, m := range []*member{a, b} {
		m.condition(t, k, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, "LabelsConflict")
	}
	stop()
	b.start(t)
	b.admits(t, k, "", none)
}

// admits waits until an import and its derived Service have this tier and no label of a mesh, and the import says this.
func (m *member) admits(t *testing.T, k key, tier, message string) {
	t.Helper()
	eventually(t, func(context.Context) error {
		serviceImport, derived := m.imported(t, k)
		ready := meta.FindStatusCondition(serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
		_, noted := serviceImport.Annotations["example.com/note"]
		for _, labels := range []map[string]string{serviceImport.Labels, derived.Labels} {
			if _, inMesh := labels["kuma.io/mesh"]; inMesh || labels["team"] != "blue" || labels["example.com/tier"] != tier {
				return fmt.Errorf("%s has labels %v", m.id, labels)
			}
		}
		if noted != (tier != "") || serviceImport.Annotations["docs"] != "y" || ready.Message != message {
			return fmt.Errorf("%s has annotations %v and says: %s", m.id, serviceImport.Annotations, ready.Message)
		}
		return nil
	})
}
