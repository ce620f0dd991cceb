// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// What serves only because earlier sources of a policy do not is a problem. If nothing serves, it is an error.
//
// spec: P1
func TestPreferences(t *testing.T) {
	t.Parallel()
	r, _, _ := troubled()
	preferred := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: conditions.TypePreferred, Status: status, Reason: reason, Message: message}
	}
	with := func(name string, c metav1.Condition) mcsv1beta1.ServiceImport {
		object := surveytest.Import(name, conditions.ImportReady(nil, nil), "east")
		object.Status.Conditions = append(object.Status.Conditions, c)
		return object
	}
	members := []survey.MemberObjects{
		{ID: "east", Imports: []mcsv1beta1.ServiceImport{
			with("shop/web", preferred("True", conditions.ReasonFirstSource, "first")), with("shop/fine", preferred("False", conditions.ReasonNoSource, "none")),
		}},
		{ID: "west", Imports: []mcsv1beta1.ServiceImport{with("shop/web", preferred("False", conditions.ReasonFallback, "second"))}},
		{ID: "north", Imports: []mcsv1beta1.ServiceImport{surveytest.Import("shop/web", conditions.ImportReady(nil, nil), "east")}},
	}
	status := assess.Assess(r.Hub(t), members, nil)
	fallback := map[string][]clusterset.ClusterID{}
	for _, s := range status.Services {
		if len(s.Fallback) > 0 {
			fallback[s.Key()] = s.Fallback
		}
	}
	check.Equal(t, "fallback", map[string][]clusterset.ClusterID{"shop/web": {"west"}, "shop/fine": {"east"}}, fallback)
	got := map[assess.Reason]string{}
	for _, p := range status.Problems {
		if p.Reason == assess.ReasonFallback || p.Reason == assess.ReasonNoSource || p.Reason == assess.ReasonNotKnown {
			got[p.Reason] += string(p.Severity) + " " + string(p.Member) + " " + p.Service + ": " + p.Message
		}
	}
	problems := map[assess.Reason]string{assess.ReasonFallback: "warning west shop/web: second", assess.ReasonNoSource: "error east shop/fine: none"}
	check.Equal(t, "problems", problems, got)
}
