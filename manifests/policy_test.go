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

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// CEL cannot import Go, so what is reserved stands in both: here they are the same.
func TestReservedAsInClusterset(t *testing.T) {
	for variable, reserved := range map[string]func(string) bool{
		"reservedDomains":    func(domain string) bool { return clusterset.IsReserved(domain + "/x") },
		"reservedNamespaces": clusterset.IsReservedNamespace,
	} {
		t.Run(variable, func(t *testing.T) {
			got, want := inPolicy(t, variable), inGo(t, variable)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-clusterset +policy:\n%s", diff)
			}
			for _, s := range got {
				if !reserved(s) {
					t.Errorf("%s is not reserved in clusterset", s)
				}
			}
		})
	}
}

// The agents' own namespace is reserved wherever they are installed as they come.
func TestAgentNamespaceIsReserved(t *testing.T) {
	if !clusterset.IsReservedNamespace(manifests.AgentNamespace) {
		t.Errorf("%s is not reserved in clusterset", manifests.AgentNamespace)
	}
}

// A member may have tokens of its account issued that are good for as long as its agent wants them, and no longer.
func TestTokensAsInClusterset(t *testing.T) {
	all := policies(t)
	i := slices.IndexFunc(all, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == "tokens.hub.tombolo-mcs.io" })
	if i < 0 {
		t.Fatal("there is no such policy")
	}
	want := fmt.Sprintf("object.spec.expirationSeconds <= %d", int(clusterset.TokenLifetime.Seconds()))
	if got := all[i].Spec.Validations[0].Expression; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	accounts := all[i].Spec.MatchConstraints.ResourceRules[0].ResourceNames
	if diff := cmp.Diff([]string{manifests.MemberServiceAccount}, accounts); diff != "" {
		t.Errorf("accounts: -want +got:\n%s", diff)
	}
}

// A hub whose audiences are known lets members have tokens for these only. One as it is rendered does not know them.
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
			all := policies(t, tc.audiences...)
			i := slices.IndexFunc(all, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == "tokens.hub.tombolo-mcs.io" })
			want := []admissionv1.Variable{{Name: "audiences", Expression: tc.want}}
			if diff := cmp.Diff(want, all[i].Spec.Variables); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Each policy fails closed and is bound, or it would bind nobody.
func TestPoliciesAreBound(t *testing.T) {
	bound := map[string][]admissionv1.ValidationAction{}
	for _, o := range must(t)(manifests.Hub()) {
		if o.GetKind() != "ValidatingAdmissionPolicyBinding" {
			continue
		}
		binding := admissionv1.ValidatingAdmissionPolicyBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding); err != nil {
			t.Fatal(err)
		}
		bound[binding.Spec.PolicyName] = binding.Spec.ValidationActions
	}
	for _, p := range policies(t) {
		if !slices.Equal(bound[p.Name], []admissionv1.ValidationAction{admissionv1.Deny}) {
			t.Errorf("%s is bound to %v", p.Name, bound[p.Name])
		}
		if p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy != admissionv1.Fail {
			t.Errorf("%s does not fail closed", p.Name)
		}
		for _, v := range p.Spec.Validations {
			if v.Message == "" {
				t.Errorf("%s says nothing where %s is false", p.Name, v.Expression)
			}
		}
	}
}

func policies(t *testing.T, audiences ...string) []admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	var out []admissionv1.ValidatingAdmissionPolicy
	for _, o := range must(t)(manifests.Hub(audiences...)) {
		if o.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		policy := admissionv1.ValidatingAdmissionPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &policy); err != nil {
			t.Fatal(err)
		}
		out = append(out, policy)
	}
	return out
}

// inPolicy returns the strings of a list that is a variable of a policy, sorted.
func inPolicy(t *testing.T, variable string) []string {
	t.Helper()
	var out []string
	for _, policy := range policies(t) {
		for _, v := range policy.Spec.Variables {
			if v.Name != variable {
				continue
			}
			for _, match := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(v.Expression, -1) {
				out = append(out, match[1])
			}
		}
	}
	slices.Sort(out)
	return out
}

// inGo returns the strings of a variable of package clusterset, sorted. It is not exported, as nobody else needs it.
func inGo(t *testing.T, variable string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../pkg/clusterset/metadata.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != variable {
			return true
		}
		ast.Inspect(spec, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, text)
			}
			return true
		})
		return false
	})
	slices.Sort(out)
	return out
}
