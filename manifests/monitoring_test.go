// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/tombolo-mcs/tombolo/manifests"
)

func TestMonitoring(t *testing.T) {
	objects := must(t)(manifests.Render("monitoring"))
	want := []string{
		"ConfigMap tombolo-system/tombolo-dashboard",
		"PodMonitor tombolo-system/tombolo-agent",
		"PodMonitor tombolo-system/tombolo-dns",
		"PrometheusRule tombolo-system/tombolo-agent",
		"PrometheusRule tombolo-system/tombolo-dns",
	}
	if diff := cmp.Diff(want, names(objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	dashboard := find(t, objects, "ConfigMap")
	if got := dashboard.GetLabels()["grafana_dashboard"]; got != "1" {
		t.Errorf("grafana_dashboard is %q", got)
	}
	text, _, err := unstructured.NestedString(dashboard.Object, "data", "tombolo.json")
	if err != nil || !json.Valid([]byte(text)) {
		t.Errorf("the dashboard is no JSON (%v)", err)
	}
}

// TestPodMonitors: each selects pods of every kustomization that runs them, and a port that they have.
func TestPodMonitors(t *testing.T) {
	for _, overlay := range []string{"overlays/production", "overlays/dns-only", "overlays/managed", "overlays/managed-member"} {
		for _, o := range must(t)(manifests.Render(overlay)) {
			if o.GetKind() != "Deployment" {
				continue
			}
			deployment := convert[appsv1.Deployment](t, o.Object)
			if monitors := monitorsOf(t, deployment); len(monitors) != 1 {
				t.Errorf("%s: %s is scraped by %v, want one PodMonitor", overlay, deployment.Name, monitors)
			}
		}
	}
}

// monitorsOf returns the PodMonitors that scrape the pods of a Deployment.
func monitorsOf(t *testing.T, deployment appsv1.Deployment) []string {
	t.Helper()
	var names []string
	for _, o := range must(t)(manifests.Render("monitoring")) {
		if o.GetKind() != "PodMonitor" {
			continue
		}
		monitor := convert[struct {
			Spec struct {
				Selector            metav1.LabelSelector
				NamespaceSelector   struct{ Any bool }
				PodMetricsEndpoints []struct{ Port string }
			}
		}](t, o.Object).Spec
		selector, err := metav1.LabelSelectorAsSelector(&monitor.Selector)
		if err != nil {
			t.Fatal(err)
		}
		selects := selector.Matches(k8slabels.Set(deployment.Spec.Template.Labels)) && monitor.NamespaceSelector.Any
		if selects && slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
			return p.Name == monitor.PodMetricsEndpoints[0].Port
		}) {
			names = append(names, o.GetName())
		}
	}
	return names
}

// convert returns an object as a value of a type.
func convert[T any](t *testing.T, content map[string]any) T {
	t.Helper()
	var result T
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	return result
}
