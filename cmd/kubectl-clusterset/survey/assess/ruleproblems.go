// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// problemsOfRules adds the problems in the conditions of a member's rules about access. Rules with the same problem have one together.
func (a *assessment) problemsOfRules(s survey.MemberObjects) {
	if len(s.MissingRules) > 0 {
		a.add(Problem{
			Severity: SeverityError, Reason: ReasonRulesMissing, Member: s.ID,
			Message: fmt.Sprintf("Its API server does not serve %s: all rules of these kinds were deleted with their CustomResourceDefinition. "+
				"The agent and gateways that run keep the last rules that they have read; an agent that starts waits for the kinds.", strings.Join(s.MissingRules, ", ")),
			Next: fmt.Sprintf("Install the kinds again, without a restart of the agent, and create the rules again from your files or from a bundle: "+
				"kubectl clusterset upgrade --context %s, with the command of the agent's version", s.Context),
		})
	}
	rules := map[ruleProblem][]string{}
	collect := func(rule string, all []metav1.Condition) {
		for _, c := range all {
			if p, isProblem := problemOfRule(c); isProblem {
				rules[p] = append(rules[p], rule)
			}
		}
	}
	for i := range s.Policies {
		collect("ClusterServiceAccessPolicy "+s.Policies[i].Name, s.Policies[i].Status.Conditions)
	}
	for i := range s.Grants {
		collect(fmt.Sprintf("ServiceExportGrant %s/%s", s.Grants[i].Namespace, s.Grants[i].Name), s.Grants[i].Status.Conditions)
	}
	for _, p := range slices.SortedFunc(maps.Keys(rules), func(a, b ruleProblem) int {
		return cmp.Or(cmp.Compare(slices.Index(reasons, a.reason), slices.Index(reasons, b.reason)), strings.Compare(a.message, b.message))
	}) {
		a.add(Problem{
			Severity: p.severity, Reason: p.reason, Member: s.ID, Message: fmt.Sprintf("%s: %s. %s", p.text, phrase.FirstThree(rules[p]), p.message),
			Next: fmt.Sprintf("See all rules: kubectl --context %s get serviceexportgrants,clusterserviceaccesspolicies --all-namespaces", s.Context),
		})
	}
}

// ruleProblem is a problem that several rules can have.
type ruleProblem struct {
	severity Severity
	reason   Reason
	// text is a short description, and message the message of the condition.
	text, message string
}

// problemOfRule returns the problem that a condition of a rule about access reports, and false if it reports none.
func problemOfRule(c metav1.Condition) (ruleProblem, bool) {
	switch {
	case c.Type == policyv1alpha1.ConditionEnforced && c.Status == metav1.ConditionFalse:
		return ruleProblem{SeverityWarning, ReasonRuleNotEnforced, "not enforced everywhere", c.Message}, true
	case c.Type == policyv1alpha1.ConditionAccepted && c.Status == metav1.ConditionFalse:
		return ruleProblem{SeverityError, ReasonRuleNotAccepted, "not accepted", c.Message}, true
	case c.Type == policyv1alpha1.ConditionAccepted && c.Status == metav1.ConditionTrue && c.Reason != policyv1alpha1.ReasonAccepted:
		return ruleProblem{SeverityWarning, ReasonRuleNamesNotFound, "names what does not exist", c.Message}, true
	}
	return ruleProblem{}, false
}
