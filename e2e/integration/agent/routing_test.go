// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// routingPolicy returns a policy for all imports of a namespace, or for those with these names.
func routingPolicy(namespace, name string, sources []policyv1alpha1.Source, imports ...policyv1alpha1.ObjectName) *policyv1alpha1.ServiceImportRoutingPolicy {
	return &policyv1alpha1.ServiceImportRoutingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1alpha1.ServiceImportRoutingPolicySpec{Imports: imports, Sources: sources},
	}
}

// setReady makes the endpoints of a source slice ready or not.
func (m *member) setReady(t *testing.T, slice *discoveryv1.EndpointSlice, ready bool) {
	t.Helper()
	world.Update(t, m, client.ObjectKeyFromObject(slice), slice, func() {
		for i := range slice.Endpoints {
			slice.Endpoints[i].Conditions.Ready = new(ready)
		}
	})
}

// accepted waits until a policy has the condition Accepted with this status, reason and text.
func (m *member) accepted(t *testing.T, policy *policyv1alpha1.ServiceImportRoutingPolicy, status metav1.ConditionStatus, reason, text string) {
	t.Helper()
	world.Await(t, m, client.ObjectKeyFromObject(policy), policy, func(got *policyv1alpha1.ServiceImportRoutingPolicy) error {
		c := meta.FindStatusCondition(got.Status.Conditions, "Accepted")
		if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("conditions of policy %s: %+v, want %s/%s: %s", policy.Name, got.Status.Conditions, status, reason, text)
		}
		return nil
	})
}

// TestRouting: an import prefers its own cluster, then its region, then any. It fails over at once and returns after the delay, also if
// the agent is restarted meanwhile.
//
// spec: P1, A5
func TestRouting(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.Member("b"), lab.Member("c"))
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	for id, region := range map[string]hubv1alpha1.PropertyValue{"a": "eu", "b": "eu", "c": "us"} {
		w.ChangeMember(t, id, func(s *hubv1alpha1.MemberSpec) { s.Properties = properties{"region": region} })
	}
	stop := a.Start(t)
	b.Start(t)
	c.Start(t)
	k := key{Namespace: world.Namespace(t, a, b, c), Name: "web"}
	_, own := a.ExportWeb(t, k, "10.1.0.1")
	_, near := b.ExportWeb(t, k, "10.2.0.1")
	c.ExportWeb(t, k, "10.3.0.1")
	const ofA, ofB, ofC = "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080", "c 10.3.0.1:http:8080"
	a.Endpoints(t, k, ofA, ofB, ofC)

	locality := routingPolicy(k.Namespace, "locality", []policyv1alpha1.Source{{SameCluster: true}, {SameProperty: "region"}, {Any: true}})
	lab.Must(t, a.Create(t.Context(), locality.DeepCopy()))
	a.Endpoints(t, k, ofA)
	a.accepted(t, locality, metav1.ConditionTrue, "Accepted", "the policy is in effect")
	a.ImportCondition(t, k, conditions.TypePreferred, metav1.ConditionTrue, conditions.ReasonFirstSource, "ServiceImportRoutingPolicy locality: source 1 serves http/IPv4 from a")

	a.setReady(t, own, false)
	a.Endpoints(t, k, ofB)
	a.ImportCondition(t, k, conditions.TypePreferred, metav1.ConditionFalse, conditions.ReasonFallback, "ServiceImportRoutingPolicy locality: source 2 serves http/IPv4 from b")
	b.setReady(t, near, false)
	a.Endpoints(t, k, ofC)
	b.Endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080", ofC) // the policy is for a only

	available := time.Now()
	b.setReady(t, near, true)
	a.ImportCondition(t, k, conditions.TypePreferred, metav1.ConditionFalse, conditions.ReasonFallback, "ServiceImportRoutingPolicy locality: source 3 serves http/IPv4 from c; an earlier source is available, and serves when it has been so for 10s")
	a.Endpoints(t, k, ofB)
	returnedAfter(t, available)

	stop()
	a.setReady(t, own, true)
	available = time.Now()
	stop = a.Start(t)
	a.ImportCondition(t, k, conditions.TypePreferred, metav1.ConditionFalse, conditions.ReasonFallback, "ServiceImportRoutingPolicy locality: source 2 serves http/IPv4 from b; an earlier source is available, and serves when it has been so for 10s")
	lab.Must(t, a.HasEndpoints(t.Context(), k, ofB))
	a.Endpoints(t, k, ofA)
	returnedAfter(t, available)

	lab.Must(t, w.Hub.APIServer.Stop(t.Context()))
	stop()
	a.setReady(t, own, false) // the agent does not know properties, and b does not serve
	stop = a.Start(t)
	a.ImportCondition(t, k, conditions.TypePreferred, metav1.ConditionFalse, conditions.ReasonNoSource, "no source of ServiceImportRoutingPolicy locality has an available endpoint")
	lab.Must(t, w.Hub.APIServer.Start(t.Context()))
	a.Endpoints(t, k, ofB)
	lab.Must(t, w.Hub.APIServer.Stop(t.Context()))
	stop()
	a.Start(t)
	a.ImportCondition(t, k, conditions.TypePreferred, metav1.ConditionFalse, conditions.ReasonFallback, "ServiceImportRoutingPolicy locality: source 2 serves http/IPv4 from b")
	lab.Must(t, a.HasEndpoints(t.Context(), k, ofB))
	lab.Must(t, w.Hub.APIServer.Start(t.Context()))
}

func returnedAfter(t *testing.T, available time.Time) {
	t.Helper()
	if after := time.Since(available); after < preference.ReturnDelay {
		t.Errorf("a better source serves after %s", after)
	}
}

// TestRoutingPolicies: the API server refuses what is not valid; a policy says what it does not do; what no source matches does not serve.
//
// spec: P1, P2
func TestRoutingPolicies(t *testing.T) {
	t.Parallel()
	_, a, b := newPair(t)
	a.Start(t)
	stopB := b.Start(t)
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	a.ExportWeb(t, k, "10.1.0.1")
	b.ExportWeb(t, k, "10.2.0.1")
	headless := world.Service(key{Namespace: k.Namespace, Name: "headless"}, world.Port("http", 80))
	headless.Spec.ClusterIP = "None"
	b.ExportService(t, headless, world.Slice(headless, "v4", "10.2.0.2"))
	const ofA, ofB = "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080"
	a.Endpoints(t, k, ofA, ofB)
	a.Endpoints(t, client.ObjectKeyFromObject(headless), "b 10.2.0.2:http:8080")
	stopB()
	b.Start(t, func(o *agent.Options) { o.DefaultSources = []string{"SameCluster", "Any"} })
	b.Endpoints(t, k, ofB)
	b.ImportCondition(t, k, conditions.TypePreferred, metav1.ConditionTrue, conditions.ReasonFirstSource, "the default sources of the agent: source 1 serves http/IPv4 from b")

	onlyB := routingPolicy(k.Namespace, "only-b", []policyv1alpha1.Source{{Clusters: []policyv1alpha1.ClusterID{"b"}}})
	lab.Must(t, a.Create(t.Context(), onlyB))
	a.Endpoints(t, k, ofB)
	a.Endpoints(t, client.ObjectKeyFromObject(headless), "b 10.2.0.2:http:8080")
	a.accepted(t, onlyB, metav1.ConditionTrue, "Accepted", "headless imports have no policy: headless")
	younger := routingPolicy(k.Namespace, "younger", []policyv1alpha1.Source{{SameCluster: true}}, "web")
	lab.Must(t, a.Create(t.Context(), younger))
	a.accepted(t, younger, metav1.ConditionFalse, "Superseded", "the older policy only-b decides for web")
	none := routingPolicy(k.Namespace, "none", []policyv1alpha1.Source{{Clusters: []policyv1alpha1.ClusterID{"mars"}}, {SameProperty: "region"}}, "other")
	lab.Must(t, a.Create(t.Context(), none))
	a.accepted(t, none, metav1.ConditionFalse, "NoImport", "it selects no ServiceImport of this namespace; source 1 names clusters that are no members: mars; source 2 matches no cluster: this cluster has no property region")
	ofHeadless := routingPolicy(k.Namespace, "a-headless", []policyv1alpha1.Source{{Any: true}}, "headless")
	world.Update(t, a, client.ObjectKeyFromObject(onlyB), onlyB, func() {
		onlyB.Spec.Imports, onlyB.Spec.Sources = []policyv1alpha1.ObjectName{"web"}, []policyv1alpha1.Source{{Clusters: []policyv1alpha1.ClusterID{"mars"}}}
	})
	lab.Must(t, a.Create(t.Context(), ofHeadless))
	a.accepted(t, ofHeadless, metav1.ConditionFalse, "NotSupported", "headless imports have no policy: headless")
	a.Endpoints(t, k)
	a.ImportCondition(t, k, conditions.TypePreferred, metav1.ConditionFalse, conditions.ReasonNoSource, "no source of ServiceImportRoutingPolicy only-b has an available endpoint; source 1 names clusters that are no members: mars")
	lab.Must(t, a.Delete(t.Context(), onlyB))
	a.Endpoints(t, k, ofA)
	a.accepted(t, younger, metav1.ConditionTrue, "Accepted", "the policy is in effect")
	lab.Must(t, a.Delete(t.Context(), younger))
	a.Endpoints(t, k, ofA, ofB)
	a.WithoutCondition(t, k, conditions.TypePreferred)

	for name, test := range map[string]struct {
		sources []policyv1alpha1.Source
		want    string
	}{
		"none":                {nil, "spec.sources"},
		"an empty one":        {[]policyv1alpha1.Source{{}}, "spec.sources[0]"},
		"two fields":          {[]policyv1alpha1.Source{{SameCluster: true, Any: true}}, "spec.sources[0]"},
		"any is not last":     {[]policyv1alpha1.Source{{Any: true}, {SameCluster: true}}, "any must be the last source"},
		"any twice":           {[]policyv1alpha1.Source{{Any: true}, {Any: true}}, "any must be the last source"},
		"no cluster ID":       {[]policyv1alpha1.Source{{Clusters: []policyv1alpha1.ClusterID{"B"}}}, "spec.sources[0].clusters[0]"},
		"no property name":    {[]policyv1alpha1.Source{{SameProperty: "a/b"}}, "spec.sources[0].sameProperty"},
		"no property":         {[]policyv1alpha1.Source{{PropertySelector: &policyv1alpha1.PropertySelector{}}}, "spec.sources[0].propertySelector"},
		"more than there are": {make([]policyv1alpha1.Source, 17), "spec.sources"},
	} {
		err := a.Create(t.Context(), routingPolicy(k.Namespace, "refused", test.sources))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want: %s", name, err, test.want)
		}
	}
	world.Delete(t, a, none, ofHeadless)
}

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
		_, own := a.ExportWeb(t, k, "10.1.0.1")
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
