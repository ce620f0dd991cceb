// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package metricsauth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

func reviewerOf() (*reviewer, *fake.Clientset) {
	api := fake.NewClientset()
	api.PrependReactor("create", "tokenreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		review.Status.Authenticated = review.Spec.Token != "forged"
		review.Status.User.Username = review.Spec.Token
		return true, review, nil
	})
	api.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		a := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "reader" && a.Verb == "get" && a.Path == "/metrics"
		return true, review, nil
	})
	return newReviewer(api), api
}

// TestDecide: what a token gets, and that the API server is asked once about it. e2e/integration/monitoring asks a real one.
func TestDecide(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		header, path string
		status       int
		asked        int
	}{
		"a reader":               {"Bearer reader", "/metrics", http.StatusOK, 2},
		"a reader, another path": {"Bearer reader", "/debug", http.StatusForbidden, 2},
		"another account":        {"Bearer other", "/metrics", http.StatusForbidden, 2},
		"a forged token":         {"Bearer forged", "/metrics", http.StatusUnauthorized, 1},
		"no token":               {"", "/metrics", http.StatusUnauthorized, 0},
		"another scheme":         {"Basic cmVhZGVy", "/metrics", http.StatusUnauthorized, 0},
		"an endless token":       {"Bearer " + strings.Repeat("x", maxToken+1), "/metrics", http.StatusUnauthorized, 0},
	} {
		r, api := reviewerOf()
		for range 2 {
			request := httptest.NewRequest(http.MethodGet, test.path, http.NoBody)
			request.Header.Set("Authorization", test.header)
			if got, err := r.decide(request); got != test.status || err != nil {
				t.Errorf("%s: %d, %v, want %d", name, got, err, test.status)
			}
		}
		if asked := len(api.Actions()); asked != test.asked {
			t.Errorf("%s: the API server is asked %d times, want %d", name, asked, test.asked)
		}
	}
}

// TestFlood: unknown tokens are refused beyond a rate and a number of reviews that wait. The reader whose token is known is not.
func TestFlood(t *testing.T) {
	t.Parallel()
	r, _ := reviewerOf()
	get := func(token string) int {
		t.Helper()
		request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		request.Header.Set("Authorization", "Bearer "+token)
		status, err := r.decide(request)
		if err != nil {
			t.Error(err)
		}
		return status
	}
	check.Equal(t, "the reader", http.StatusOK, get("reader"))
	refused := 0
	for i := range 2 * maxVerdicts {
		if get(fmt.Sprint("token-", i)) == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < maxVerdicts {
		t.Errorf("%d of %d unknown tokens are refused at once", refused, 2*maxVerdicts)
	}
	for range maxReviews {
		r.first <- struct{}{}
	}
	for _, k := range r.allowed.Keys() { // as after a minute
		r.allowed.Add(k, time.Now().Add(-lifetime), remembered)
	}
	check.Equal(t, "during a flood, the reader", http.StatusOK, get("reader"))
	r.unknown.SetLimit(rate.Inf)
	if got := get("another"); got != http.StatusTooManyRequests {
		t.Errorf("while all reviews wait, an unknown token gets %d, want 429", got)
	}
}
