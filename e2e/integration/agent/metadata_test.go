// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// TestMetadata: imports have the labels and annotations that the ServiceExport lists, and no others. Those of a domain are
// imported if the cluster's agent allows it, from its next start on; otherwise they are left out, which the import reports
// once.
//
// spec: D3, E7, I8, R4
func TestMetadata(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.Start(t)
	stop := b.Start(t)
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	private := map[string]string{"private": "x"}
	service, exported := world.Service(k, world.Port("http", 80)), world.Export(k)
	service.Labels, service.Annotations, exported.Labels, exported.Annotations = private, private, private, private
	exported.Spec.ExportedLabels = map[string]string{"team": "blue", "service.kubernetes.io/headless": "", "example.com/tier": "gold", "kuma.io/mesh": "x"}
	exported.Spec.ExportedAnnotations = map[string]string{"docs": "y", "service.beta.kubernetes.io/aws-load-balancer-internal": "true", "example.com/note": "z"}
	lab.Must(t, a.Create(t.Context(), service))
	lab.Must(t, a.Create(t.Context(), exported))

	const leftOut = "The service is imported. Left out: labels and annotations of these domains: "
	const remedy = ". To import them, add the domains to --allow-metadata-domains of this cluster's agent."
	has := func(domains string, labels, annotations map[string]string) {
		t.Helper()
		b.ImportCondition(t, k, "Ready", metav1.ConditionTrue, "Ready", leftOut+domains+remedy)
		b.ImportedWith(t, k, func(i *mcsv1beta1.ServiceImport, derived *corev1.Service) error {
			all := map[string]string{"app.kubernetes.io/managed-by": "tombolo-mcs.io", "team": "blue"}
			onService := map[string]string{"multicluster.kubernetes.io/service-name": "web", "multicluster.kubernetes.io/service-imported": "true"}
			notes := map[string]string{"docs": "y", "multicluster.kubernetes.io/derived-service": derived.Name}
			for key, value := range labels {
				all[key] = value
			}
			for key, value := range all {
				onService[key] = value
			}
			for key, value := range annotations {
				notes[key] = value
			}
			lab.Equal(t, "labels and annotations", []map[string]string{all, onService, notes, nil}, []map[string]string{i.Labels, derived.Labels, i.Annotations, derived.Annotations})
			return nil
		})
	}
	has("example.com, kuma.io", nil, nil)
	b.Event(t, k, "MetadataLeftOut", "")

	stop()
	stop = b.Start(t, func(o *agent.Options) { o.MetadataDomains = []string{"example.com"} })
	has("kuma.io", map[string]string{"example.com/tier": "gold"}, map[string]string{"example.com/note": "z"})
	stop()
	b.Start(t)
	has("example.com, kuma.io", nil, nil)
}
