// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/controllers/publication"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestFailed: a heartbeat may say Complete although the schema refuses a record: nothing but a change of the export can help. A record
// that a quota or a policy refuses may be accepted later. An API server that has just started refuses each record with the reason
// Invalid until its policies have found the Member, and a Complete publication would withdraw all of them.
//
// spec: E3
func TestFailed(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: hubv1alpha1.GroupVersion.Group, Resource: "publishedservices"}
	policy := apierrors.NewForbidden(resource, "web", errors.New("no params found for policy binding"))
	policy.ErrStatus.Reason = metav1.StatusReasonInvalid
	for name, test := range map[string]struct {
		err   error
		state hubv1alpha1.Publication
		final bool
	}{
		"schema": {
			apierrors.NewInvalid(hubv1alpha1.GroupVersion.WithKind("PublishedService").GroupKind(), "web",
				field.ErrorList{field.Required(field.NewPath("spec"), "")}),
			hubv1alpha1.PublicationComplete, true,
		},
		"quota":         {apierrors.NewForbidden(resource, "web", errors.New("exceeded quota")), hubv1alpha1.PublicationPartial, false},
		"policy":        {policy, hubv1alpha1.PublicationPartial, false},
		"no connection": {errors.New("connection refused"), hubv1alpha1.PublicationPartial, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
			r := &Reconciler{Progress: publication.NewProgress(), Outcomes: publication.NewOutcomes()}
			r.Progress.Begin(1, []clusterset.ServiceKey{web})
			err := r.setFailure(web, 1, test.err, publication.Outcome{})
			if got := errors.Is(err, reconcile.TerminalError(nil)); got != test.final {
				t.Errorf("terminal: %t, want %t", got, test.final)
			}
			if got := r.Progress.Publication().State; got != test.state {
				t.Errorf("publication %s, want %s", got, test.state)
			}
		})
	}
}
