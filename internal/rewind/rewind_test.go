// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/rewind"
)

// TestSource: lists and watches from a version that the API server has not reached fail with Expired; all others are sent to it.
func TestSource(t *testing.T) {
	t.Parallel()
	unreachable := errors.New("connection refused")
	const expired = "the API server is at an earlier resource version than 10"
	for name, test := range map[string]struct {
		seen, current string
		fails         error
		want          string
		checked       bool
	}{
		"nothing was seen":                 {seen: "", current: "7"},
		"any version will do":              {seen: "0", current: "7"},
		"the same version":                 {seen: "7", current: "7", checked: true},
		"a later version":                  {seen: "7", current: "10", checked: true},
		"an earlier version":               {seen: "10", current: "9", checked: true, want: expired},
		"the API server does not answer":   {seen: "10", current: "9", fails: unreachable, checked: true, want: "connection refused"},
		"versions that cannot be compared": {seen: "10", current: "one", checked: true},
		"versions of more than 64 bits":    {seen: "99999999999999999999", current: "100000000000000000000", checked: true},
		"an answer without a version":      {seen: "10", current: "", checked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests []metav1.ListOptions
			notices := 0
			source := rewind.Source(&cache.ListWatch{
				ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
					requests = append(requests, o)
					return &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: test.current}}, test.fails
				},
				WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
					requests = append(requests, o)
					return watch.NewEmptyWatch(), test.fails
				},
			}, func() { notices++ })
			options := metav1.ListOptions{ResourceVersion: test.seen}
			var want []metav1.ListOptions
			if test.checked {
				want = append(want, metav1.ListOptions{Limit: 1})
			}
			if test.want == "" {
				want = append(want, options)
			}
			_, listErr := source.ListWithContext(t.Context(), options)
			_, watchErr := source.WatchWithContext(t.Context(), options)
			for verb, err := range map[string]error{"list": listErr, "watch": watchErr} {
				if message(err) != test.want || apierrors.IsResourceExpired(err) != (test.want == expired) {
					t.Errorf("%s ends with %v, want %q", verb, err, test.want)
				}
			}
			check.Equal(t, "requests", append(want, want...), requests)
			if isExpired := test.want == expired; isExpired && notices != 1 || !isExpired && notices != 0 {
				t.Errorf("notice is called %d times", notices)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
