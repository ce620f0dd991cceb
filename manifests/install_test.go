// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestSpread: in production, no node gets two pods of a Deployment if there is another one that takes pods. No pod has a priority class
// of Kubernetes itself, which some API servers admit in kube-system only.
func TestSpread(t *testing.T) {
	objects := must(t)(manifests.Install(manifests.InstallOptions{Parts: manifests.Production, Gateway: true}))
	deployments := ofKind[appsv1.Deployment](t, objects, "Deployment")
	check.Equal(t, "number of Deployments", 3, len(deployments))
	for _, d := range deployments {
		spec := d.Spec.Template.Spec
		if *d.Spec.Replicas < 2 || spec.PriorityClassName != "" || !spreads(t, d.Spec.Template) {
			t.Errorf("%s: %d replicas, priority class %q, %+v", d.Name, *d.Spec.Replicas, spec.PriorityClassName, spec.TopologySpreadConstraints)
		}
	}
}

// spreads reports whether pods of a template must be on different nodes, as far as there are such nodes.
func spreads(t *testing.T, pod corev1.PodTemplateSpec) bool {
	t.Helper()
	for _, c := range pod.Spec.TopologySpreadConstraints {
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		check.Must(t, err)
		if c.TopologyKey == corev1.LabelHostname && c.MaxSkew == 1 && c.WhenUnsatisfiable == corev1.DoNotSchedule &&
			*c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor && selector.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}
