// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/proxy"
)

// spec: L1
func TestProblemsOfAliases(t *testing.T) {
	t.Parallel()
	a := &assessment{}
	reached := []proxy.Port{{Name: "http", Protocol: corev1.ProtocolTCP, Traffic: proxy.Internal, Available: 1, Reached: 1}}
	for name, all := range map[string][]metav1.Condition{
		"new":   nil,
		"fine":  {conditions.Alias(conditions.Aliased{Import: "web", Matched: []string{"http/TCP"}, Ports: reached})},
		"other": {{Type: "LoadBalancerPortsError", Status: metav1.ConditionTrue}},
	} {
		a.problemOfAlias(survey.MemberObjects{ID: "east"}, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.ServiceStatus{Conditions: all}})
	}
	part := conditions.Alias(conditions.Aliased{Import: "web", Matched: []string{"http/TCP"}, Unmatched: []string{"dns/UDP"}, Ports: reached})
	none := conditions.AliasWithoutImport("web")
	for _, c := range []metav1.Condition{part, none} {
		a.problemOfAlias(survey.MemberObjects{ID: "east"}, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}, Status: corev1.ServiceStatus{Conditions: []metav1.Condition{c}},
		})
	}
	const next = "See what it has, and follow its import: kubectl clusterset trace shop/all"
	want := []Problem{
		{Severity: SeverityWarning, Reason: ReasonAliasIncomplete, Member: "east", Service: "shop/all", Message: part.Message, Next: next},
		{Severity: SeverityError, Reason: ReasonAliasNotReady, Member: "east", Service: "shop/all", Message: none.Message, Next: next},
	}
	check.Equal(t, "problems", want, a.problems)
}
