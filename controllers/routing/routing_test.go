// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: P1
func TestDecide(t *testing.T) {
	t.Parallel()
	policy := func(namespace, name string, age int64, sources []policyv1alpha1.Source, imports ...policyv1alpha1.ObjectName) *policyv1alpha1.ServiceImportRoutingPolicy {
		return &policyv1alpha1.ServiceImportRoutingPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(1000-age, 0)},
			Spec:       policyv1alpha1.ServiceImportRoutingPolicySpec{Imports: imports, Sources: sources},
		}
	}
	web := imported{key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}}
	db := imported{key: clusterset.ServiceKey{Namespace: "shop", Name: "db"}, headless: true}
	old := imported{key: clusterset.ServiceKey{Namespace: "shop", Name: "old"}, selector: true}
	others := []imported{}
	for i := range 12 {
		others = append(others, imported{key: clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprintf("db-%02d", i)}, headless: true})
	}
	anyone := []policyv1alpha1.Source{{Any: true}}
	selector := func(value policyv1alpha1.PropertyValue) policyv1alpha1.Source {
		return policyv1alpha1.Source{PropertySelector: &policyv1alpha1.PropertySelector{MatchProperties: map[string]policyv1alpha1.PropertyValue{"region": value}}}
	}
	type policies = []*policyv1alpha1.ServiceImportRoutingPolicy
	for name, test := range map[string]struct {
		policies policies // the first one is decided
		imports  []imported
		unsynced bool
		want     string
	}{
		"in effect":                                  {policies{policy("shop", "p", 1, anyone)}, []imported{web}, false, "True/Accepted: the policy is in effect"},
		"no import":                                  {policies{policy("shop", "p", 1, anyone)}, nil, false, "False/NoImport: it selects no ServiceImport of this namespace"},
		"none of that name":                          {policies{policy("shop", "p", 1, anyone, "other")}, []imported{web}, false, "False/NoImport: it selects no ServiceImport of this namespace"},
		"none in the namespace":                      {policies{policy("bank", "p", 1, anyone)}, []imported{web}, false, "False/NoImport: it selects no ServiceImport of this namespace"},
		"headless":                                   {policies{policy("shop", "p", 1, anyone)}, []imported{db}, false, "False/NotSupported: headless imports have no policy: db"},
		"a selector":                                 {policies{policy("shop", "p", 1, anyone)}, []imported{old}, false, "False/NotSupported: imports whose derived Service has a selector have no policy: old"},
		"some are headless":                          {policies{policy("shop", "p", 1, anyone)}, []imported{db, web}, false, "True/Accepted: headless imports have no policy: db"},
		"many are headless":                          {policies{policy("shop", "p", 1, anyone)}, others, false, "False/NotSupported: headless imports have no policy: db-00, db-01, db-02, db-03, db-04, db-05, db-06, db-07, db-08, db-09 and 2 more"},
		"an older one":                               {policies{policy("shop", "p", 1, anyone), policy("shop", "q", 2, anyone)}, []imported{web}, false, "False/Superseded: the older policy q decides for web"},
		"a younger one":                              {policies{policy("shop", "p", 2, anyone), policy("shop", "q", 1, anyone)}, []imported{web}, false, "True/Accepted: the policy is in effect"},
		"an older one for some":                      {policies{policy("shop", "p", 1, anyone), policy("shop", "q", 2, anyone, "web")}, []imported{web, {key: clusterset.ServiceKey{Namespace: "shop", Name: "api"}}}, false, "True/Accepted: the older policy q decides for web"},
		"an older one elsewhere":                     {policies{policy("shop", "p", 1, anyone), policy("bank", "q", 2, anyone)}, []imported{web}, false, "True/Accepted: the policy is in effect"},
		"an unknown cluster":                         {policies{policy("shop", "p", 1, []policyv1alpha1.Source{{SameCluster: true}, {Clusters: []policyv1alpha1.ClusterID{"b", "x", "w"}}})}, []imported{web}, false, "True/Accepted: source 2 names clusters that are no members: w, x"},
		"a property that this one has":               {policies{policy("shop", "p", 1, []policyv1alpha1.Source{{SameProperty: "region"}})}, []imported{web}, false, "True/Accepted: the policy is in effect"},
		"a property that this one has not":           {policies{policy("shop", "p", 1, []policyv1alpha1.Source{{SameProperty: "zone"}})}, []imported{web}, false, "True/Accepted: source 1 matches no cluster: this cluster has no property zone in its Member on the hub"},
		"a selector that matches a member":           {policies{policy("shop", "p", 1, []policyv1alpha1.Source{selector("us")})}, []imported{web}, false, "True/Accepted: the policy is in effect"},
		"a selector that matches no member":          {policies{policy("shop", "p", 1, []policyv1alpha1.Source{selector("mars")})}, []imported{web}, false, "True/Accepted: source 1 matches no cluster: no member has these properties in its Member on the hub"},
		"members are unknown before the hub is read": {policies{policy("shop", "p", 1, []policyv1alpha1.Source{selector("mars"), {SameProperty: "zone"}, {Clusters: []policyv1alpha1.ClusterID{"x"}}})}, []imported{web}, true, "True/Accepted: the policy is in effect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view{
				own: "a", synced: !test.unsynced, imports: test.imports,
				properties: map[clusterset.ClusterID]map[string]string{"a": {"region": "eu"}, "b": {"region": "us"}},
			}
			conditions := v.decide(test.policies[0], test.policies)
			got := fmt.Sprintf("%s/%s: %s", conditions[0].Status, conditions[0].Reason, conditions[0].Message)
			if diff := cmp.Diff(test.want, got); diff != "" || len(conditions) != 1 || conditions[0].Type != "Accepted" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSelectorChanges: a policy is checked again if the derived Service of an import gets a selector or loses it, and not for the Services
// of users.
//
// spec: P1
func TestSelectorChanges(t *testing.T) {
	t.Parallel()
	service := func(manager string, selector map[string]string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterset.LabelManagedBy: manager}}, Spec: corev1.ServiceSpec{Selector: selector},
		}
	}
	selector := map[string]string{"app": "web"}
	for name, test := range map[string]struct {
		before, after *corev1.Service
		want          bool
	}{
		"a selector is added":   {service(clusterset.ManagedBy, nil), service(clusterset.ManagedBy, selector), true},
		"a selector is removed": {service(clusterset.ManagedBy, selector), service(clusterset.ManagedBy, nil), true},
		"it changes otherwise":  {service(clusterset.ManagedBy, selector), service(clusterset.ManagedBy, selector), false},
		"the Service of a user": {service("", nil), service("", selector), false},
		"created with selector": {nil, service(clusterset.ManagedBy, selector), true},
		"created without":       {nil, service(clusterset.ManagedBy, nil), false},
		"the user's is created": {nil, service("", selector), false},
	} {
		changes := selectorChanges()
		var got bool
		if test.before == nil {
			got = changes.Create(event.TypedCreateEvent[*corev1.Service]{Object: test.after})
		} else {
			got = changes.Update(event.TypedUpdateEvent[*corev1.Service]{ObjectOld: test.before, ObjectNew: test.after})
		}
		if got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
