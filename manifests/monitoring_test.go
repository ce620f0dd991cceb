// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
)

func TestMonitoring(t *testing.T) {
	objects := must(t)(manifests.Render("monitoring"))
	want := []string{
		"ConfigMap tombolo-system/tombolo-dashboard",
		"PodMonitor tombolo-system/tombolo-agent",
		"PodMonitor tombolo-system/tombolo-dns",
		"PodMonitor tombolo-system/tombolo-gateway",
		"PrometheusRule tombolo-system/tombolo-agent",
		"PrometheusRule tombolo-system/tombolo-dns",
		"PrometheusRule tombolo-system/tombolo-gateway",
	}
	check.Equal(t, "objects", want, names(objects))
	dashboard := find(t, objects, "ConfigMap")
	check.Equal(t, "grafana_dashboard", "1", dashboard.GetLabels()["grafana_dashboard"])
	text, _, err := unstructured.NestedString(dashboard.Object, "data", "tombolo.json")
	if err != nil || !json.Valid([]byte(text)) {
		t.Errorf("the dashboard is no JSON (%v)", err)
	}
}

// podMonitor has the fields of a PodMonitor that select pods.
type podMonitor struct {
	Metadata metav1.ObjectMeta
	Spec     struct {
		Selector            metav1.LabelSelector
		NamespaceSelector   struct{ Any bool }
		PodMetricsEndpoints []struct{ Port string }
	}
}

// TestPodMonitors: the pods of every kustomization have one PodMonitor, with a port that they have.
func TestPodMonitors(t *testing.T) {
	monitors := ofKind[podMonitor](t, must(t)(manifests.Render("monitoring")), "PodMonitor")
	for _, overlay := range []string{"overlays/production", "overlays/dns-only", "overlays/managed", "overlays/managed-member", "gateway"} {
		for _, deployment := range ofKind[appsv1.Deployment](t, must(t)(manifests.Render(overlay)), "Deployment") {
			pod := deployment.Spec.Template
			var found []string
			for _, m := range monitors {
				selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
				check.Must(t, err)
				hasPort := slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
					return p.Name == m.Spec.PodMetricsEndpoints[0].Port
				})
				if hasPort && m.Spec.NamespaceSelector.Any && selector.Matches(k8slabels.Set(pod.Labels)) {
					found = append(found, m.Metadata.Name)
				}
			}
			if len(found) != 1 {
				t.Errorf("%s: %s is scraped by %v, want one PodMonitor", overlay, deployment.Name, found)
			}
		}
	}
}
