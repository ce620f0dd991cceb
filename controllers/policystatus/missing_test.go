// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// fixture is a cluster with one export, one import and two namespaces, and one other member.
func fixture() accessView {
	return accessView{
		own: "own", synced: true,
		members: map[clusterset.ClusterID]reach.Cluster{"own": {}, "east": {}},
		exports: map[types.NamespacedName]bool{{Namespace: "shop", Name: "web"}: true},
		imports: map[types.NamespacedName]bool{{Namespace: "shop", Name: "cart"}: true},
		objects: access.Objects{
			Namespaces: map[string]labels.Set{"shop": {"team": "shop"}, "blog": {}},
			Properties: access.Properties{"own": {"region": "us", "tier": "test"}, "east": {"region": "eu"}},
		},
	}
}

type (
	peer     = policyv1alpha1.Peer
	peers    = []peer
	ids      = []policyv1alpha1.ClusterID
	selector = policyv1alpha1.PropertySelector
	values   = map[string]policyv1alpha1.PropertyValue
)

// TestMissing: each name in a rule that nothing has is in the condition Accepted, which stays True. What cannot be known is not reported.
//
// spec: A1, A2, A6
func TestMissing(t *testing.T) {
	t.Parallel()
	grant := func(to peers, exports ...policyv1alpha1.ObjectName) func(accessView) []metav1.Condition {
		return func(v accessView) []metav1.Condition {
			g := &policyv1alpha1.ServiceExportGrant{Spec: policyv1alpha1.ServiceExportGrantSpec{Exports: exports, To: to}}
			g.Namespace = "shop"
			return v.ofGrant(g)
		}
	}
	policy := func(direction policyv1alpha1.Direction, of peers, services []policyv1alpha1.ObjectName, namespaces map[string]string) func(accessView) []metav1.Condition {
		return func(v accessView) []metav1.Condition {
			p := &policyv1alpha1.ClusterServiceAccessPolicy{Spec: policyv1alpha1.ClusterServiceAccessPolicySpec{Direction: direction, Peers: of, Services: services}}
			if namespaces != nil {
				p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: namespaces}
			}
			return v.ofPolicy(p)
		}
	}
	const in, out = policyv1alpha1.DirectionImport, policyv1alpha1.DirectionExport
	web, cart := []policyv1alpha1.ObjectName{"web"}, []policyv1alpha1.ObjectName{"cart"}
	all, inEU := peers{{}}, &selector{MatchProperties: values{"region": "eu"}}
	for name, test := range map[string]struct {
		rule func(accessView) []metav1.Condition
		want string
	}{
		"grant: all":                              {grant(all), "Accepted"},
		"grant: a member":                         {grant(peers{{Clusters: ids{"east"}}}, "web"), "Accepted"},
		"grant: this cluster":                     {grant(peers{{Clusters: ids{"own"}}}), "Accepted"},
		"grant: a cluster that is no member":      {grant(peers{{Clusters: ids{"zz"}}}), "ClustersNotFound zz"},
		"grant: one of two":                       {grant(peers{{Clusters: ids{"east"}}, {Clusters: ids{"zz", "east"}}}), "ClustersNotFound zz"},
		"grant: twice":                            {grant(peers{{Clusters: ids{"zz"}}, {Clusters: ids{"zz", "yy"}}}), "ClustersNotFound yy, zz;"},
		"grant: a property":                       {grant(peers{{PropertySelector: inEU}}), "Accepted"},
		"grant: a value that no member has":       {grant(peers{{PropertySelector: &selector{MatchProperties: values{"region": "ue"}}}}), "PropertiesNotFound region=ue"},
		"grant: a name that no member has":        {grant(peers{{PropertySelector: &selector{MatchProperties: values{"regoin": "eu"}}}}), "PropertiesNotFound regoin=eu"},
		"grant: of this cluster only":             {grant(peers{{PropertySelector: &selector{MatchProperties: values{"tier": "test"}}}}), "PropertiesNotFound tier=test"},
		"grant: no member has both":               {grant(peers{{PropertySelector: &selector{MatchProperties: values{"region": "eu", "tier": "test"}}}}), "PropertiesNotFound region=eu and tier=test"},
		"grant: not the named cluster":            {grant(peers{{Clusters: ids{"own"}, PropertySelector: inEU}}), "PropertiesNotFound region=eu"},
		"grant: an export":                        {grant(all, "wbe", "web"), "ExportsNotFound wbe;"},
		"grant: an export, and a cluster":         {grant(peers{{Clusters: ids{"zz"}}}, "wbe"), "ExportsNotFound No member has the cluster ID zz"},
		"grant: namespaces of other clusters":     {grant(peers{{Namespaces: []policyv1alpha1.NamespaceName{"elsewhere"}}}), "Accepted"},
		"policy: a cluster that is no member":     {policy(out, peers{{Clusters: ids{"zz"}}}, nil, nil), "ClustersNotFound zz"},
		"policy: an import from no member":        {policy(in, peers{{Clusters: ids{"zz"}}}, nil, nil), "ClustersNotFound zz"},
		"policy: a property":                      {policy(in, peers{{PropertySelector: &selector{MatchProperties: values{"region": "ue"}}}}, nil, nil), "PropertiesNotFound region=ue"},
		"policy: without peers":                   {policy(out, nil, nil, nil), "Accepted"},
		"policy: clients of another cluster":      {policy(out, peers{{Namespaces: []policyv1alpha1.NamespaceName{"elsewhere"}}}, nil, nil), "Accepted"},
		"policy: clients of this cluster":         {policy(in, peers{{Namespaces: []policyv1alpha1.NamespaceName{"shop", "shpo"}}}, nil, nil), "NamespacesNotFound no namespace shpo."},
		"policy: a selector of namespaces":        {policy(out, nil, nil, map[string]string{"team": "shop"}), "Accepted"},
		"policy: a selector of none":              {policy(out, nil, nil, map[string]string{"team": "shpo"}), "NamespacesNotFound spec.namespaceSelector"},
		"policy: an exported service":             {policy(out, nil, web, nil), "Accepted"},
		"policy: a service that is only imported": {policy(out, nil, cart, nil), "ServicesNotFound cart"},
		"policy: an imported service":             {policy(in, nil, cart, nil), "Accepted"},
		"policy: a service of another namespace":  {policy(in, nil, cart, map[string]string{"team": "shop"}), "Accepted"},
		"policy: a service that does not exist":   {policy(in, nil, web, nil), "ServicesNotFound web"},
	} {
		accepted := meta.FindStatusCondition(test.rule(fixture()), policyv1alpha1.ConditionAccepted)
		reason, text, _ := strings.Cut(test.want, " ")
		if accepted.Status != metav1.ConditionTrue || accepted.Reason != reason || !strings.Contains(accepted.Message, text) {
			t.Errorf("%s: %+v", name, *accepted)
		}
		if reason == policyv1alpha1.ReasonAccepted && !strings.HasSuffix(accepted.Message, " is valid.") {
			t.Errorf("%s: %s", name, accepted.Message)
		}
	}
}

// TestMissingBeforeTheHubIsRead: a restart of the agent while the hub is down changes no condition, and a new rule is not called valid without
// reserve.
//
// spec: A6
func TestMissingBeforeTheHubIsRead(t *testing.T) {
	t.Parallel()
	v := fixture()
	v.synced, v.members = false, nil
	g := &policyv1alpha1.ServiceExportGrant{Spec: policyv1alpha1.ServiceExportGrantSpec{To: peers{{Clusters: ids{"east"}}}}}
	g.Generation = 2
	want := conditions.GrantAccepted(conditions.Missing{Unread: true}).Message
	check.Equal(t, "message of a new grant", want, meta.FindStatusCondition(v.ofGrant(g), policyv1alpha1.ConditionAccepted).Message)
	g.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.ConditionAccepted, ObservedGeneration: 1}}
	check.Equal(t, "message of a changed grant", want, meta.FindStatusCondition(v.ofGrant(g), policyv1alpha1.ConditionAccepted).Message)
	g.Status.Conditions[0].ObservedGeneration = 2
	if c := meta.FindStatusCondition(v.ofGrant(g), policyv1alpha1.ConditionAccepted); c != nil {
		t.Errorf("the condition of a grant is replaced: %+v", *c)
	}
	g.Spec.To = peers{{}}
	if c := meta.FindStatusCondition(v.ofGrant(g), policyv1alpha1.ConditionAccepted); c == nil || c.Message != "The grant is valid." {
		t.Errorf("a grant that names no cluster: %+v", c)
	}
}
