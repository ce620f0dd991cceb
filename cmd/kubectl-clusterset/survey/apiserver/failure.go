// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver sends the requests of a survey: with time limits, with the clock of the API server, and with a next step for each failure.
package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
)

// answerTimeout limits the time until an API server begins to answer a request. It applies to the discovery of kinds too, which has no
// context.
const answerTimeout = 10 * time.Second

// NoAnswerError is the error of a request that an API server has not answered in time.
type NoAnswerError struct{ Limit time.Duration }

// Error states the limit.
func (e NoAnswerError) Error() string { return fmt.Sprintf("it has not answered within %s", e.Limit) }

// Config returns a copy of a configuration for the requests of a survey: they fail if the API server does not begin to answer in
// time, and have no client-side rate limits, because a user waits, and the API server has its own limits.
func Config(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, -1
	config.UserAgent = "kubectl-clusterset"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(request *http.Request) (*http.Response, error) { return answerWithin(answerTimeout, next, request) })
	})
	return config
}

// body is the body of an answer.
type body struct {
	io.ReadCloser
	release func()
}

// Close closes the body, and releases the context of the request.
func (b body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// answerWithin sends a request that is canceled unless its answer begins within the limit. The body of the answer has no limit.
func answerWithin(limit time.Duration, next http.RoundTripper, request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(limit, func() { cancel(NoAnswerError{limit}) })
	response, err := next.RoundTrip(request.WithContext(ctx))
	timer.Stop()
	late := NoAnswerError{}
	switch {
	case errors.As(context.Cause(ctx), &late):
		if response != nil {
			_ = response.Body.Close() // the request has failed already
		}
		return nil, late
	case err != nil:
		cancel(nil)
		return nil, err
	case response.StatusCode != http.StatusSwitchingProtocols: // otherwise, the body is the connection
		response.Body = body{response.Body, func() { cancel(nil) }}
	}
	return response, nil
}

// CompleteError is an error whose message says what to do.
type CompleteError string

// Error returns the message.
func (e CompleteError) Error() string { return string(e) }

// Failure is why an API server could not be read, and what to do about it.
type Failure struct {
	// Message does not name the API server.
	Message string
	Next    string
}

// FailureOf explains the error of a request to the API server of a context of the kubeconfig, which may be empty.
func FailureOf(err error, kubeContext string) Failure {
	kubectl := "kubectl" + phrase.ContextFlag(kubeContext)
	result := Failure{Message: messageOf(err)}
	var complete CompleteError
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var response net.Error
	switch {
	case errors.As(err, &complete):
		return result
	case IsNotServed(err):
		result.Next = "install the kinds and versions that this command reads: kubectl clusterset upgrade" + phrase.ContextFlag(kubeContext)
	case apierrors.IsUnauthorized(err):
		result.Message = "it does not accept your credentials: " + result.Message
		result.Next = "renew the credentials of the context in the kubeconfig, and check them: " + kubectl + " auth whoami"
	case apierrors.IsForbidden(err):
		result.Next = "see what you may read there: " + kubectl + " auth can-i --list"
	case errors.As(err, &certificate), errors.As(err, &authority):
		result.Next = "correct the certificate authority of the context's cluster in the kubeconfig, or its URL"
	case errors.As(err, &NoAnswerError{}), errors.Is(err, context.DeadlineExceeded), errors.As(err, &response) && response.Timeout():
		result.Next = "check that its API server runs, and that no firewall or VPN drops the connection: " + kubectl + " get --raw /readyz"
	default:
		result.Next = "check that its API server runs at the URL in the kubeconfig: " + kubectl + " get --raw /readyz"
	}
	return result
}

// messageOf returns the message of an error without the URL of the request.
func messageOf(err error) string {
	var late NoAnswerError
	if errors.As(err, &late) {
		return late.Error()
	}
	if IsNotServed(err) {
		return notServed(err)
	}
	var request *url.Error
	var answer apierrors.APIStatus
	switch {
	case errors.As(err, &answer) || !errors.As(err, &request):
		return err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it has not answered in time"
	}
	return request.Err.Error()
}

// IsNotServed reports whether an API server does not serve a kind in the version that is read.
func IsNotServed(err error) bool {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return apierrors.IsNotFound(err) && (answer.Status().Details == nil || answer.Status().Details.Name == "")
	}
	return meta.IsNoMatchError(err)
}

// notServed returns the message about a kind that is not served: what was tried, without the text of the API server or of its discovery.
func notServed(err error) string {
	var discovery *apiutil.ErrResourceDiscoveryFailed
	var kind *meta.NoKindMatchError
	var resource *meta.NoResourceMatchError
	var answer apierrors.APIStatus
	cause := ""
	switch {
	case errors.As(err, &answer):
		cause = answer.Status().Message
	case errors.As(err, &discovery):
		cause = discovery.Error()
	case errors.As(err, &kind):
		cause = kind.Error()
	case errors.As(err, &resource):
		cause = resource.Error()
	}
	return strings.TrimSuffix(err.Error(), cause) + "it does not serve this kind in the version that is read"
}

// IsNotFound reports whether an object, or its whole kind, does not exist.
func IsNotFound(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
