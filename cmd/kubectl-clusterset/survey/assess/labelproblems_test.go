// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestProblemsOfLabels: status reports the gaps with one cause together.
//
// spec: P3
func TestProblemsOfLabels(t *testing.T) {
	t.Parallel()
	gap := func(name string, reason autoexport.Reason) survey.LabelGap {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		return survey.LabelGap{Gap: autoexport.Gap{Service: service, Reason: reason, Obstacle: "it is reserved."}, Limit: 1}
	}
	const disabled, pending, beyond = autoexport.ReasonDisabled, autoexport.ReasonPending, autoexport.ReasonBeyondLimit
	problem := func(service, message, trace string) Problem {
		return Problem{
			Severity: SeverityWarning, Reason: ReasonNotExportedByLabel, Member: "east", Service: service,
			Message: "A label (tombolo-mcs.io/auto-export) asks to export " + message, Next: "See what to do: kubectl clusterset trace " + trace,
		}
	}
	for name, tc := range map[string]struct {
		gaps []survey.LabelGap
		want []Problem
	}{
		"nothing is exported": {[]survey.LabelGap{gap("a", disabled), gap("b", disabled), gap("c", disabled)}, []Problem{
			problem("", "shop/a and 2 more Services, but the agent exports nothing by label.", "shop/a"),
		}},
		"one Service":     {[]survey.LabelGap{gap("a", disabled)}, []Problem{problem("", "shop/a, but the agent exports nothing by label.", "shop/a")}},
		"not created yet": {[]survey.LabelGap{gap("a", pending), gap("b", pending)}, nil},
		"beyond the limit": {[]survey.LabelGap{gap("a", pending), gap("b", beyond), gap("c", beyond)}, []Problem{
			problem("shop/b", "shop/b and 1 more Service, but the agent exports at most 1 Service of a namespace by label.", "shop/b"),
		}},
		"cannot be exported": {[]survey.LabelGap{gap("db", autoexport.ReasonNotExportable)}, []Problem{problem("shop/db", "shop/db, but it is reserved.", "shop/db")}},
	} {
		a := &assessment{}
		a.problemsOfLabels(survey.MemberObjects{ID: "east", Gaps: tc.gaps})
		check.Equal(t, name, tc.want, a.problems)
	}
}

// TestProblemOfAgent: it is a problem if no pod of an agent is ready.
func TestProblemOfAgent(t *testing.T) {
	t.Parallel()
	for isNotReady, want := range map[bool]int{false: 0, true: 1} {
		a := &assessment{hub: &survey.Hub{}}
		a.problemsOfObjects(survey.MemberObjects{ID: "east", Context: "admin@east", IsAgentNotReady: isNotReady})
		if len(a.problems) != want || want == 1 && a.problems[0].Reason != ReasonAgentNotReady {
			t.Errorf("not ready %t: %+v", isNotReady, a.problems)
		}
	}
}
