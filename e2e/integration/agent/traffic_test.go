// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// yamlBlocks matches the manifests of a document.
var yamlBlocks = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestTrafficDocument: the policies of docs/traffic.md do what it says.
//
// spec: P1, A5
func TestTrafficDocument(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.Start(t)
	b.Start(t)
	w.ChangeMember(t, "a", func(s *hubv1alpha1.MemberSpec) { s.Properties = properties{"region": "eu"} })
	defer w.ChangeMember(t, "a", func(s *hubv1alpha1.MemberSpec) { s.Properties = nil })
	text, err := os.ReadFile("../../../docs/traffic.md")
	lab.Must(t, err)
	document := strings.NewReplacer("east", "a", "west", "b").Replace(string(text))
	policies := map[string]*policyv1alpha1.ServiceImportRoutingPolicy{}
	for _, block := range yamlBlocks.FindAllStringSubmatch(document, -1) {
		policy := &policyv1alpha1.ServiceImportRoutingPolicy{}
		lab.Must(t, yaml.UnmarshalStrict([]byte(block[1]), policy))
		policies[policy.Name] = policy
	}
	const ofA, ofB = "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080"
	for _, test := range []struct {
		policy, service string
		fallback        []string // if a has no ready endpoint
	}{
		{"locality", "web", []string{ofB}},
		{"active-passive", "database", []string{ofB}},
		{"eu-only", "web", []string{ofA}}, // its slice stays, without a ready endpoint
	} {
		policy := policies[test.policy]
		if policy == nil {
			t.Fatalf("the document has no policy %s", test.policy)
		}
		k := key{Namespace: policy.Namespace, Name: test.service}
		world.CreateNamespace(t, k.Namespace, a, b)
		var own *discoveryv1.EndpointSlice
		_, own = a.ExportWeb(t, k, "10.1.0.1")
		b.ExportWeb(t, k, "10.2.0.1")
		a.Endpoints(t, k, ofA, ofB)
		lab.Must(t, a.Create(t.Context(), policy))
		a.Endpoints(t, k, ofA)
		a.accepted(t, policy, metav1.ConditionTrue, "Accepted", "the policy is in effect")
		a.setReady(t, own, false)
		a.ImportCondition(t, k, "Preferred", metav1.ConditionFalse, map[bool]string{true: "NoSource", false: "Fallback"}[test.policy == "eu-only"], "")
		a.Endpoints(t, k, test.fallback...)
	}
}
