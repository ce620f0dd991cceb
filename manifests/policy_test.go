// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// CEL cannot import Go, so the reserved names are in the policies and in Go. They must be equal.
func TestReservedAsInClusterset(t *testing.T) {
	for variable, reserved := range map[string]func(string) bool{
		"reservedDomains":    func(domain string) bool { return clusterset.IsReserved(domain + "/x") },
		"reservedNamespaces": clusterset.IsReservedNamespace,
	} {
		t.Run(variable, func(t *testing.T) {
			want := inGo(t, variable)
			for policy, got := range inPolicies(t, variable) {
				check.Equal(t, "reserved in clusterset (want) and in policy "+policy, want, got)
			}
			for _, s := range want {
				check.Equal(t, s+" is reserved in clusterset", true, reserved(s))
			}
		})
	}
}

// The default namespace of the agents is reserved.
func TestAgentNamespaceIsReserved(t *testing.T) {
	check.Equal(t, manifests.AgentNamespace+" is reserved in clusterset", true, clusterset.IsReservedNamespace(manifests.AgentNamespace))
}

// A member may request tokens of its account with the lifetime that its agent requests, and not longer.
func TestTokensAsInClusterset(t *testing.T) {
	policy := tokenPolicy(t)
	want := fmt.Sprintf("object.spec.expirationSeconds <= %d", int(clusterset.TokenLifetime.Seconds()))
	check.Equal(t, "expression", want, policy.Spec.Validations[0].Expression)
	accounts := policy.Spec.MatchConstraints.ResourceRules[0].ResourceNames
	check.Equal(t, "accounts", []string{manifests.MemberServiceAccount}, accounts)
}

// If the audiences of the hub are known, members may request tokens for these only. By default they are not known.
func TestTokenAudiences(t *testing.T) {
	for name, tc := range map[string]struct {
		audiences []string
		want      string
	}{
		"unknown": {nil, "[]"},
		"one":     {[]string{"https://kubernetes.default.svc"}, `["https://kubernetes.default.svc"]`},
		"two":     {[]string{`a"b\`, "\u00fc"}, `["a\"b\\", "\u00fc"]`},
	} {
		t.Run(name, func(t *testing.T) {
			want := []admissionv1.Variable{{Name: "audiences", Expression: tc.want}}
			check.Equal(t, "variables", want, tokenPolicy(t, tc.audiences...).Spec.Variables)
		})
	}
}

// Each policy fails closed and has a binding, without which it has no effect.
func TestPoliciesAreBound(t *testing.T) {
	bound := map[string][]admissionv1.ValidationAction{}
	objects := slices.Concat(must(t)(manifests.Hub()), must(t)(manifests.Render("gateway")), must(t)(manifests.Render("agent")))
	for _, binding := range ofKind[admissionv1.ValidatingAdmissionPolicyBinding](t, objects, "ValidatingAdmissionPolicyBinding") {
		bound[binding.Spec.PolicyName] = binding.Spec.ValidationActions
	}
	for _, p := range ofKind[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy") {
		check.Equal(t, p.Name+" is bound to", []admissionv1.ValidationAction{admissionv1.Deny}, bound[p.Name])
		if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admissionv1.Fail {
			t.Errorf("%s does not fail closed", p.Name)
		}
		for _, v := range p.Spec.Validations {
			if v.Message == "" {
				t.Errorf("%s has no message for %s", p.Name, v.Expression)
			}
		}
	}
}

// The policy for metadata is about all that the agent's roles allow it to create, update or patch. The API server stores no reviews.
//
// spec: K4
func TestAgentPolicyCoversRights(t *testing.T) {
	objects := slices.Concat(must(t)(manifests.Render("agent")), must(t)(manifests.AutoExportRights()))
	policy := named[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy", "metadata.agent.tombolo-mcs.io")
	covered := map[string]bool{}
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		for _, resource := range rule.Resources {
			covered[resource+"."+rule.APIGroups[0]] = slices.Equal(rule.Operations, []admissionv1.OperationType{admissionv1.Create, admissionv1.Update})
		}
	}
	rights, err := audit.Rights(objects, types.NamespacedName{Namespace: manifests.AgentNamespace, Name: manifests.AgentServiceAccount})
	check.Must(t, err)
	written := map[string]bool{}
	for _, r := range rights {
		if slices.Contains([]string{"create", "update", "patch"}, r.Verb) {
			written[r.Resource+"."+r.Group] = true
		}
	}
	check.Equal(t, "what the agent may write (want) and the policy is about", written, covered)
}

// tokenPolicy returns the policy for tokens of members.
func tokenPolicy(t *testing.T, audiences ...string) admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	objects := must(t)(manifests.Hub(audiences...))
	return named[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy", "tokens.hub.tombolo-mcs.io")
}

// inPolicies returns the strings of a variable, sorted, by the policies of the hub and the agent that have it.
func inPolicies(t *testing.T, variable string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	objects := slices.Concat(must(t)(manifests.Hub()), must(t)(manifests.Render("agent")))
	for _, policy := range ofKind[admissionv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy") {
		for _, v := range policy.Spec.Variables {
			if v.Name != variable {
				continue
			}
			for _, match := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(v.Expression, -1) {
				out[policy.Name] = append(out[policy.Name], match[1])
			}
			slices.Sort(out[policy.Name])
		}
	}
	if len(out) == 0 {
		t.Errorf("no policy has the variable %s", variable)
	}
	return out
}

// inGo returns the strings of an unexported variable of package clusterset, sorted.
func inGo(t *testing.T, variable string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../pkg/clusterset/metadata.go", nil, 0)
	check.Must(t, err)
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != variable {
			return true
		}
		ast.Inspect(spec, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok {
				text, err := strconv.Unquote(literal.Value)
				check.Must(t, err)
				out = append(out, text)
			}
			return true
		})
		return false
	})
	slices.Sort(out)
	return out
}
