// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
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

// A condition ProxyProtocol that is not True is a problem, and hides no other one. spec: G14
func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	r := &surveytest.Records{}
	h, a := r.Hub(t), survey.MemberObjects{ID: "a", Context: "ctx"}
	for name, test := range map[string]struct {
		condition conditions.ProxyProtocol
		want      []Reason
	}{
		"the header is sent": {conditions.ProxyProtocol{Ports: []int32{80}, HasGateways: true}, []Reason{ReasonExportFailed}},
		"no gateways":        {conditions.ProxyProtocol{Ports: []int32{80}}, []Reason{ReasonProxyProtocol, ReasonExportFailed}},
	} {
		object := surveytest.Export("shop/web", test.condition.Condition(), conditions.Exported(nil, conditions.Publication{Failure: "no"}))
		found := assessment{hub: h}
		found.problemsOfExport(a, &object)
		var got []Reason
		for _, p := range found.problems {
			got = append(got, p.Reason)
		}
		check.Equal(t, name, test.want, got)
	}
}

func isNotKnown(t *testing.T, problems []Problem) {
	t.Helper()
	if len(problems) != 1 || problems[0].Reason != ReasonNotKnown || problems[0].Message == "" || problems[0].Next == "" {
		t.Errorf("want one problem that is not known: %+v", problems)
	}
}
