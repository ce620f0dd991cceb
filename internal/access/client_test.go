// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// If it does not matter who a client is, all clients of a cluster get the same verdict.
//
// spec: A3
func TestNeedsClientIsSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		objects := Objects{Namespaces: namespaces, Properties: regions}
		direction := rapid.SampledFrom([]policyv1alpha1.Direction{exporting, importing}).Draw(t, "direction")
		for i := range rapid.IntRange(0, 4).Draw(t, "policies") {
			objects.Policies = append(objects.Policies, drawPolicy(t, fmt.Sprint(i)))
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "grants") {
			objects.Grants = append(objects.Grants, grantOf(fmt.Sprint(i), policyv1alpha1.ServiceExportGrantSpec{Exports: drawNames(t, "exports"), To: drawPeers(t, 1)}))
		}
		rules, err := New(direction, objects)
		check.Must(t, err)
		for _, id := range []clusterset.ClusterID{"east", "west", "north"} {
			service := web
			service.GrantedOnly = rapid.Bool().Draw(t, "granted only")
			if rules.NeedsClient(service, id) {
				continue
			}
			want := rules.Decide(service, Client{Cluster: id})
			for _, client := range []Client{{id, "shop", "frontend"}, {id, "shop", "default"}, {id, "test", "frontend"}, {id, "other", "other"}} {
				if got := rules.Decide(service, client); got.Allowed != want.Allowed {
					t.Fatalf("%+v gets %+v, an unknown client %+v", client, got, want)
				}
			}
		}
	})
}

// A rule that cannot decide, or that names only clusters and properties, does not depend on who a client is.
//
// spec: A3
func TestNeedsClient(t *testing.T) {
	t.Parallel()
	toShop := []apiPeer{{Namespaces: []policyv1alpha1.NamespaceName{"shop"}}}
	toAccount := []apiPeer{{Namespaces: toShop[0].Namespaces, ServiceAccounts: []policyv1alpha1.ObjectName{"frontend"}}}
	toShopOfWest := []apiPeer{{Clusters: []policyv1alpha1.ClusterID{"west"}, Namespaces: toShop[0].Namespaces}}
	inEU, inUS := inRegion("eu"), inRegion("us")
	shopInEU, shopInUS := inEU, inUS
	shopInEU.Namespaces, shopInUS.Namespaces = toShop[0].Namespaces, toShop[0].Namespaces
	policy := func(name string, spec policySpec) Objects {
		return Objects{Policies: []accessPolicy{policyOf(name, spec)}}
	}
	granted := func(to ...[]apiPeer) Objects {
		var o Objects
		for i, peers := range to {
			o.Grants = append(o.Grants, grantOf(fmt.Sprint(i), policyv1alpha1.ServiceExportGrantSpec{To: peers}))
		}
		return o
	}
	with := func(a, b Objects) Objects {
		return Objects{Policies: append(a.Policies, b.Policies...), Grants: append(a.Grants, b.Grants...)}
	}
	for name, test := range map[string]struct {
		objects Objects
		want    bool
	}{
		"no rule":                               {Objects{}, false},
		"a policy about all":                    {policy("a", policySpec{Action: deny}), false},
		"a policy about clusters":               {policy("a", policySpec{Action: deny, Peers: []apiPeer{{Clusters: []policyv1alpha1.ClusterID{"east"}}}}), false},
		"a policy about properties":             {policy("a", policySpec{Action: deny, Peers: []apiPeer{inEU}}), false},
		"that denies a namespace":               {policy("a", policySpec{Action: deny, Peers: toShop}), true},
		"that accepts a namespace":              {policy("a", policySpec{Action: accept, Peers: toShop}), true},
		"that passes a namespace":               {policy("a", policySpec{Tier: admin, Action: pass, Peers: toShop}), true},
		"that accepts an account":               {policy("a", policySpec{Action: accept, Peers: toAccount}), true},
		"of another direction":                  {policy("a", policySpec{Direction: importing, Action: deny, Peers: toShop}), false},
		"of another service":                    {policy("a", policySpec{Action: deny, Services: []policyv1alpha1.ObjectName{"db"}, Peers: toShop}), false},
		"of another namespace":                  {policy("a", policySpec{Action: deny, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "test"}}, Peers: toShop}), false},
		"of a namespace of another cluster":     {policy("a", policySpec{Action: deny, Peers: toShopOfWest}), false},
		"of a namespace by a property":          {policy("a", policySpec{Action: deny, Peers: []apiPeer{shopInEU}}), true},
		"of a namespace by another property":    {policy("a", policySpec{Action: deny, Peers: []apiPeer{shopInUS}}), false},
		"after one about all":                   {with(policy("a", policySpec{Priority: 1, Action: accept}), policy("b", policySpec{Priority: 2, Action: deny, Peers: toShop})), false},
		"after one of another tier that denies": {with(policy("a", policySpec{Tier: admin, Action: deny}), granted(toShop)), false},
		"after one that passes all":             {with(policy("a", policySpec{Tier: admin, Action: pass}), granted(toShop)), true},
		"a grant to a namespace":                {granted(toShop), true},
		"a grant to a namespace of another":     {granted(toShopOfWest), false},
		"a grant to a namespace, and to all":    {granted(toShop, []apiPeer{{}}), false},
		"below a grant":                         {with(granted([]apiPeer{{}}), policy("a", policySpec{Action: deny, Peers: toShop})), false},
	} {
		test.objects.Namespaces, test.objects.Properties = namespaces, regions
		rules, err := New(exporting, test.objects)
		check.Must(t, err)
		check.Equal(t, name, test.want, rules.NeedsClient(web, "east"))
	}
	only := web
	only.GrantedOnly = true
	rules, err := New(exporting, Objects{
		Namespaces: namespaces, Policies: policy("a", policySpec{Action: deny, Peers: toShop}).Policies,
	})
	check.Must(t, err)
	check.Equal(t, "without a grant, and exported only by grants", false, rules.NeedsClient(only, "east"))
	for action, want := range map[policyv1alpha1.Action]bool{deny: true, accept: false} { // what is not known matches a peer only if the step denies
		objects := policy("a", policySpec{Action: action, Peers: []apiPeer{shopInEU}})
		objects.Namespaces, objects.Properties = namespaces, regions
		rules, err := New(exporting, objects)
		check.Must(t, err)
		check.Equal(t, fmt.Sprintf("%s, of a cluster whose properties are not known", action), want, rules.NeedsClient(web, "north"))
	}
}
