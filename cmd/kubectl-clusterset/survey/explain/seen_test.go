// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
)

// What a ServiceImportRoutingPolicy selects is explained for each importer.
//
// spec: P1
func TestPreferences(t *testing.T) {
	t.Parallel()
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
	want := []explain.Preference{{Importer: "east", Reason: "FirstSource", Message: "first"}, {Importer: "west", Reason: "Fallback", Message: "second"}}
	check.Equal(t, "preferences", want, explain.Preferences(surveytest.Key("shop/web"), members))
}
