// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// A client that one exporter denies is not denied the service if another one serves it.
//
// spec: A6
func TestAccessSteps(t *testing.T) {
	t.Parallel()
	client := access.Client{Cluster: "east", Namespace: "shop", ServiceAccount: "frontend"}
	byExporter := Access{Exporter: "west", Verdict: AccessDenied, ImportRule: access.NoRule, ExportRule: access.NotGranted}
	byOwn := Access{Exporter: "west", Verdict: AccessDenied, ImportRule: "ClusterServiceAccessPolicy no"}
	suspended := Access{Exporter: "west", Verdict: AccessDenied, Reason: "cluster west is suspended"}
	allowed := Access{Exporter: "north", Verdict: AccessAllowed, ImportRule: access.NoRule, ExportRule: "ServiceExportGrant shop/cart"}
	for name, test := range map[string]struct {
		verdicts []Access
		isLocal  bool
		want     []string
	}{
		"denied by the exporter":    {[]Access{byExporter}, false, []string{"broken shop/frontend is denied the endpoints of west by west: " + access.NotGranted}},
		"denied by its own cluster": {[]Access{byOwn}, false, []string{"broken shop/frontend is denied the endpoints of west by east: ClusterServiceAccessPolicy no"}},
		"a suspended exporter":      {[]Access{suspended}, false, []string{"broken shop/frontend is denied the endpoints of west: cluster west is suspended"}},
		"its own cluster serves":    {[]Access{byOwn}, true, []string{"note shop/frontend is denied the endpoints of west by east: ClusterServiceAccessPolicy no"}},
		"another exporter allows it": {[]Access{allowed, byExporter}, false, []string{
			"ok shop/frontend may use it from north; by its own cluster: no rule; by the exporter: ServiceExportGrant shop/cart",
			"note shop/frontend is denied the endpoints of west by west: " + access.NotGranted,
		}},
		"the same network": {
			[]Access{{Exporter: "west", Verdict: AccessNotEnforced, Reason: "the pods reach each other"}},
			false,
			[]string{"ok shop/frontend may use it from west: the pods reach each other"},
		},
		"not known": {[]Access{{Exporter: "west", Verdict: AccessUnknown, Reason: "not read"}}, false, []string{"note it is not known whether shop/frontend may use it from west: not read"}},
	} {
		var got []string
		for _, step := range accessSteps(client, test.verdicts, test.isLocal) {
			got = append(got, fmt.Sprintf("%s %s", step.State, step.Found))
			if step.Hop != HopAccess || step.Cluster != "east" || step.State == Broken && step.Fix == "" {
				t.Errorf("%s: %+v", name, step)
			}
		}
		check.Equal(t, name, test.want, got)
	}
}

// Rules with one problem have one together.
//
// spec: A6
func TestProblemsOfRules(t *testing.T) {
	t.Parallel()
	noGateway, fine := conditions.Enforced(conditions.Enforcement{}), conditions.Enforced(conditions.Enforcement{HasGateways: true})
	grant := func(name string, all ...metav1.Condition) policyv1alpha1.ServiceExportGrant {
		return policyv1alpha1.ServiceExportGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: policyv1alpha1.AccessStatus{Conditions: all}}
	}
	invalid := conditions.PolicyAccepted(policyv1alpha1.ActionDeny, fmt.Errorf("no selector"), conditions.Missing{})
	typo := conditions.GrantAccepted(conditions.Missing{Clusters: []string{"zz"}})
	a := &assessment{}
	a.problemsOfRules(MemberObjects{
		ID: "east", Context: "admin@east",
		Policies: []policyv1alpha1.ClusterServiceAccessPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: policyv1alpha1.AccessStatus{Conditions: []metav1.Condition{invalid, fine}}}},
		Grants:   []policyv1alpha1.ServiceExportGrant{grant("d", noGateway), grant("a", noGateway), grant("b", noGateway), grant("c", noGateway), grant("e", fine), grant("f", typo, fine), grant("new")},
	})
	next := "See all rules: kubectl --context admin@east get serviceexportgrants,clusterserviceaccesspolicies --all-namespaces"
	want := []Problem{
		{Severity: SeverityError, Reason: ReasonRuleNotAccepted, Member: "east", Message: "not accepted: ClusterServiceAccessPolicy p. " + invalid.Message, Next: next},
		{Severity: SeverityWarning, Reason: ReasonRuleNamesNotFound, Member: "east", Message: "names what does not exist: ServiceExportGrant shop/f. " + typo.Message, Next: next},
		{
			Severity: SeverityWarning, Reason: ReasonRuleNotEnforced, Member: "east", Next: next,
			Message: "not enforced everywhere: ServiceExportGrant shop/a, ServiceExportGrant shop/b, ServiceExportGrant shop/c and 1 more. " + noGateway.Message,
		},
	}
	check.Equal(t, "problems", want, a.problems)
}
