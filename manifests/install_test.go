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

// TestPriorityHasQuota: where pods have a priority class of Kubernetes' own, a quota beside them speaks of it and leaves room
// for a rollout of all of them, as some API servers admit none without.
func TestPriorityHasQuota(t *testing.T) {
	objects := must(t)(manifests.Install(manifests.InstallOptions{Parts: manifests.Production}))
	quota := convert[corev1.ResourceQuota](t, find(t, objects, "ResourceQuota").Object)
	pods := int64(0)
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		deployment := convert[appsv1.Deployment](t, o.Object)
		pods += int64(*deployment.Spec.Replicas)
		want := &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
			ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn,
			Values: []string{deployment.Spec.Template.Spec.PriorityClassName},
		}}}
		if diff := cmp.Diff(want, quota.Spec.ScopeSelector); diff != "" || quota.Namespace != deployment.Namespace {
			t.Errorf("%s in %s, quota in %s: -want +got:\n%s", deployment.Name, deployment.Namespace, quota.Namespace, diff)
		}
	}
	if room := quota.Spec.Hard.Pods().Value(); pods == 0 || room < 10*pods {
		t.Errorf("the quota has room for %d pods, and there are %d", room, pods)
	}
}
