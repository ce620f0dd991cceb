// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
)

// What status does not know is a problem that says so. spec: G12
func TestUnlistedConditions(t *testing.T) {
	t.Parallel()
	r := &surveytest.Records{}
	h, a := r.Hub(t), survey.MemberObjects{ID: "a", Context: "ctx"}
	for name, all := range surveytest.UnlistedOfImports() {
		t.Run("import: "+name, func(t *testing.T) {
			t.Parallel()
			object := surveytest.Import("shop/web", metav1.Condition{})
			object.Spec.Type, object.Status.Conditions = mcsv1beta1.Headless, all
			found := assessment{hub: h}
			found.problemsOfImport(a, &object)
			isNotKnown(t, found.problems)
		})
	}
	for name, all := range surveytest.UnlistedOfExports() {
		t.Run("export: "+name, func(t *testing.T) {
			t.Parallel()
			object := surveytest.Export("shop/web", all...)
			found := assessment{hub: h}
			found.problemsOfExport(a, &object)
			isNotKnown(t, found.problems)
		})
	}
}

func isNotKnown(t *testing.T, problems []Problem) {
	t.Helper()
	if len(problems) != 1 || problems[0].Reason != ReasonNotKnown || problems[0].Message == "" || problems[0].Next == "" {
		t.Errorf("want one problem that is not known: %+v", problems)
	}
}
