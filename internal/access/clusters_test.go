// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: A1
func TestGrantedTo(t *testing.T) {
	t.Parallel()
	to := func(name string, export policyv1alpha1.ObjectName, peers ...apiPeer) exportGrant {
		spec := policyv1alpha1.ServiceExportGrantSpec{To: peers}
		if export != "" {
			spec.Exports = []policyv1alpha1.ObjectName{export}
		}
		return grantOf(name, spec)
	}
	clusters := func(ids ...policyv1alpha1.ClusterID) apiPeer { return apiPeer{Clusters: ids} }
	granted := web
	granted.GrantedOnly = true
	var many []policyv1alpha1.ClusterID
	var first []clusterset.ClusterID
	for i := range 300 {
		many = append(many, policyv1alpha1.ClusterID(fmt.Sprintf("c%03d", i)))
		if i < 256 {
			first = append(first, clusterset.ClusterID(many[i]))
		}
	}
	none := []clusterset.ClusterID{}
	for name, test := range map[string]struct {
		service Service
		grants  []exportGrant
		want    []clusterset.ClusterID
		surplus int
	}{
		"no grant":                      {service: web},
		"granted only, no grant":        {service: granted, want: none},
		"a grant of another export":     {service: web, grants: []exportGrant{to("db", "db", clusters("east"))}},
		"granted only, another's grant": {service: granted, grants: []exportGrant{to("db", "db", clusters("east"))}, want: none},
		"a grant of this export":        {service: web, grants: []exportGrant{to("web", "web", clusters("north", "east"))}, want: []clusterset.ClusterID{"east", "north"}},
		"a grant of the namespace":      {service: granted, grants: []exportGrant{to("all", "", clusters("east"))}, want: []clusterset.ClusterID{"east"}},
		"entries and grants": {
			service: web, want: []clusterset.ClusterID{"east", "north", "south"},
			grants: []exportGrant{to("a", "", clusters("south"), clusters("east")), to("b", "web", clusters("north", "east"))},
		},
		"an entry without clusters": {
			service: granted, grants: []exportGrant{to("a", "", clusters("south"), apiPeer{Namespaces: []policyv1alpha1.NamespaceName{"shop"}})},
		},
		"a region":                   {service: web, grants: []exportGrant{to("a", "", inRegion("eu"))}, want: []clusterset.ClusterID{"east"}},
		"clusters of a region":       {service: web, grants: []exportGrant{to("a", "", apiPeer{Clusters: clusters("east", "west").Clusters, PropertySelector: inRegion("us").PropertySelector})}, want: []clusterset.ClusterID{"west"}},
		"a region without a cluster": {service: web, grants: []exportGrant{to("a", "", inRegion("asia"))}, want: none},
		"its own cluster":            {service: web, grants: []exportGrant{to("a", "", clusters("own"))}, want: none},
		"too many":                   {service: web, grants: []exportGrant{to("a", "", clusters(many...))}, want: first, surplus: 44},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, surplus := GrantedTo("own", test.service, test.grants, regions)
			if diff := cmp.Diff(test.want, got); diff != "" || surplus != test.surplus {
				t.Errorf("surplus %d, want %d; clusters (-want +got):\n%s", surplus, test.surplus, diff)
			}
		})
	}
}

// TestGrantedToAgreesWithDecide: a cluster is granted an export if and only if the grants, without policies, accept a client of it.
//
// spec: A1
func TestGrantedToAgreesWithDecide(t *testing.T) {
	t.Parallel()
	ids := []policyv1alpha1.ClusterID{"own", "east", "west", "north"}
	drawn := rapid.Custom(func(t *rapid.T) exportGrant {
		spec := policyv1alpha1.ServiceExportGrantSpec{
			Exports: rapid.SliceOfNDistinct(rapid.SampledFrom([]policyv1alpha1.ObjectName{"web", "db"}), 0, 2, rapid.ID).Draw(t, "exports"),
		}
		for range rapid.IntRange(1, 3).Draw(t, "entries") {
			entry := apiPeer{Clusters: rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, 3, rapid.ID).Draw(t, "clusters")}
			if rapid.Bool().Draw(t, "properties") {
				entry.PropertySelector = inRegion(rapid.SampledFrom([]policyv1alpha1.PropertyValue{"eu", "us"}).Draw(t, "region")).PropertySelector
			}
			if rapid.Bool().Draw(t, "namespaces") {
				entry.Namespaces = []policyv1alpha1.NamespaceName{"shop"}
			}
			if entry.Namespaces != nil && rapid.Bool().Draw(t, "accounts") {
				entry.ServiceAccounts = []policyv1alpha1.ObjectName{"frontend"}
			}
			spec.To = append(spec.To, entry)
		}
		return grantOf(rapid.StringMatching(`[a-z]{8}`).Draw(t, "name"), spec)
	})
	rapid.Check(t, func(t *rapid.T) {
		service := web
		service.GrantedOnly = rapid.Bool().Draw(t, "granted only")
		grants := rapid.SliceOfN(drawn, 0, 3).Draw(t, "grants")
		clusters, _ := GrantedTo("own", service, grants, regions)
		rules, err := New(exporting, Objects{Grants: grants, Namespaces: namespaces, Properties: regions})
		check.Must(t, err)
		for _, id := range []clusterset.ClusterID{"east", "west", "north", "south"} {
			accepts := false
			for _, client := range []Client{{Cluster: id}, {Cluster: id, Namespace: "shop", ServiceAccount: "frontend"}, {Cluster: id, Namespace: "test"}} {
				accepts = accepts || rules.Decide(service, client).Allowed
			}
			if granted := clusters == nil || slices.Contains(clusters, id); granted != accepts {
				t.Errorf("%s is granted: %t; a client of it is accepted: %t; clusters %v", id, granted, accepts, clusters)
			}
		}
		if again, _ := GrantedTo("own", service, rapid.Permutation(grants).Draw(t, "permutation"), regions); !cmp.Equal(clusters, again) {
			t.Errorf("clusters %v, in another order of the grants %v", clusters, again)
		}
		if !slices.IsSorted(clusters) || slices.Contains(clusters, "own") {
			t.Errorf("clusters %v", clusters)
		}
	})
}

func TestSelecting(t *testing.T) {
	t.Parallel()
	of := func(name string, exports ...policyv1alpha1.ObjectName) exportGrant {
		return grantOf(name, policyv1alpha1.ServiceExportGrantSpec{Exports: exports})
	}
	got := Selecting("web", []exportGrant{of("z"), of("web", "db", "web"), of("db", "db")})
	check.Equal(t, "grants", []string{"ServiceExportGrant shop/web", "ServiceExportGrant shop/z"}, got)
}

// spec: A1
func TestNamespacesByCluster(t *testing.T) {
	t.Parallel()
	in := func(namespace string, peers ...apiPeer) exportGrant {
		grant := grantOf("web", policyv1alpha1.ServiceExportGrantSpec{To: peers})
		grant.Namespace = namespace
		return grant
	}
	east := apiPeer{Clusters: []policyv1alpha1.ClusterID{"east"}}
	got := NamespacesByCluster([]exportGrant{in("shop", east, inRegion("eu")), in("test", east), in("blog", inRegion("us")), in("all", apiPeer{}), in("shop", east)})
	check.Equal(t, "namespaces", []string{"blog", "shop", "test"}, sets.List(got))
	members := NoMembers([]clusterset.ClusterID{"a", "yy", "zz"}, Properties{"a": {}, "b": {}})
	check.Equal(t, "clusters that are no members", []clusterset.ClusterID{"yy", "zz"}, members)
}
