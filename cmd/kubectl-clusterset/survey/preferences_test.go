// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// What serves only because earlier sources of a policy do not is a problem, and explained for each importer. If nothing serves, it is an error.
//
// spec: P1
func TestPreferences(t *testing.T) {
	t.Parallel()
	r, _, _ := troubled()
	preferred := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: conditions.TypePreferred, Status: status, Reason: reason, Message: message}
	}
	with := func(name string, c metav1.Condition) mcsImport {
		object := imported(name, conditions.ImportReady(nil, nil), "east")
		object.Status.Conditions = append(object.Status.Conditions, c)
		return object
	}
	members := []survey.MemberObjects{
		{ID: "east", Imports: []mcsImport{
			with("shop/web", preferred("True", conditions.ReasonFirstSource, "first")), with("shop/fine", preferred("False", conditions.ReasonNoSource, "none")),
		}},
		{ID: "west", Imports: []mcsImport{with("shop/web", preferred("False", conditions.ReasonFallback, "second"))}},
		{ID: "north", Imports: []mcsImport{imported("shop/web", conditions.ImportReady(nil, nil), "east")}},
	}
	want := []survey.ExplainedPreference{{Importer: "east", Reason: "FirstSource", Message: "first"}, {Importer: "west", Reason: "Fallback", Message: "second"}}
	check.Equal(t, "preferences", want, survey.Preferences(keyOf("shop/web"), members))
	status := survey.Assess(r.hub(t), members, nil)
	fallback := map[string][]clusterset.ClusterID{}
	for _, s := range status.Services {
		if len(s.Fallback) > 0 {
			fallback[s.Key()] = s.Fallback
		}
	}
	check.Equal(t, "fallback", map[string][]clusterset.ClusterID{"shop/web": {"west"}, "shop/fine": {"east"}}, fallback)
	got := map[survey.Reason]string{}
	for _, p := range status.Problems {
		if p.Reason == survey.ReasonFallback || p.Reason == survey.ReasonNoSource || p.Reason == survey.ReasonNotKnown {
			got[p.Reason] += string(p.Severity) + " " + string(p.Member) + " " + p.Service + ": " + p.Message
		}
	}
	problems := map[survey.Reason]string{survey.ReasonFallback: "warning west shop/web: second", survey.ReasonNoSource: "error east shop/fine: none"}
	check.Equal(t, "problems", problems, got)
}
