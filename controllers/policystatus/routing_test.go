// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tombolo-mcs/tombolo/internal/check"
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
	const notKnown = "it is not known yet whether its sources match members, because the hub has not been read"
	type policies = []*policyv1alpha1.ServiceImportRoutingPolicy
	for name, test := range map[string]struct {
		policies policies // the first one is decided
		imports  []imported
		unsynced bool
		want     string
	}{
		"in effect":                              {policies{policy("shop", "p", 1, anyone)}, []imported{web}, false, "True/Accepted: the policy is in effect"},
		"no import":                              {policies{policy("shop", "p", 1, anyone)}, nil, false, "False/NoImport: it selects no ServiceImport of this namespace"},
		"none of that name":                      {policies{policy("shop", "p", 1, anyone, "other")}, []imported{web}, false, "False/NoImport: it selects no ServiceImport of this namespace"},
		"none in the namespace":                  {policies{policy("bank", "p", 1, anyone)}, []imported{web}, false, "False/NoImport: it selects no ServiceImport of this namespace"},
		"headless":                               {policies{policy("shop", "p", 1, anyone)}, []imported{db}, false, "False/NotSupported: headless imports have no policy: db"},
		"a selector":                             {policies{policy("shop", "p", 1, anyone)}, []imported{old}, false, "False/NotSupported: imports whose derived Service has a selector have no policy: old"},
		"some are headless":                      {policies{policy("shop", "p", 1, anyone)}, []imported{db, web}, false, "True/Accepted: headless imports have no policy: db"},
		"many are headless":                      {policies{policy("shop", "p", 1, anyone)}, others, false, "False/NotSupported: headless imports have no policy: db-00, db-01, db-02, db-03, db-04, db-05, db-06, db-07, db-08, db-09 and 2 more"},
		"an older one":                           {policies{policy("shop", "p", 1, anyone), policy("shop", "q", 2, anyone)}, []imported{web}, false, "False/Superseded: the older policy q decides for web"},
		"a younger one":                          {policies{policy("shop", "p", 2, anyone), policy("shop", "q", 1, anyone)}, []imported{web}, false, "True/Accepted: the policy is in effect"},
		"an older one for some":                  {policies{policy("shop", "p", 1, anyone), policy("shop", "q", 2, anyone, "web")}, []imported{web, {key: clusterset.ServiceKey{Namespace: "shop", Name: "api"}}}, false, "True/Accepted: the older policy q decides for web"},
		"an older one elsewhere":                 {policies{policy("shop", "p", 1, anyone), policy("bank", "q", 2, anyone)}, []imported{web}, false, "True/Accepted: the policy is in effect"},
		"an unknown cluster":                     {policies{policy("shop", "p", 1, []policyv1alpha1.Source{{SameCluster: true}, {Clusters: []policyv1alpha1.ClusterID{"b", "x", "w"}}})}, []imported{web}, false, "True/Accepted: source 2 names clusters that are no members: w, x"},
		"one of two imports is missing":          {policies{policy("shop", "p", 1, anyone, "web", "wbe")}, []imported{web}, false, "True/Accepted: this namespace has no ServiceImport with the name wbe"},
		"a property that this one has":           {policies{policy("shop", "p", 1, []policyv1alpha1.Source{{SameProperty: "region"}})}, []imported{web}, false, "True/Accepted: the policy is in effect"},
		"a property that this one has not":       {policies{policy("shop", "p", 1, []policyv1alpha1.Source{{SameProperty: "zone"}})}, []imported{web}, false, "True/Accepted: source 1 matches no cluster: this cluster has no property zone in its Member on the hub"},
		"a selector that matches a member":       {policies{policy("shop", "p", 1, []policyv1alpha1.Source{selector("us")})}, []imported{web}, false, "True/Accepted: the policy is in effect"},
		"a selector that matches no member":      {policies{policy("shop", "p", 1, []policyv1alpha1.Source{selector("mars")})}, []imported{web}, false, "True/Accepted: source 1 matches no cluster: no member has these properties in its Member on the hub"},
		"before the hub is read, any cluster":    {policies{policy("shop", "p", 1, []policyv1alpha1.Source{{SameCluster: true}, {Any: true}})}, []imported{web}, true, "True/Accepted: the policy is in effect"},
		"before the hub is read, named clusters": {policies{policy("shop", "p", 1, []policyv1alpha1.Source{{Clusters: []policyv1alpha1.ClusterID{"x"}}})}, []imported{web}, true, "True/Accepted: " + notKnown},
		"before the hub is read, own properties": {policies{policy("shop", "p", 1, []policyv1alpha1.Source{{SameProperty: "zone"}})}, []imported{web}, true, "True/Accepted: " + notKnown},
		"before the hub is read, properties":     {policies{policy("shop", "p", 1, []policyv1alpha1.Source{selector("mars")})}, []imported{db, web}, true, "True/Accepted: headless imports have no policy: db; " + notKnown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := routingView{
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
// TestBeforeTheHubIsRead: a restart of the agent while the hub is down changes no condition that depends on the members, unless it depends
// on more than them.
func TestBeforeTheHubIsRead(t *testing.T) {
	t.Parallel()
	v := routingView{own: "a", imports: []imported{{key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}}}}
	for name, test := range map[string]struct {
		source   policyv1alpha1.Source
		existing metav1.Condition
		want     string
	}{
		"it is about this generation":   {policyv1alpha1.Source{SameProperty: "zone"}, metav1.Condition{Status: "True", Reason: reasonAccepted, ObservedGeneration: 2}, "kept"},
		"it is about an earlier one":    {policyv1alpha1.Source{SameProperty: "zone"}, metav1.Condition{Status: "True", Reason: reasonAccepted, ObservedGeneration: 1}, "written"},
		"it has an import now":          {policyv1alpha1.Source{SameProperty: "zone"}, metav1.Condition{Status: "False", Reason: reasonNoImport, ObservedGeneration: 2}, "written"},
		"it has another reason":         {policyv1alpha1.Source{SameProperty: "zone"}, metav1.Condition{Status: "True", Reason: reasonSuperseded, ObservedGeneration: 2}, "written"},
		"it does not depend on members": {policyv1alpha1.Source{Any: true}, metav1.Condition{Status: "True", Reason: reasonAccepted, ObservedGeneration: 2}, "written"},
		"the policy has no condition":   {policyv1alpha1.Source{SameProperty: "zone"}, metav1.Condition{}, "written"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := &policyv1alpha1.ServiceImportRoutingPolicy{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Generation: 2}, Spec: policyv1alpha1.ServiceImportRoutingPolicySpec{Sources: []policyv1alpha1.Source{test.source}},
			}
			if test.existing.Reason != "" {
				test.existing.Type = typeAccepted
				policy.Status.Conditions = []metav1.Condition{test.existing}
			}
			got := "kept"
			if len(v.decide(policy, []*policyv1alpha1.ServiceImportRoutingPolicy{policy})) > 0 {
				got = "written"
			}
			check.Equal(t, "the condition is", test.want, got)
		})
	}
}

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
