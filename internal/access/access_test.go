// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"fmt"
	"slices"
	stdstrings "strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

type (
	accessPolicy = policyv1alpha1.ClusterServiceAccessPolicy
	policySpec   = policyv1alpha1.ClusterServiceAccessPolicySpec
	exportGrant  = policyv1alpha1.ServiceExportGrant
	apiPeer      = policyv1alpha1.Peer
)

const (
	admin, baseline        = policyv1alpha1.TierAdmin, policyv1alpha1.TierBaseline
	accept, deny, pass     = policyv1alpha1.ActionAccept, policyv1alpha1.ActionDeny, policyv1alpha1.ActionPass
	exporting, importing   = policyv1alpha1.DirectionExport, policyv1alpha1.DirectionImport
	production, unknownKey = "production", "gone"
)

var (
	web = Service{Key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}}
	// frontend and anonymous are clients of the cluster east: a pod that is known, and one that is not.
	frontend   = Client{Cluster: "east", Namespace: "shop", ServiceAccount: "frontend"}
	anonymous  = Client{Cluster: "east"}
	namespaces = map[string]labels.Set{"shop": {"stage": production}, "test": {"stage": "test"}}
)

// regions are the properties of clusters: those of north are not known.
var regions = Properties{"own": {"region": "eu"}, "east": {"region": "eu", "tier": "gold"}, "west": {"region": "us"}, "south": {}}

// inRegion matches the clusters of a region.
func inRegion(region policyv1alpha1.PropertyValue) apiPeer {
	return apiPeer{PropertySelector: &policyv1alpha1.PropertySelector{MatchProperties: map[string]policyv1alpha1.PropertyValue{"region": region}}}
}

func policyOf(name string, spec policySpec) accessPolicy {
	spec.Tier, spec.Direction = cmp.Or(spec.Tier, baseline), cmp.Or(spec.Direction, exporting)
	return accessPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func grantOf(name string, spec policyv1alpha1.ServiceExportGrantSpec) exportGrant {
	return exportGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec}
}

// spec: A1, A2, A3
func TestDecide(t *testing.T) {
	t.Parallel()
	toShop := []apiPeer{{Namespaces: []policyv1alpha1.NamespaceName{"shop"}}}
	toFrontend := []apiPeer{{Namespaces: toShop[0].Namespaces, ServiceAccounts: []policyv1alpha1.ObjectName{"frontend"}}}
	toEast := []apiPeer{{Clusters: []policyv1alpha1.ClusterID{"east"}}}
	toWest := []apiPeer{{Clusters: []policyv1alpha1.ClusterID{"west"}}}
	grantTo := func(peers []apiPeer) []exportGrant {
		return []exportGrant{grantOf("some", policyv1alpha1.ServiceExportGrantSpec{To: peers})}
	}
	granted := web
	granted.GrantedOnly = true
	isProduction := &metav1.LabelSelector{MatchLabels: map[string]string{"stage": production}}
	isTest := &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "test"}}
	for name, test := range map[string]struct {
		policies []accessPolicy
		grants   []exportGrant
		service  Service
		client   Client
		allowed  bool
		rule     string
	}{
		"nothing":                     {service: web, client: frontend, allowed: true, rule: NoRule},
		"nothing, an unknown client":  {service: web, client: anonymous, allowed: true, rule: NoRule},
		"granted only, without grant": {service: granted, client: frontend, rule: GrantedOnly},
		"granted only, with grant":    {service: granted, grants: grantTo(toEast), client: frontend, allowed: true, rule: "ServiceExportGrant shop/some"},
		"an unknown namespace": {
			service: Service{Key: clusterset.ServiceKey{Namespace: unknownKey, Name: "web"}}, client: frontend, rule: NamespaceUnknown,
		},
		"a grant to the cluster":         {service: web, grants: grantTo(toEast), client: anonymous, allowed: true, rule: "ServiceExportGrant shop/some"},
		"a grant to another cluster":     {service: web, grants: grantTo(toWest), client: frontend, rule: NotGranted},
		"a grant to the account":         {service: web, grants: grantTo(toFrontend), client: frontend, allowed: true, rule: "ServiceExportGrant shop/some"},
		"a grant to the unknown account": {service: web, grants: grantTo(toFrontend), client: anonymous, rule: NotGranted},
		"a renamed account": {
			service: web, grants: grantTo(toFrontend), client: Client{Cluster: "east", Namespace: "shop", ServiceAccount: "front"}, rule: NotGranted,
		},
		"an account of another namespace": {
			service: web, grants: grantTo(toFrontend), client: Client{Cluster: "east", Namespace: "test", ServiceAccount: "frontend"}, rule: NotGranted,
		},
		"a grant of another export": {
			service: web, client: frontend, allowed: true, rule: NoRule,
			grants: []exportGrant{grantOf("db", policyv1alpha1.ServiceExportGrantSpec{Exports: []policyv1alpha1.ObjectName{"db"}, To: toWest})},
		},
		"one of two grants": {
			service: web, client: frontend, allowed: true, rule: "ServiceExportGrant shop/east",
			grants: []exportGrant{grantOf("a", policyv1alpha1.ServiceExportGrantSpec{To: toWest}), grantOf("east", policyv1alpha1.ServiceExportGrantSpec{To: toEast})},
		},
		"Admin before a grant": {
			service: web, client: frontend, grants: grantTo(toEast), rule: "ClusterServiceAccessPolicy no",
			policies: []accessPolicy{policyOf("no", policySpec{Tier: admin, Action: deny})},
		},
		"a grant before Baseline": {
			service: web, client: frontend, grants: grantTo(toEast), allowed: true, rule: "ServiceExportGrant shop/some",
			policies: []accessPolicy{policyOf("no", policySpec{Action: deny})},
		},
		"Admin passes to a grant": {
			service: web, client: frontend, grants: grantTo(toWest), rule: NotGranted,
			policies: []accessPolicy{policyOf("pass", policySpec{Tier: admin, Priority: 1, Action: pass}), policyOf("yes", policySpec{Tier: admin, Priority: 2, Action: accept})},
		},
		"Baseline passes to the default": {
			service: web, client: frontend, allowed: true, rule: NoRule,
			policies: []accessPolicy{policyOf("pass", policySpec{Priority: 1, Action: pass, Peers: toFrontend}), policyOf("no", policySpec{Priority: 2, Action: deny})},
		},
		"the smaller priority": {
			service: web, client: frontend, allowed: true, rule: "ClusterServiceAccessPolicy yes",
			policies: []accessPolicy{policyOf("no", policySpec{Priority: 2, Action: deny}), policyOf("yes", policySpec{Priority: 1, Action: accept})},
		},
		"of equal priority, Deny first": {
			service: web, client: frontend, rule: "ClusterServiceAccessPolicy z",
			policies: []accessPolicy{policyOf("a", policySpec{Action: accept}), policyOf("b", policySpec{Action: pass}), policyOf("z", policySpec{Action: deny})},
		},
		"of equal priority, Pass before Accept": {
			service: web, client: frontend, grants: grantTo(toWest), rule: NotGranted,
			policies: []accessPolicy{policyOf("a", policySpec{Tier: admin, Action: accept}), policyOf("b", policySpec{Tier: admin, Action: pass})},
		},
		"Accept does not match an unknown client, Deny does": {
			service: web, client: anonymous, rule: "ClusterServiceAccessPolicy no",
			policies: []accessPolicy{policyOf("yes", policySpec{Priority: 1, Action: accept, Peers: toShop}), policyOf("no", policySpec{Priority: 2, Action: deny, Peers: toFrontend})},
		},
		"Pass does not match an unknown client": {
			service: web, client: anonymous, rule: "ClusterServiceAccessPolicy no",
			policies: []accessPolicy{policyOf("pass", policySpec{Priority: 1, Action: pass, Peers: toShop}), policyOf("no", policySpec{Priority: 2, Action: deny})},
		},
		"a grant to a region":         {service: web, grants: grantTo([]apiPeer{inRegion("eu")}), client: anonymous, allowed: true, rule: "ServiceExportGrant shop/some"},
		"a grant to another region":   {service: web, grants: grantTo([]apiPeer{inRegion("us")}), client: frontend, rule: NotGranted},
		"a grant, unknown properties": {service: web, grants: grantTo([]apiPeer{inRegion("eu")}), client: Client{Cluster: "north"}, rule: NotGranted},
		"Deny matches unknown properties, Accept does not": {
			service: web, client: Client{Cluster: "north"}, rule: "ClusterServiceAccessPolicy no",
			policies: []accessPolicy{
				policyOf("yes", policySpec{Priority: 1, Action: accept, Peers: []apiPeer{inRegion("eu")}}), policyOf("no", policySpec{Priority: 2, Action: deny, Peers: []apiPeer{inRegion("us")}}),
			},
		},
		"Deny does not match a cluster without the property": {
			service: web, client: Client{Cluster: "south"}, allowed: true, rule: NoRule,
			policies: []accessPolicy{policyOf("no", policySpec{Action: deny, Peers: []apiPeer{inRegion("us")}})},
		},
		"the namespace's labels": {
			service: web, client: frontend, rule: "ClusterServiceAccessPolicy production",
			policies: []accessPolicy{
				policyOf("test", policySpec{Priority: 1, Action: accept, NamespaceSelector: isTest}), policyOf("production", policySpec{Priority: 2, Action: deny, NamespaceSelector: isProduction}),
			},
		},
		"another service, another direction": {
			service: web, client: frontend, allowed: true, rule: NoRule,
			policies: []accessPolicy{
				policyOf("db", policySpec{Action: deny, Services: []policyv1alpha1.ObjectName{"db"}}), policyOf("import", policySpec{Action: deny, Direction: importing}),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules, err := New(exporting, Objects{Policies: test.policies, Grants: test.grants, Namespaces: namespaces, Properties: regions})
			check.Must(t, err)
			for range 2 { // computed, and known
				if got := rules.Decide(test.service, test.client); got.Allowed != test.allowed || got.Rule != test.rule {
					t.Errorf("%+v, want %t by %s", got, test.allowed, test.rule)
				}
			}
		})
	}
}

// A policy whose selector is not valid cannot say what it is about: it denies everything, or accepts nothing.
//
// spec: A2
func TestInvalidSelector(t *testing.T) {
	t.Parallel()
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "stage", Operator: "Like"}}}
	for action, want := range map[policyv1alpha1.Action]string{
		deny: "ClusterServiceAccessPolicy broken", accept: "ClusterServiceAccessPolicy no", pass: "ClusterServiceAccessPolicy broken",
	} {
		rules, err := New(exporting, Objects{Namespaces: namespaces, Policies: []accessPolicy{
			policyOf("broken", policySpec{Priority: 1, Action: action, NamespaceSelector: selector}), policyOf("no", policySpec{Priority: 2, Action: deny}),
		}})
		if got := rules.Decide(web, frontend); err == nil || got.Allowed || got.Rule != want {
			t.Errorf("%s: %+v, %v, want that %s denies, and an error", action, got, err, want)
		}
	}
}

// A grant says nothing about imports.
func TestImportsHaveNoGrants(t *testing.T) {
	t.Parallel()
	rules, err := New(importing, Objects{Namespaces: namespaces, Grants: []exportGrant{
		grantOf("west", policyv1alpha1.ServiceExportGrantSpec{To: []apiPeer{{Clusters: []policyv1alpha1.ClusterID{"west"}}}}),
	}})
	if got := rules.Decide(web, frontend); err != nil || !got.Allowed {
		t.Errorf("%+v, %v", got, err)
	}
}

// spec: A1, A2, A3
func TestDecideAsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		objects := Objects{Namespaces: namespaces, Properties: regions}
		direction := rapid.SampledFrom([]policyv1alpha1.Direction{exporting, importing}).Draw(t, "direction")
		for i := range rapid.IntRange(0, 6).Draw(t, "policies") {
			objects.Policies = append(objects.Policies, drawPolicy(t, fmt.Sprint(i)))
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "grants") {
			g := grantOf(fmt.Sprint(i), policyv1alpha1.ServiceExportGrantSpec{Exports: drawNames(t, "exports"), To: drawPeers(t, 1)})
			g.Namespace = drawOf(t, "namespace", "shop", "test")
			objects.Grants = append(objects.Grants, g)
		}
		rules, err := New(direction, objects)
		check.Must(t, err)
		for range 10 {
			service := Service{
				clusterset.ServiceKey{Namespace: drawOf(t, "of", "shop", "test", unknownKey), Name: drawOf(t, "service", "web", "db")}, rapid.Bool().Draw(t, "granted only"),
			}
			client := Client{Cluster: clusterset.ClusterID(drawOf(t, "cluster", "east", "west", "north"))}
			if rapid.Bool().Draw(t, "known") {
				client.Namespace, client.ServiceAccount = drawOf(t, "client", "shop", "test"), drawOf(t, "account", "frontend", "default")
			}
			got, want := rules.Decide(service, client), asWritten(direction, objects, service, client)
			if got.Allowed != want.Allowed || got.Rule != want.Rule {
				t.Fatalf("%+v of %+v: %+v, want %+v", client, service, got, want)
			}
			if about, want := nameOf(got.Object), objectOf(want.Rule, service); !stdstrings.HasPrefix(about, want) || want == "" && about != "" {
				t.Fatalf("%s is about %q, want %q", got.Rule, about, want)
			}
		}
	})
}

// nameOf returns the kind and the name of an object.
func nameOf(object *corev1.ObjectReference) string {
	if object == nil {
		return ""
	}
	return object.Kind + " " + stdstrings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
}

// objectOf returns how the description of the object begins that a rule of a service is about.
func objectOf(rule string, service Service) string {
	switch rule {
	case NoRule, NamespaceUnknown:
		return ""
	case NotGranted:
		return "ServiceExportGrant " + service.Key.Namespace + "/"
	case GrantedOnly:
		return "ServiceExport " + service.Key.String()
	}
	return rule
}

func drawOf(t *rapid.T, label string, values ...string) string {
	return rapid.SampledFrom(values).Draw(t, label)
}

func drawNames(t *rapid.T, label string) []policyv1alpha1.ObjectName {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]policyv1alpha1.ObjectName{"web", "db"}), 0, 1, rapid.ID[policyv1alpha1.ObjectName]).Draw(t, label)
}

func drawPeers(t *rapid.T, least int) []apiPeer {
	var result []apiPeer
	for range rapid.IntRange(least, 2).Draw(t, "peers") {
		var p apiPeer
		if rapid.Bool().Draw(t, "by cluster") {
			p.Clusters = []policyv1alpha1.ClusterID{policyv1alpha1.ClusterID(drawOf(t, "peer", "east", "west"))}
		}
		if rapid.Bool().Draw(t, "by property") {
			p.PropertySelector = inRegion(policyv1alpha1.PropertyValue(drawOf(t, "region", "eu", "us"))).PropertySelector
		}
		if len(p.Clusters) == 0 && p.PropertySelector == nil || rapid.Bool().Draw(t, "by namespace") {
			p.Namespaces = []policyv1alpha1.NamespaceName{policyv1alpha1.NamespaceName(drawOf(t, "of peer", "shop", "test"))}
			if rapid.Bool().Draw(t, "by account") {
				p.ServiceAccounts = []policyv1alpha1.ObjectName{"frontend"}
			}
		}
		result = append(result, p)
	}
	return result
}

func drawPolicy(t *rapid.T, name string) accessPolicy {
	spec := policySpec{
		Tier: rapid.SampledFrom([]policyv1alpha1.Tier{admin, baseline}).Draw(t, "tier"), Priority: rapid.Int32Range(0, 2).Draw(t, "priority"),
		Direction: rapid.SampledFrom([]policyv1alpha1.Direction{exporting, importing}).Draw(t, "of"),
		Action:    rapid.SampledFrom([]policyv1alpha1.Action{accept, deny, pass}).Draw(t, "action"), Services: drawNames(t, "services"), Peers: drawPeers(t, 0),
	}
	if rapid.Bool().Draw(t, "selects") {
		spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": drawOf(t, "stage", production, "test")}}
	}
	return accessPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// asWritten decides as docs/access.md says, one rule after the other.
func asWritten(direction policyv1alpha1.Direction, objects Objects, service Service, client Client) Verdict {
	stage, known := namespaces[service.Key.Namespace]["stage"]
	if !known {
		return Verdict{Rule: NamespaceUnknown}
	}
	tier := func(which policyv1alpha1.Tier) (Verdict, bool) {
		for priority := range int32(3) {
			for _, action := range []policyv1alpha1.Action{deny, pass, accept} {
				for _, p := range objects.Policies {
					s := p.Spec
					about := s.Tier == which && s.Priority == priority && s.Action == action && s.Direction == direction &&
						(s.NamespaceSelector == nil || s.NamespaceSelector.MatchLabels["stage"] == stage) &&
						(len(s.Services) == 0 || string(s.Services[0]) == service.Key.Name) && (len(s.Peers) == 0 || matchAny(s.Peers, client, action == deny))
					switch {
					case about && action == pass:
						return Verdict{}, false
					case about:
						return Verdict{Allowed: action == accept, Rule: "ClusterServiceAccessPolicy " + p.Name}, true
					}
				}
			}
		}
		return Verdict{}, false
	}
	if verdict, decided := tier(admin); decided {
		return verdict
	}
	selected := false
	for _, g := range objects.Grants {
		if direction == exporting && g.Namespace == service.Key.Namespace && (len(g.Spec.Exports) == 0 || string(g.Spec.Exports[0]) == service.Key.Name) {
			selected = true
			if matchAny(g.Spec.To, client, false) {
				return Verdict{Allowed: true, Rule: "ServiceExportGrant " + g.Namespace + "/" + g.Name}
			}
		}
	}
	if selected {
		return Verdict{Rule: NotGranted}
	}
	if service.GrantedOnly {
		return Verdict{Rule: GrantedOnly}
	}
	if verdict, decided := tier(baseline); decided {
		return verdict
	}
	return Verdict{Allowed: true, Rule: NoRule}
}

func matchAny(peers []apiPeer, c Client, unknownMatches bool) bool {
	return slices.ContainsFunc(peers, func(p apiPeer) bool {
		if len(p.Clusters) > 0 && string(p.Clusters[0]) != string(c.Cluster) {
			return false
		}
		if p.PropertySelector != nil {
			if properties, known := regions[c.Cluster]; !known && !unknownMatches || known && properties["region"] != string(p.PropertySelector.MatchProperties["region"]) {
				return false
			}
		}
		if len(p.Namespaces) > 0 && c.Namespace == "" {
			return unknownMatches
		}
		return (len(p.Namespaces) == 0 || string(p.Namespaces[0]) == c.Namespace) && (len(p.ServiceAccounts) == 0 || string(p.ServiceAccounts[0]) == c.ServiceAccount)
	})
}

// thousand returns rules with 1,000 policies, of which each service of 100 namespaces has 10, and the others are of 20 clusters each.
func thousand(t testing.TB, direction policyv1alpha1.Direction, all bool) *Rules {
	t.Helper()
	objects := Objects{Namespaces: map[string]labels.Set{}}
	for i := range 100 {
		name := fmt.Sprint("ns-", i)
		objects.Namespaces[name] = labels.Set{"name": name}
	}
	for i := range 1000 {
		spec := policySpec{Direction: direction, Priority: int32(i), Action: accept, Peers: []apiPeer{{
			Namespaces: []policyv1alpha1.NamespaceName{policyv1alpha1.NamespaceName(fmt.Sprint("client-", i))},
		}}}
		if !all {
			spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": fmt.Sprint("ns-", i%100)}}
		}
		objects.Policies = append(objects.Policies, policyOf(fmt.Sprint(i), spec))
	}
	rules, err := New(direction, objects)
	check.Must(t, err)
	return rules
}

// A verdict allocates nothing.
func TestDecideAllocates(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts all goroutines
	rules := thousand(t, exporting, true)
	service := Service{Key: clusterset.ServiceKey{Namespace: "ns-7", Name: "web"}}
	if n := testing.AllocsPerRun(100, func() { rules.Decide(service, frontend) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// selecting returns rules that all select the service, one for each of 1,000 peers. None of the peers is the client.
func selecting(t testing.TB, peer func(i int) apiPeer) *Rules {
	t.Helper()
	objects := Objects{
		Namespaces: map[string]labels.Set{"ns-7": nil},
		Properties: map[clusterset.ClusterID]map[string]string{frontend.Cluster: {"region": "eu"}},
	}
	for i := range 1000 {
		objects.Policies = append(objects.Policies, policyOf(fmt.Sprint(i), policySpec{Action: accept, Peers: []apiPeer{peer(i)}}))
	}
	rules, err := New(exporting, objects)
	check.Must(t, err)
	return rules
}

func account(i int) apiPeer {
	return apiPeer{
		Namespaces:      []policyv1alpha1.NamespaceName{policyv1alpha1.NamespaceName(frontend.Namespace)},
		ServiceAccounts: []policyv1alpha1.ObjectName{policyv1alpha1.ObjectName(fmt.Sprintf("account-%d", i))},
	}
}

// The steps after one that decides about all clients are not kept: other clusters can ask for many chains.
func TestChainsAreShort(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tier   policyv1alpha1.Tier
		action policyv1alpha1.Action
		want   int
	}{
		"after an Admin that decides, nothing": {admin, deny, 1}, "after an Admin that passes, the grants": {admin, pass, 3}, "after a Baseline, nothing": {baseline, deny, 2},
	} {
		objects := Objects{Namespaces: namespaces}
		for i := range 100 {
			objects.Policies = append(objects.Policies, policyOf(fmt.Sprint(i), policySpec{Tier: test.tier, Action: test.action}))
		}
		objects.Grants = []exportGrant{grantOf("east", policyv1alpha1.ServiceExportGrantSpec{To: []apiPeer{{Clusters: []policyv1alpha1.ClusterID{"east"}}}})}
		rules, err := New(exporting, objects)
		check.Must(t, err)
		if got := rules.chain(chainKey{web, frontend.Cluster, frontend.Namespace}); len(got) != test.want {
			t.Errorf("%s: %d steps, want %d: %+v", name, len(got), test.want, got)
		}
	}
}

// Other clusters say of which namespaces their clients are, so they could have any number of chains kept.
func TestChainsAreBounded(t *testing.T) {
	t.Parallel()
	rules, err := New(exporting, Objects{Namespaces: namespaces})
	check.Must(t, err)
	for i := range maxChains + 1 {
		rules.Decide(web, Client{Cluster: frontend.Cluster, Namespace: fmt.Sprint("ns-", i)})
		if want := i%maxChains + 1; len(rules.chains) != want {
			t.Fatalf("%d chains after %d namespaces, want %d", len(rules.chains), i+1, want)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, rules := range map[string]*Rules{
		"10 of 1,000 policies select the service":          thousand(b, exporting, false),
		"1,000 select it, about other namespaces":          thousand(b, exporting, true),
		"1,000 select it, about accounts of one namespace": selecting(b, account),
		"1,000 select it, about other regions":             selecting(b, func(i int) apiPeer { return inRegion(policyv1alpha1.PropertyValue(fmt.Sprint("region-", i))) }),
	} {
		b.Run(name, func(b *testing.B) {
			service := Service{Key: clusterset.ServiceKey{Namespace: "ns-7", Name: "web"}}
			b.ReportAllocs()
			for b.Loop() {
				rules.Decide(service, frontend)
			}
		})
	}
}

// spec: A6
func TestConcerns(t *testing.T) {
	t.Parallel()
	east := apiPeer{Clusters: []policyv1alpha1.ClusterID{"east"}}
	inShop := apiPeer{Namespaces: []policyv1alpha1.NamespaceName{"shop"}}
	for _, test := range []struct {
		peers   []apiPeer
		cluster clusterset.ClusterID
		want    bool
	}{
		{nil, "west", true},
		{[]apiPeer{east}, "east", true},
		{[]apiPeer{east}, "west", false},
		{[]apiPeer{east, inShop}, "west", true},
		{[]apiPeer{inRegion("eu")}, "east", true},
		{[]apiPeer{inRegion("eu")}, "west", false},
		{[]apiPeer{inRegion("eu")}, "north", true},
	} {
		check.Equal(t, fmt.Sprintf("%+v concerns %s", test.peers, test.cluster), test.want, Concerns(test.peers, test.cluster, regions))
	}
}

// The rules that apply are those that decide, in their order: a client is decided about by one of them.
//
// spec: A2, A6
func TestApplying(t *testing.T) {
	t.Parallel()
	peers := []apiPeer{
		{Clusters: []policyv1alpha1.ClusterID{"west", "east"}, Namespaces: []policyv1alpha1.NamespaceName{"shop"}, ServiceAccounts: []policyv1alpha1.ObjectName{"frontend"}},
		{Clusters: []policyv1alpha1.ClusterID{"north"}, PropertySelector: inRegion("eu").PropertySelector},
	}
	rules, err := New(exporting, Objects{
		Namespaces: namespaces,
		Policies: []accessPolicy{
			policyOf("last", policySpec{Action: deny}), policyOf("second", policySpec{Tier: admin, Priority: 2, Action: accept, Peers: peers[1:]}),
			policyOf("first", policySpec{Tier: admin, Priority: 1, Action: pass, Services: []policyv1alpha1.ObjectName{"web"}}),
			policyOf("import", policySpec{Direction: importing, Action: deny}),
		},
		Grants: []exportGrant{grantOf("some", policyv1alpha1.ServiceExportGrantSpec{Exports: []policyv1alpha1.ObjectName{"web"}, To: peers})},
	})
	check.Must(t, err)
	db := Service{Key: clusterset.ServiceKey{Namespace: "shop", Name: "db"}}
	granted, gone := db, Service{Key: clusterset.ServiceKey{Namespace: unknownKey, Name: "db"}}
	granted.GrantedOnly = true
	second := Applied{"ClusterServiceAccessPolicy second", "Accept", "clusters north and property region=eu"}
	for _, test := range []struct {
		service Service
		want    []Applied
	}{
		{web, []Applied{
			{"ClusterServiceAccessPolicy first", "Pass", "all"},
			second,
			{"ServiceExportGrant shop/some", "Accept", "clusters east, west and namespaces shop and accounts frontend; or clusters north and property region=eu"},
			{NotGranted, "Deny", "all"},
		}},
		{db, []Applied{second, {"ClusterServiceAccessPolicy last", "Deny", "all"}, {NoRule, "Accept", "all"}}},
		{granted, []Applied{second, {GrantedOnly, "Deny", "all"}}},
		{gone, []Applied{{NamespaceUnknown, "Deny", "all"}}},
	} {
		if got := rules.Applying(test.service); !slices.Equal(got, test.want) {
			t.Errorf("%+v:\n%q, want\n%q", test.service, got, test.want)
		}
		for _, client := range []Client{{"west", "shop", "frontend"}, {"west", "shop", "backend"}, {Cluster: "west"}, {"north", "other", "any"}} {
			verdict := rules.Decide(test.service, client)
			decides := slices.ContainsFunc(test.want, func(a Applied) bool {
				return a.Rule == verdict.Rule && a.Action == map[bool]string{true: "Accept", false: "Deny"}[verdict.Allowed]
			})
			if !decides {
				t.Errorf("%+v: %+v decides about %+v, and is none of the rules that apply", test.service, verdict, client)
			}
		}
	}
}
