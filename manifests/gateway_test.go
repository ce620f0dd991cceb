// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: G1
func TestGateway(t *testing.T) {
	objects := must(t)(manifests.Render("gateway"))
	want := []string{
		"CustomResourceDefinition gatewaystatuses.gateway.tombolo-mcs.io",
		"CustomResourceDefinition remotegateways.gateway.tombolo-mcs.io",
		"ServiceAccount tombolo-system/tombolo-gateway",
		"Role tombolo-system/tombolo-gateway",
		"ClusterRole tombolo-gateway",
		"RoleBinding tombolo-system/tombolo-gateway",
		"ClusterRoleBinding tombolo-gateway",
		"Service tombolo-system/tombolo-gateway",
		"Deployment tombolo-system/tombolo-gateway",
		"PodDisruptionBudget tombolo-system/tombolo-gateway",
		"ValidatingAdmissionPolicy slices.gateway.tombolo-mcs.io",
		"ValidatingAdmissionPolicyBinding slices.gateway.tombolo-mcs.io",
		"NetworkPolicy tombolo-system/tombolo-gateway",
	}
	check.Equal(t, "objects", want, names(objects))
	service := ofKind[corev1.Service](t, objects, "Service")[0]
	check.Equal(t, "the Service", []string{manifests.AgentNamespace, clusterset.GatewayService}, []string{service.Namespace, service.Name})
	pod := ofKind[appsv1.Deployment](t, objects, "Deployment")[0].Spec.Template
	for key, value := range service.Spec.Selector {
		check.Equal(t, "label "+key+" of the pods, by which the Service selects", value, pod.Labels[key])
	}
	for _, port := range pod.Spec.Containers[0].Ports {
		if port.ContainerPort < 1024 || port.ContainerPort >= ports.First && port.ContainerPort <= ports.Last {
			t.Errorf("port %s is %d", port.Name, port.ContainerPort)
		}
	}
}

// The NetworkPolicy lets all clients connect to each listening port: those in the host network, and those of a NodePort or LoadBalancer alias,
// are selected by no selector of pods or namespaces.
//
// spec: G2, L1
func TestListeningPortsAreOpen(t *testing.T) {
	policy := ofKind[networkingv1.NetworkPolicy](t, must(t)(manifests.Render("gateway")), "NetworkPolicy")[0]
	if !slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
		return len(rule.From) == 0 && slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
			return p.EndPort != nil && p.Port.IntVal == ports.First && *p.EndPort == ports.Last
		})
	}) {
		t.Errorf("no rule without clients for ports %d to %d: %v", ports.First, ports.Last, policy.Spec.Ingress)
	}
}

// The policy is about the label of pkg/clusterset and the ServiceAccount of the agent.
//
// spec: G2
func TestGatewaySlicesAsInClusterset(t *testing.T) {
	policy := ofKind[admissionv1.ValidatingAdmissionPolicy](t, must(t)(manifests.Render("gateway")), "ValidatingAdmissionPolicy")[0]
	if got := policy.Spec.MatchConditions[0].Expression; !strings.Contains(got, "'"+clusterset.LabelGateway+"'") {
		t.Errorf("%s is not about %s", got, clusterset.LabelGateway)
	}
	want := "request.userInfo.username == 'system:serviceaccount:" + manifests.AgentNamespace + ":" + manifests.AgentServiceAccount + "'"
	check.Equal(t, "expression", want, policy.Spec.Validations[0].Expression)
}

// Only the agent may read the authorities of the gateways, and the gateways write only their status and Events.
//
// spec: G1, G5
func TestGatewayRights(t *testing.T) {
	objects := must(t)(manifests.Render("gateway"))
	var rules []rbacv1.PolicyRule
	for _, role := range ofKind[rbacv1.Role](t, objects, "Role") {
		rules = append(rules, role.Rules...)
	}
	for _, role := range ofKind[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		rules = append(rules, role.Rules...)
	}
	for _, rule := range rules {
		if slices.Contains(rule.Resources, "secrets") && !slices.Equal(rule.ResourceNames, []string{clusterset.GatewayCertificateSecret}) {
			t.Errorf("the gateways may read %v", rule)
		}
		reads := !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
		if !reads && !slices.Equal(rule.Resources, []string{"gatewaystatuses"}) && !slices.Equal(rule.Resources, []string{"events"}) {
			t.Errorf("the gateways may write %v", rule)
		}
	}
	agent := ofKind[rbacv1.Role](t, must(t)(manifests.Render("agent")), "Role")[0]
	want := []string{manifests.HubSecret, clusterset.GatewayAuthoritySecret, clusterset.GatewayCertificateSecret}
	if !slices.ContainsFunc(agent.Rules, func(r rbacv1.PolicyRule) bool { return slices.Equal(r.ResourceNames, want) }) {
		t.Errorf("the agent has no rights to %v", want)
	}
}
