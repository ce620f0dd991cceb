// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// unlisted are what an object can say that is no fault on the list.
var unlisted = map[string][]metav1.Condition{
	"a condition that this program does not know":  {ready(metav1.ConditionTrue, "Ready"), {Type: "Quarantined", Status: metav1.ConditionTrue, Reason: "Virus"}},
	"a condition of a later version that is False": {ready(metav1.ConditionTrue, "Ready"), {Type: "Audited", Status: metav1.ConditionFalse, Reason: "NoAuditor"}},
	"a condition that is Unknown":                  {ready(metav1.ConditionUnknown, "NoData")},
	"a condition with another status":              {ready("Perhaps", "Ready")},
	"no condition Ready":                           {{Type: conditions.TypeSourceUnusable, Status: metav1.ConditionFalse}},
}

func ready(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: "See the news."}
}

// What trace and status do not know ends in "not known", and never in "works". spec: G12
func TestUnlistedConditions(t *testing.T) {
	t.Parallel()
	onlyExport := map[string][]metav1.Condition{"an export that is not Ready for a reason of a later version": {ready(metav1.ConditionFalse, "Embargo")}}
	for name, all := range unlisted {
		onlyExport[name] = all
		t.Run("import: "+name, func(t *testing.T) {
			t.Parallel()
			object := &mcsv1beta1.ServiceImport{Spec: mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless}}
			object.Namespace, object.Name, object.Labels = "shop", "web", map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}
			object.Status.Conditions = all
			v := newMemberTrace()
			v.serviceImport = object
			endsNotKnown(t, v.importSteps(&tracer{exported: true, hub: v.view.hub}))
			a := assessment{hub: v.view.hub}
			a.problemsOfImport(MemberObjects{ID: "a", Context: "ctx"}, object)
			isNotKnown(t, a.problems)
		})
	}
	for name, all := range onlyExport {
		t.Run("export: "+name, func(t *testing.T) {
			t.Parallel()
			object := &mcsv1beta1.ServiceExport{Status: mcsv1beta1.ServiceExportStatus{Conditions: all}}
			object.Namespace, object.Name = "shop", "web"
			v := newMemberTrace()
			v.Sources.Export, v.Sources.Local = object, &clusterset.Export{}
			v.LocalSlices = []clusterset.Slice{{Endpoints: []clusterset.Endpoint{{}}}}
			endsNotKnown(t, v.exportSteps(v.view.hub))
			a := assessment{hub: v.view.hub}
			a.problemsOfExport(MemberObjects{ID: "a", Context: "ctx"}, object)
			isNotKnown(t, a.problems)
		})
	}
}

func newMemberTrace() *memberTrace {
	h := &Hub{Records: hub.NewStore("", clusterset.AddressRanges{}), Renewed: map[clusterset.ClusterID]time.Time{}}
	return &memberTrace{
		DryRunResult: &DryRunResult{Sources: sources.Sources{Key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}}},
		namespace:    &corev1.Namespace{},
		view:         &MemberView{Member: &Member{ID: "a"}, hub: h, store: hub.NewStore("a", clusterset.AddressRanges{})},
	}
}

// endsNotKnown checks the result of a trace with these steps.
func endsNotKnown(t *testing.T, steps []Step) {
	t.Helper()
	result := TraceResult{Steps: steps}
	seen := result.NotKnown()
	if result.Broken() != nil || seen == nil {
		t.Fatalf("want a step that is not known: %+v", steps)
	}
	if seen.Found == "" || seen.Fix == "" {
		t.Errorf("%+v does not say what was seen and what to do", seen)
	}
}

func isNotKnown(t *testing.T, problems []Problem) {
	t.Helper()
	if len(problems) != 1 || problems[0].Reason != ReasonNotKnown || problems[0].Message == "" || problems[0].Next == "" {
		t.Errorf("want one problem that is not known: %+v", problems)
	}
}

func sourceUnusable(reason string) []metav1.Condition {
	return []metav1.Condition{conditions.ImportReady(nil, nil), conditions.SourceUnusable([]error{errors.New(reason)})}
}
