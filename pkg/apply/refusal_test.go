// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
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
			check.Equal(t, "as an error", test.want, (writeError{test.err}).Error())
		})
	}
}

// TestRefused: refused writes are distinguished from other failures, also if several writes have failed.
func TestRefused(t *testing.T) {
	t.Parallel()
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("exceeded quota: tombolo"))
	policy := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("denied by a policy"))
	policy.ErrStatus.Reason = "Invalid" // like the error of a ValidatingAdmissionPolicy
	foreign := fmt.Errorf("create: %w", ErrUnmanaged)
	noAnswer := errors.New("connection refused")
	type verdict struct{ final, refused, foreign bool }
	for name, test := range map[string]struct {
		err  error
		want verdict
	}{
		"none":                       {nil, verdict{}},
		"a schema":                   {invalid(1), verdict{final: true, refused: true}},
		"too large":                  {apierrors.NewRequestEntityTooLargeError("3 MiB"), verdict{final: true, refused: true}},
		"a policy":                   {policy, verdict{refused: true}},
		"a schema and a policy":      {errors.Join(invalid(1), policy), verdict{refused: true}},
		"a refusal of a policy":      {writeError{policy}, verdict{refused: true}},
		"a quota":                    {fmt.Errorf("publish: %w", quota), verdict{refused: true}},
		"another's":                  {foreign, verdict{refused: true, foreign: true}},
		"no answer":                  {noAnswer, verdict{}},
		"a schema and a quota":       {fmt.Errorf("publish: %w", errors.Join(invalid(1), quota)), verdict{refused: true}},
		"two schemas":                {errors.Join(invalid(1), fmt.Errorf("create: %w", invalid(2))), verdict{final: true, refused: true}},
		"another's and a quota":      {errors.Join(foreign, quota), verdict{refused: true}},
		"a quota and no answer":      {errors.Join(quota, noAnswer), verdict{}},
		"nested, one without answer": {errors.Join(invalid(1), fmt.Errorf("write: %w", errors.Join(foreign, noAnswer))), verdict{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (verdict{IsFinal(test.err), IsRefused(test.err), IsUnmanaged(test.err)}); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
