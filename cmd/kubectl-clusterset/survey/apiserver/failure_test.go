// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestFailureOf: each error has a message without the URL of the request, and a next step that fits.
func TestFailureOf(t *testing.T) {
	t.Parallel()
	exports := schema.GroupResource{Group: "multicluster.x-k8s.io", Resource: "serviceexports"}
	noVersion := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: exports.Group, Kind: "ServiceExport"}, SearchedVersions: []string{"v1beta1"}}
	noGroup := apiutil.ErrResourceDiscoveryFailed{exports.WithVersion("v1beta1").GroupVersion(): apierrors.NewNotFound(schema.GroupResource{}, "")}
	noPath := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: "the server could not find the requested resource"}}
	request := func(err error) error { return &url.Error{Op: "Get", URL: "https://east.example/api", Err: err} }
	const (
		upgrade = "install the kinds and versions that this command reads: kubectl clusterset upgrade --context east"
		rights  = "see what you may read there: kubectl --context east auth can-i --list"
		silent  = "check that its API server runs, and that no firewall or VPN drops the connection: kubectl --context east get --raw /readyz"
		down    = "check that its API server runs at the URL in the kubeconfig: kubectl --context east get --raw /readyz"
		kind    = "list ServiceExports: it does not serve this kind in the version that is read"
	)
	for name, test := range map[string]struct {
		err  error
		want Failure
	}{
		"no such version":    {noVersion, Failure{kind, upgrade}},
		"no such group":      {&noGroup, Failure{kind, upgrade}},
		"no such path":       {noPath, Failure{kind, upgrade}},
		"no such object":     {apierrors.NewNotFound(exports, "web"), Failure{`list ServiceExports: serviceexports.multicluster.x-k8s.io "web" not found`, down}},
		"no rights":          {apierrors.NewForbidden(exports, "", errors.New("no")), Failure{"list ServiceExports: serviceexports.multicluster.x-k8s.io is forbidden: no", rights}},
		"no credentials":     {apierrors.NewUnauthorized("Unauthorized"), Failure{"it does not accept your credentials: list ServiceExports: Unauthorized", "renew the credentials of the context in the kubeconfig, and check them: kubectl --context east auth whoami"}},
		"another authority":  {request(x509.UnknownAuthorityError{}), Failure{"x509: certificate signed by unknown authority", "correct the certificate authority of the context's cluster in the kubeconfig, or its URL"}},
		"connection refused": {request(syscall.ECONNREFUSED), Failure{"connection refused", down}},
		"no answer":          {request(NoAnswerError{5 * time.Second}), Failure{"it has not answered within 5s", silent}},
		"end of the time":    {request(context.DeadlineExceeded), Failure{"it has not answered in time", silent}},
	} {
		check.Equal(t, name, test.want, FailureOf(fmt.Errorf("list ServiceExports: %w", test.err), "east"))
	}
}

// TestAnswerWithin: a request fails if its answer does not begin in time. The rest of an answer has no limit.
func TestAnswerWithin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := func(after time.Duration) http.RoundTripper {
			return RoundTripper(func(request *http.Request) (*http.Response, error) {
				select {
				case <-request.Context().Done():
					return nil, request.Context().Err()
				case <-time.After(after): //nolint:forbidigo // in synctest
					recorder := httptest.NewRecorder()
					_, err := recorder.WriteString("body")
					return recorder.Result(), err
				}
			})
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		_, err := answerWithin(5*time.Second, answer(time.Minute), request) //nolint:bodyclose // there is no response
		if late := (NoAnswerError{}); !errors.As(err, &late) {
			t.Errorf("an answer after a minute: %v", err)
		}
		response, err := answerWithin(5*time.Second, answer(time.Second), request)
		check.Must(t, err)
		time.Sleep(time.Hour) //nolint:forbidigo // in synctest
		body := make([]byte, 4)
		if _, err := response.Body.Read(body); err != nil || string(body) != "body" {
			t.Errorf("the body of an answer: %q, %v", body, err)
		}
		check.Must(t, response.Body.Close())
	})
}
