// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var publishedServices = schema.GroupResource{Group: hubv1alpha1.GroupVersion.Group, Resource: "publishedservices"}

// The answers of a hub.
var (
	errSchema = apierrors.NewInvalid(hubv1alpha1.GroupVersion.WithKind("PublishedService").GroupKind(), "shop.web",
		field.ErrorList{field.TooLong(field.NewPath("spec", "annotations"), "", 4096)})
	errQuota       = apierrors.NewForbidden(publishedServices, "shop.web", errors.New("exceeded quota: tombolo"))
	errRights      = apierrors.NewForbidden(publishedServices, "shop.web", errors.New("user cannot write"))
	errPolicy      = policyAnswer("denied request: no params found for policy binding with `Deny` parameterNotFoundAction")
	errWebhook     = apierrors.NewForbidden(publishedServices, "shop.web", errors.New("admission webhook denied the request"))
	errLikeSchema  = likeSchema()
	errTerminating = terminatingAnswer()
)

func policyAnswer(text string) error {
	err := apierrors.NewForbidden(publishedServices, "shop.web", errors.New(text))
	err.ErrStatus.Reason, err.ErrStatus.Code = metav1.StatusReasonInvalid, 422
	return err
}

// likeSchema returns the answer of a webhook that names fields, as the API server passes it on.
func likeSchema() error {
	status := errSchema.ErrStatus.DeepCopy()
	status.Message = `admission webhook "names.example.com" denied the request: ` + status.Message
	return &apierrors.StatusError{ErrStatus: *status}
}

func terminatingAnswer() error {
	err := apierrors.NewForbidden(publishedServices, "shop.web", errors.New("namespace member-a is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// refusedBy returns the error of a write that the hub answers so.
func refusedBy(t *testing.T, answer error, verb plan.Verb, object *hubv1alpha1.PublishedService) error {
	t.Helper()
	known := runtime.NewScheme()
	check.Must(t, hubv1alpha1.AddToScheme(known))
	onHub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(known).Build(), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return answer },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return answer },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return answer },
	})
	change := plan.Change[*hubv1alpha1.PublishedService]{Verb: verb, Object: object}
	if verb != plan.Create {
		change.Existing = object
	}
	_, err := apply.Do(t.Context(), apply.ToHub(onHub, object.Namespace), []plan.Change[*hubv1alpha1.PublishedService]{change})
	if err == nil {
		t.Fatal("it is not refused")
	}
	return fmt.Errorf("publish: %w", err)
}

// TestIsSettled: Complete means that the hub stores what can exist. Records that can never exist do not count, nor do refused deletions.
// Every refusal that may end counts, as do records that the hub has lost. After a restart a hub refuses all records, because its policies
// have not found the Member: a Complete publication would withdraw those that it has lost.
//
// spec: E3
func TestIsSettled(t *testing.T) {
	t.Parallel()
	valid, illegal, elsewhere := offered, offered, offered
	illegal.Labels = map[string]string{"no key": "x"}
	elsewhere.Key.Namespace = "tenant"
	restricted := member.DeepCopy()
	restricted.Spec.Namespaces = []hubv1alpha1.NamespaceName{"shop"}
	type settled struct{ created, updated, deleted, lost bool }
	never, forGood := settled{}, settled{created: true, updated: true, deleted: true}
	mayEnd := settled{deleted: true}
	for name, test := range map[string]struct {
		answer error
		export clusterset.Export
		want   settled
	}{
		"the schema":                          {errSchema, valid, forGood},
		"too large":                           {apierrors.NewRequestEntityTooLargeError("3 MiB"), valid, forGood},
		"a label that no hub stores":          {policyAnswer("a label key is no qualified name"), illegal, forGood},
		"a namespace that the Member forbids": {policyAnswer("the Member does not allow namespace tenant"), elsewhere, forGood},
		"such a label, while the hub starts":  {errPolicy, illegal, forGood},
		"the Member is not found yet":         {errPolicy, valid, mayEnd},
		"an address outside of the ranges":    {policyAnswer("address 192.0.2.1 is outside"), valid, mayEnd},
		"a quota":                             {errQuota, valid, mayEnd},
		"no right":                            {errRights, valid, mayEnd},
		"a webhook":                           {errWebhook, valid, mayEnd},
		"a webhook that names fields":         {errLikeSchema, valid, mayEnd},
		"the namespace terminates":            {errTerminating, valid, never},
		"changed meanwhile":                   {apierrors.NewConflict(publishedServices, "shop.web", errors.New("changed")), valid, never},
		"no answer":                           {errors.New("connection refused"), valid, never},
		"a timeout":                           {apierrors.NewServerTimeout(publishedServices, "create", 1), valid, never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := record.EncodeService(test.export)
			object.Namespace = "member-a"
			after := func(verb plan.Verb, export loss) bool {
				return isSettled(refusedBy(t, test.answer, verb, object), restricted, export)
			}
			got := settled{
				created: after(plan.Create, notLost), updated: after(plan.Update, notLost), deleted: after(plan.Delete, notLost),
				lost: after(plan.Create, lost),
			}
			if got != test.want {
				t.Errorf("settled: %+v, want %+v", got, test.want)
			}
		})
	}
	t.Run("several", func(t *testing.T) {
		t.Parallel()
		object := record.EncodeService(valid)
		object.Namespace = "member-a"
		forGood, quota := refusedBy(t, errSchema, plan.Create, object), refusedBy(t, errQuota, plan.Create, object)
		stale := refusedBy(t, errTerminating, plan.Create, object)
		for name, test := range map[string]struct {
			err  error
			want bool
		}{
			"none": {nil, true}, "two for good": {apply.Join(forGood, forGood), true},
			"a quota too": {apply.Join(forGood, quota), false}, "a stale plan too": {apply.Join(forGood, stale), false},
		} {
			check.Equal(t, name, test.want, isSettled(test.err, member, notLost))
		}
	})
}

// TestFailureIsReported: the outcome of a service has the reason of a refusal. Only an answer of the schema ends the attempts.
func TestFailureIsReported(t *testing.T) {
	t.Parallel()
	object := record.EncodeService(offered)
	object.Namespace = "member-a"
	for name, test := range map[string]struct {
		answer   error
		terminal bool
		reported string
	}{
		"schema": {errSchema, true, "Too long"}, "quota": {errQuota, false, "exceeded quota"}, "policy": {errPolicy, false, "no params found"},
		"stale": {errTerminating, false, ""}, "no answer": {errors.New("connection refused"), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Reconciler{Outcomes: NewOutcomes()}
			err := r.setFailure(web, refusedBy(t, test.answer, plan.Create, object), Outcome{})
			check.Equal(t, "terminal", test.terminal, errors.Is(err, reconcile.TerminalError(nil)))
			if failure := r.Outcomes.Of(web).Failure; !strings.Contains(failure, test.reported) || (failure == "") != (test.reported == "") {
				t.Errorf("reported: %q, want %q", failure, test.reported)
			}
		})
	}
}

// TestLossOf: an export is lost if the hub has no record of it, but has stored one, as the status of the ServiceExport says.
//
// spec: E3
func TestLossOf(t *testing.T) {
	t.Parallel()
	stored := record.EncodeService(offered)
	says := func(known sources.Sources, condition string) sources.Sources {
		known.Export = known.Export.DeepCopy()
		known.Export.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue}}
		return known
	}
	ready := string(mcsv1beta1.ServiceExportConditionReady)
	for name, test := range map[string]struct {
		known sources.Sources
		want  loss
	}{
		"a new export":                       {exported(sources.Hub{}), notLost},
		"an export that the hub stores":      {says(exported(sources.Hub{Local: stored}), ready), notLost},
		"an export that it has stored":       {says(exported(sources.Hub{}), ready), lost},
		"an older version that it stored":    {says(exported(sources.Hub{}), conditions.TypeOutdated), lost},
		"an export that is no longer valid":  {refused(mcsv1beta1.ServiceExportReasonNoService, nil), notLost},
		"a service that is no longer there":  {sources.Sources{Key: web, Hub: sources.Hub{LocalMember: member}}, notLost},
		"an export that was valid only once": {says(exported(sources.Hub{}), string(mcsv1beta1.ServiceExportConditionValid)), notLost},
	} {
		check.Equal(t, name, test.want, lossOf(test.known))
	}
}
