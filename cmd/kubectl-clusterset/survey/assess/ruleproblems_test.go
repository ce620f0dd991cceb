// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

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
	a.problemsOfRules(survey.MemberObjects{
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
