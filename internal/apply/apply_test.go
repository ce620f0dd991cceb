// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestStale: errors which show that the plan was stale become ErrStale, all others are unchanged. If the namespace is terminating,
// the write is retried, because the cache may be stale.
//
// spec: E8
func TestStale(t *testing.T) {
	t.Parallel()
	services := schema.GroupResource{Resource: "services"}
	terminating := apierrors.NewForbidden(services, "web", errors.New("namespace shop is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"}}
	for name, test := range map[string]struct {
		err   error
		want  bool
		again bool // retried without a watch event
	}{
		"none":                           {nil, false, false},
		"another version":                {apierrors.NewConflict(services, "web", errors.New("it has changed")), true, false},
		"it is gone":                     {apierrors.NewNotFound(services, "web"), true, false},
		"its namespace is about to go":   {terminating, true, true},
		"a quota, a policy or a right":   {apierrors.NewForbidden(services, "web", errors.New("exceeded quota")), false, false},
		"it is not valid":                {apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", nil), false, false},
		"the API server does not answer": {errors.New("connection refused"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := asStale(test.err)
			if errors.Is(got, ErrStale) != test.want || !errors.Is(got, test.err) {
				t.Errorf("%v became %v", test.err, got)
			}
			if again := RetryAfter(got); (again > 0) != test.again {
				t.Errorf("%v is tried again after %s", test.err, again)
			}
			if !test.want && got != test.err { //nolint:errorlint // the same error, not wrapped
				t.Errorf("%v became %v", test.err, got)
			}
		})
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	if err := Join(nil, ErrStale); !errors.Is(err, ErrStale) {
		t.Errorf("%v, want ErrStale", err)
	}
	if err := Join(ErrStale, refused); errors.Is(err, ErrStale) || !errors.Is(err, refused) {
		t.Errorf("%v, want only the refusal", err)
	}
	if err := Join(nil, nil); err != nil {
		t.Error(err)
	}
}
