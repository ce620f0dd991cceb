// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/dryrun"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// What trace does not know ends in "not known", and never in "works". spec: G12
func TestUnlistedConditions(t *testing.T) {
	t.Parallel()
	for name, all := range surveytest.UnlistedOfImports() {
		t.Run("import: "+name, func(t *testing.T) {
			t.Parallel()
			object := surveytest.Import("shop/web", metav1.Condition{})
			object.Spec.Type, object.Status.Conditions = mcsv1beta1.Headless, all
			v := newMemberTrace()
			v.serviceImport = &object
			endsNotKnown(t, v.importSteps(&tracer{exported: true, hub: v.view.Hub}))
		})
	}
	for name, all := range surveytest.UnlistedOfExports() {
		t.Run("export: "+name, func(t *testing.T) {
			t.Parallel()
			object := surveytest.Export("shop/web", all...)
			v := newMemberTrace()
			v.Sources.Export, v.Sources.Local = &object, &clusterset.Export{}
			v.LocalSlices = []clusterset.Slice{{Endpoints: []clusterset.Endpoint{{}}}}
			endsNotKnown(t, v.exportSteps(v.view.Hub))
		})
	}
}

func newMemberTrace() *memberTrace {
	h := &survey.Hub{Records: hub.NewStore("", clusterset.AddressRanges{}), Renewed: map[clusterset.ClusterID]time.Time{}}
	return &memberTrace{
		Result:    &dryrun.Result{Sources: sources.Sources{Key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}}},
		namespace: &corev1.Namespace{},
		view:      &dryrun.View{Member: &survey.Member{ID: "a"}, Hub: h, Store: hub.NewStore("a", clusterset.AddressRanges{})},
	}
}

// endsNotKnown checks the result of a trace with these steps.
func endsNotKnown(t *testing.T, steps []Step) {
	t.Helper()
	result := Result{Steps: steps}
	seen := result.NotKnown()
	if result.Broken() != nil || seen == nil {
		t.Fatalf("want a step that is not known: %+v", steps)
	}
	if seen.Found == "" || seen.Fix == "" {
		t.Errorf("%+v does not say what was seen and what to do", seen)
	}
}

func sourceUnusable(reason string) []metav1.Condition {
	return []metav1.Condition{conditions.ImportReady(nil, nil), conditions.SourceUnusable([]error{errors.New(reason)})}
}
