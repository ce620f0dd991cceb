// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestPriorityHasQuota: some API servers admit pods with a priority class of Kubernetes only if the namespace has a quota for it. The
// quota must be sufficient for a rollout of all pods.
func TestPriorityHasQuota(t *testing.T) {
	objects := must(t)(manifests.Install(manifests.InstallOptions{Parts: manifests.Production}))
	quota := ofKind[corev1.ResourceQuota](t, objects, "ResourceQuota")[0]
	pods := int64(0)
	for _, deployment := range ofKind[appsv1.Deployment](t, objects, "Deployment") {
		pods += int64(*deployment.Spec.Replicas)
		want := &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
			ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn,
			Values: []string{deployment.Spec.Template.Spec.PriorityClassName},
		}}}
		if diff := cmp.Diff(want, quota.Spec.ScopeSelector); diff != "" || quota.Namespace != deployment.Namespace {
			t.Errorf("%s in %s, quota in %s: -want +got:\n%s", deployment.Name, deployment.Namespace, quota.Namespace, diff)
		}
	}
	if hard := quota.Spec.Hard.Pods().Value(); pods == 0 || hard < 10*pods {
		t.Errorf("the quota allows %d pods, and there are %d", hard, pods)
	}
}
