// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricsauth restricts who reads metrics: clients whose token belongs to an account that may get the URL, by the RBAC of the
// cluster. It does what controller-runtime's metrics/filters does, without k8s.io/apiserver, which would make the programs half as large
// again (docs/decisions/022-rights-and-metrics.md).
package metricsauth

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// lifetime is how long a verdict about a token is used. maxVerdicts bounds their number, maxToken the length of a token in bytes.
	lifetime, maxVerdicts, maxToken = time.Minute, 1000, 1 << 14
	// maxReviews is the number of requests that wait for the API server at a time, and of unknown tokens a second; others get 429.
	maxReviews = 4
	// remembered is how long a token that was allowed counts as known. Known tokens do not wait behind unknown ones.
	remembered = time.Hour
	timeout    = 10 * time.Second
)

// Options returns the options of a metrics server that serves HTTPS at an address, with a certificate that it signs itself, and asks the
// cluster's API server about each token (authentication.k8s.io/v1 TokenReview, authorization.k8s.io/v1 SubjectAccessReview).
func Options(address string) metricsserver.Options {
	return metricsserver.Options{
		BindAddress: address, SecureServing: true, FilterProvider: newFilter,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}, // scrapers need no HTTP/2
	}
}

func newFilter(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	api, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return newReviewer(api).filter, nil
}

func newReviewer(api kubernetes.Interface) *reviewer {
	return &reviewer{
		api: api, allowed: cache.NewLRUExpireCache(maxVerdicts), refused: cache.NewLRUExpireCache(maxVerdicts),
		unknown: rate.NewLimiter(maxReviews, maxReviews), first: make(chan struct{}, maxReviews), again: make(chan struct{}, maxReviews),
	}
}

// reviewer decides about requests.
type reviewer struct {
	api kubernetes.Interface
	// allowed has the time of the last review of each key that was allowed, refused the HTTP statuses of others.
	allowed, refused *cache.LRUExpireCache
	// unknown limits the rate of reviews of unknown tokens. first and again have an element for each review that waits, of unknown and
	// of known tokens.
	unknown      *rate.Limiter
	first, again chan struct{}
}

// key is a token, not kept in clear, and what it asks for.
type key struct {
	token     [sha256.Size]byte
	verb, url string
}

func (r *reviewer) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		status, err := r.decide(request)
		if err != nil && request.Context().Err() == nil {
			log.Error(err, "cannot check who reads the metrics")
		}
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, request)
	}), nil
}

// decide returns the status of a request: 200 if it is allowed.
func (r *reviewer) decide(request *http.Request) (int, error) {
	token, ok := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if !ok || token == "" || len(token) > maxToken {
		return http.StatusUnauthorized, nil
	}
	k := key{sha256.Sum256([]byte(token)), strings.ToLower(request.Method), request.URL.Path}
	reviewed, isKnown := r.allowed.Get(k)
	if isKnown && time.Since(reviewed.(time.Time)) < lifetime {
		return http.StatusOK, nil
	}
	if status, is := r.refused.Get(k); is {
		return status.(int), nil
	}
	waiting := r.again
	if !isKnown {
		if waiting = r.first; !r.unknown.Allow() {
			return http.StatusTooManyRequests, nil
		}
	}
	select {
	case waiting <- struct{}{}:
		defer func() { <-waiting }()
	default:
		return http.StatusTooManyRequests, nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), timeout)
	defer cancel()
	status, err := r.review(ctx, token, k)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	if status == http.StatusOK {
		r.allowed.Add(k, time.Now(), remembered)
	} else {
		r.allowed.Remove(k)
		r.refused.Add(k, status, lifetime)
	}
	return status, nil
}

func (r *reviewer) review(ctx context.Context, token string, k key) (int, error) {
	who, err := r.api.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	may, err := r.api.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: k.verb, Path: k.url},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review the access of %s: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
