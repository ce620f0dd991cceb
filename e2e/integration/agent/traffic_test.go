// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"os"
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

// TestTrafficExamples: the policies of examples are those of docs/traffic.md, and do what it says.
//
// spec: P1, A5
func TestTrafficExamples(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	a.Start(t)
	b.Start(t)
	w.ChangeMember(t, "a", func(s *hubv1alpha1.MemberSpec) { s.Properties = properties{"region": "eu"} })
	defer w.ChangeMember(t, "a", func(s *hubv1alpha1.MemberSpec) { s.Properties = nil })
	document, err := os.ReadFile("../../../docs/traffic.md")
	lab.Must(t, err)
	const ofA, ofB = "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080"
	for _, test := range []struct {
		example, service string
		fallback         []string // if a has no ready endpoint
		reason           string
	}{
		{"locality-first", "web", []string{ofB}, "Fallback"},
		{"active-passive", "database", []string{ofB}, "Fallback"},
		{"data-in-the-eu", "web", []string{ofA}, "NoSource"}, // its slice stays, without a ready endpoint
	} {
		text, err := os.ReadFile("../../../examples/" + test.example + "/policy.yaml")
		lab.Must(t, err)
		_, manifest, _ := strings.Cut(string(text), "\n\n") // without its header
		if !strings.Contains(string(document), "```yaml\n"+manifest+"```") {
			t.Errorf("docs/traffic.md does not have the policy of examples/%s:\n%s", test.example, manifest)
		}
		policy := &policyv1alpha1.ServiceImportRoutingPolicy{}
		lab.Must(t, yaml.UnmarshalStrict([]byte(strings.NewReplacer("east", "a", "west", "b").Replace(manifest)), policy))
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
		a.ImportCondition(t, k, "Preferred", metav1.ConditionFalse, test.reason, "")
		a.Endpoints(t, k, test.fallback...)
	}
}
