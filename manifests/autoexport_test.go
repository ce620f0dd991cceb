// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// The agent may create and delete ServiceExports only with automatic export, which adds the flag too.
//
// spec: P3
func TestAutoExport(t *testing.T) {
	const flag = "--auto-export"
	with := must(t)(manifests.Install(manifests.InstallOptions{Parts: manifests.Production, AutoExport: true, AgentArgs: []string{"--v=1"}}))
	without := must(t)(manifests.Install(manifests.InstallOptions{Parts: manifests.Production}))
	for _, tc := range []struct {
		objects []*unstructured.Unstructured
		flag    bool
		verbs   []string
	}{
		{with, true, []string{"list", "watch", "get", "create", "delete"}},
		{without, false, []string{"list", "watch"}},
	} {
		agent := named[appsv1.Deployment](t, tc.objects, "Deployment", manifests.AgentDeployment)
		args := agent.Spec.Template.Spec.Containers[0].Args
		if slices.Contains(args, flag) != tc.flag {
			t.Errorf("the arguments of the agent are %q", args)
		}
		var bound []string
		for _, b := range ofKind[rbacv1.ClusterRoleBinding](t, tc.objects, "ClusterRoleBinding") {
			if b.Subjects[0].Name == manifests.AgentServiceAccount && b.Subjects[0].Namespace == manifests.AgentNamespace {
				bound = append(bound, b.RoleRef.Name)
			}
		}
		var verbs []string
		for _, role := range ofKind[rbacv1.ClusterRole](t, tc.objects, "ClusterRole") {
			for _, rule := range role.Rules {
				if slices.Contains(bound, role.Name) && slices.Equal(rule.Resources, []string{"serviceexports"}) {
					verbs = append(verbs, rule.Verbs...)
				}
			}
		}
		check.Equal(t, "what the agent may do with ServiceExports", tc.verbs, verbs)
	}
}
