// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/plan"
)

var publishedServices = schema.GroupKind{Group: "hub.tombolo-mcs.io", Kind: "PublishedService"}

// invalid returns an API server's error about annotations that are too long, in this order.
func invalid(order ...int) error {
	var list field.ErrorList
	for _, i := range order {
		list = append(list, field.TooLong(field.NewPath("spec", "annotations").Key(fmt.Sprintf("key-%d", i)), "", 4096))
	}
	return fmt.Errorf("create shop.web: %w", apierrors.NewInvalid(publishedServices, "shop.web", list))
}

// TestReason: the same causes in another order give the same text.
//
// spec: C2
func TestReason(t *testing.T) {
	t.Parallel()
	tooLong := func(i int) string {
		return fmt.Sprintf("spec.annotations[key-%d]: Too long: may not be more than 4096 bytes", i)
	}
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("exceeded quota: tombolo"))
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"one field": {invalid(3), `PublishedService.hub.tombolo-mcs.io "shop.web" is invalid: ` + tooLong(3)},
		"two fields": {
			invalid(2, 1),
			`PublishedService.hub.tombolo-mcs.io "shop.web" is invalid: [` + tooLong(1) + ", " + tooLong(2) + "]",
		},
		"ten fields": {
			invalid(rand.Perm(10)...),
			`PublishedService.hub.tombolo-mcs.io "shop.web" is invalid: [` +
				strings.Join([]string{tooLong(0), tooLong(1), tooLong(2), tooLong(3), tooLong(4)}, ", ") + ", and 5 more]",
		},
		"a field twice":    {invalid(1, 2, 1, 2), `PublishedService.hub.tombolo-mcs.io "shop.web" is invalid: [` + tooLong(1) + ", " + tooLong(2) + "]"},
		"a quota":          {fmt.Errorf("create: %w", quota), `services "web" is forbidden: exceeded quota: tombolo`},
		"no API server":    {errors.New("connection refused"), "connection refused"},
		"a long answer":    {errors.New(strings.Repeat("ü", 1500)), strings.Repeat("ü", 998) + "…"},
		"several refusals": {errors.Join(quota, invalid(1)), `services "web" is forbidden: exceeded quota: tombolo`},
		"a value of 4 KiB": {
			apierrors.NewInvalid(publishedServices, "web", field.ErrorList{
				field.Invalid(field.NewPath("b"), strings.Repeat("x", 4096), "no"), field.Required(field.NewPath("a"), "missing"),
			}),
			`PublishedService.hub.tombolo-mcs.io "web" is invalid: [a: Required value: missing, b: Invalid value: "` + strings.Repeat("x", 300-len(`b: Invalid value: "…`)) + "…]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "Reason", test.want, Reason(test.err))
			check.Equal(t, "as an error", test.want, WriteError{error: test.err}.Error())
		})
	}
}

// TestRefused: refused writes are distinguished from other failures, also if several writes have failed.
func TestRefused(t *testing.T) {
	t.Parallel()
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("exceeded quota: tombolo"))
	policy := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("denied by a policy"))
	policy.ErrStatus.Reason = "Invalid" // like the error of a ValidatingAdmissionPolicy
	webhook := apierrors.NewInvalid(publishedServices, "shop.web", field.ErrorList{field.Required(field.NewPath("spec"), "")})
	webhook.ErrStatus.Message = `admission webhook "names.example.com" denied the request: ` + webhook.ErrStatus.Message
	foreign := fmt.Errorf("create: %w", ErrUnmanaged)
	noAnswer := errors.New("connection refused")
	answer := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: "denied the request"}}
	}
	type verdict struct{ final, refused, foreign bool }
	for name, test := range map[string]struct {
		err  error
		want verdict
	}{
		"none":                        {nil, verdict{}},
		"a schema":                    {invalid(1), verdict{final: true, refused: true}},
		"a webhook that names fields": {webhook, verdict{refused: true}},
		"too large":                   {apierrors.NewRequestEntityTooLargeError("3 MiB"), verdict{final: true, refused: true}},
		"a policy":                    {policy, verdict{refused: true}},
		"a schema and a policy":       {errors.Join(invalid(1), policy), verdict{refused: true}},
		"a refusal of a policy":       {WriteError{error: policy}, verdict{refused: true}},
		"a quota":                     {fmt.Errorf("publish: %w", quota), verdict{refused: true}},
		"another's":                   {foreign, verdict{refused: true, foreign: true}},
		"no answer":                   {noAnswer, verdict{}},
		"a schema and a quota":        {fmt.Errorf("publish: %w", errors.Join(invalid(1), quota)), verdict{refused: true}},
		"a webhook without a code":    {answer(400), verdict{refused: true}},
		"code 401":                    {answer(401), verdict{}},
		"code 405":                    {answer(405), verdict{refused: true}},
		"code 408":                    {answer(408), verdict{}},
		"code 409":                    {answer(409), verdict{}},
		"code 418":                    {answer(418), verdict{refused: true}},
		"code 429":                    {answer(429), verdict{}},
		"code 500":                    {answer(500), verdict{}},
		"changed by a webhook":        {plan.ErrChanged, verdict{refused: true}},
		"two schemas":                 {errors.Join(invalid(1), fmt.Errorf("create: %w", invalid(2))), verdict{final: true, refused: true}},
		"another's and a quota":       {errors.Join(foreign, quota), verdict{refused: true}},
		"a quota and no answer":       {errors.Join(quota, noAnswer), verdict{}},
		"nested, one without answer":  {errors.Join(invalid(1), fmt.Errorf("write: %w", errors.Join(foreign, noAnswer))), verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (verdict{IsFinal(test.err), IsRefused(test.err), IsUnmanaged(test.err)}); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

// TestClassify: only what the content of an object causes is final. All else that an API server refuses can succeed later, although the code
// of the answer is the same (422).
func TestClassify(t *testing.T) {
	t.Parallel()
	service := func(causes ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", causes)
	}
	spec := field.NewPath("spec")
	byWebhook := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{field.Invalid(spec.Child("ports"), "x", "no")})
	byWebhook.ErrStatus.Message = `admission webhook "x.example.com" denied the request: ` + byWebhook.ErrStatus.Message
	missing := apierrors.NewGenericServerResponse(http.StatusNotFound, "put", schema.GroupResource{Group: "multicluster.x-k8s.io", Resource: "serviceimports"}, "web", "404 page not found", 0, true)
	for name, tc := range map[string]struct {
		err  error
		want refusal
	}{
		"a port that is none":                            {service(field.Invalid(spec.Child("ports").Index(0).Child("port"), 0, "must be between 1 and 65535")), byContent},
		"a value of a later version":                     {service(field.NotSupported(spec.Child("trafficDistribution"), "x", []string{"y"})), byContent},
		"too few":                                        {service(field.TooFew(spec.Child("ports"), 0, 1)), byContent},
		"a list":                                         {service(field.Required(spec, ""), field.TooLong(spec, "", 1), field.TypeInvalid(spec, 1, ""), field.Duplicate(spec, 1), field.Forbidden(spec, "")), byContent},
		"too large":                                      {apierrors.NewRequestEntityTooLargeError("3 MiB"), byContent},
		"no address, as an API server starts":            {service(field.Invalid(spec.Child("clusterIPs"), nil, "failed to allocate IP: connection refused")), byCluster},
		"an address that another Service has":            {service(field.Invalid(spec.Child("clusterIPs").Index(0), "10.96.0.1", "failed to allocate IP 10.96.0.1: provided IP is already allocated")), byCluster},
		"a node port that another Service has":           {service(field.Invalid(spec.Child("ports").Index(1).Child("nodePort"), 30000, "provided port is already allocated")), byCluster},
		"an allocator, and a wrong port":                 {service(field.Invalid(spec.Child("clusterIPs"), nil, "failed to allocate IP"), field.Invalid(spec.Child("ports"), 0, "no")), byCluster},
		"clusterIPs of another kind":                     {apierrors.NewInvalid(publishedServices, "web", field.ErrorList{field.Invalid(spec.Child("clusterIPs"), 0, "no")}), byContent},
		"an internal error":                              {service(field.InternalError(spec.Child("ports"), errors.New("etcd has no leader"))), byCluster},
		"a reference to what is missing":                 {service(field.NotFound(spec.Child("x"), "y")), byCluster},
		"an update without a version":                    {service(field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")), byCluster},
		"a version of another object":                    {service(field.Invalid(field.NewPath("metadata", "uid"), "x", "field is immutable")), byCluster},
		"an object that is being deleted":                {service(field.Invalid(field.NewPath("metadata", "deletionTimestamp"), "x", "field is immutable")), byCluster},
		"a finalizer that may not be added":              {service(field.Forbidden(field.NewPath("metadata", "finalizers"), "no new finalizers can be added if the object is being deleted")), byCluster},
		"a webhook that names a field":                   {byWebhook, byCluster},
		"no fields":                                      {service(), byCluster},
		"no right":                                       {apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", nil), byCluster},
		"a kind that is not served":                      {missing, byCluster},
		"an object that is missing":                      {apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, "web"), notRefused},
		"a namespace that is missing":                    {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"), notRefused},
		"a conflict":                                     {apierrors.NewConflict(schema.GroupResource{Resource: "services"}, "web", nil), notRefused},
		"a webhook that does not answer":                 {apierrors.NewInternalError(errors.New("failed calling webhook")), notRefused},
		"an API server that is overloaded":               {apierrors.NewTooManyRequests("later", 1), notRefused},
		"a request that takes too long":                  {apierrors.NewTimeoutError("later", 1), notRefused},
		"an API server that is not ready":                {apierrors.NewServiceUnavailable("etcd"), notRefused},
		"no range of addresses is free (internal error)": {apierrors.NewInternalError(errors.New("range is full")), notRefused},
		"another's":                                      {fmt.Errorf("create: %w", ErrUnmanaged), unmanaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fmt.Errorf("create Service shop/web: %w", WriteError{error: tc.err})
			if got := classify(err); got != tc.want {
				t.Errorf("class %d, want %d", got, tc.want)
			}
			check.Equal(t, "final", tc.want == byContent, IsFinal(err))
			check.Equal(t, "refused", tc.want != notRefused, IsRefused(err))
		})
	}
}

// TestRefusedFields: the fields whose content is refused, not those that are allocated.
//
// spec: D6
func TestRefusedFields(t *testing.T) {
	t.Parallel()
	spec := field.NewPath("spec")
	err := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{
		field.NotSupported(spec.Child("trafficDistribution"), "x", []string{"y"}), field.Invalid(spec.Child("clusterIPs"), nil, "failed to allocate IP"),
		field.InternalError(spec.Child("sessionAffinity"), errors.New("no")),
	})
	check.Equal(t, "fields", []string{"spec.trafficDistribution"}, RefusedFields(fmt.Errorf("create: %w", err)))
	check.Equal(t, "fields of no refusal", []string(nil), RefusedFields(errors.New("connection refused")))
}

// TestKindMissing: a write for a kind that is not served is retried, and a deletion is not taken for done. One for an object that has gone is
// stale.
func TestKindMissing(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "multicluster.x-k8s.io", Resource: "serviceimports"}
	missing := apierrors.NewGenericServerResponse(http.StatusNotFound, "put", resource, "web", "404 page not found", 0, true)
	check.Equal(t, "missing kind is stale", false, errors.Is(asStale(missing), ErrStale))
	check.Equal(t, "missing object is stale", true, errors.Is(asStale(apierrors.NewNotFound(resource, "web")), ErrStale))
}
