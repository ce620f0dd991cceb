// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// problemsOfRules adds the problems in the conditions of a member's rules about access. Rules with the same problem have one together.
func (a *assessment) problemsOfRules(s MemberObjects) {
	type problem struct {
		condition string
		message   string
	}
	rules := map[problem][]string{}
	collect := func(rule string, all []metav1.Condition) {
		for _, kind := range []string{policyv1alpha1.ConditionAccepted, policyv1alpha1.ConditionEnforced} {
			if c := meta.FindStatusCondition(all, kind); c != nil && c.Status == metav1.ConditionFalse {
				rules[problem{kind, c.Message}] = append(rules[problem{kind, c.Message}], rule)
			}
		}
	}
	for i := range s.Policies {
		collect("ClusterServiceAccessPolicy "+s.Policies[i].Name, s.Policies[i].Status.Conditions)
	}
	for i := range s.Grants {
		collect(fmt.Sprintf("ServiceExportGrant %s/%s", s.Grants[i].Namespace, s.Grants[i].Name), s.Grants[i].Status.Conditions)
	}
	for _, p := range slices.SortedFunc(maps.Keys(rules), func(a, b problem) int {
		return strings.Compare(a.condition+a.message, b.condition+b.message)
	}) {
		severity, reason, verb := SeverityError, ReasonRuleNotAccepted, "not accepted"
		if p.condition == policyv1alpha1.ConditionEnforced {
			severity, reason, verb = SeverityWarning, ReasonRuleNotEnforced, "not enforced everywhere"
		}
		a.add(Problem{
			Severity: severity, Reason: reason, Member: s.ID, Message: fmt.Sprintf("%s: %s. %s", verb, firstThree(rules[p]), p.message),
			Next: fmt.Sprintf("See all rules: kubectl --context %s get serviceexportgrants,clusterserviceaccesspolicies --all-namespaces", s.Context),
		})
	}
}

// firstThree returns the first three names, sorted, and the number of the others.
func firstThree(names []string) string {
	const most = 3
	slices.Sort(names)
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
