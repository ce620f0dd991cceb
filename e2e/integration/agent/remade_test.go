// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestNamespaceMadeAnew: an API server that has not yet seen that a namespace was made anew refuses writes there as if it were about to
// go. That is not the last word.
//
// spec: I1, E8
func TestNamespaceMadeAnew(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	a.start(t)
	var refused, seen atomic.Bool
	late := rest.CopyConfig(b.local)
	late.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/namespaces/"+k.Namespace+"/") && !seen.Load() {
				refused.Store(true)
				return terminating(r, k.Namespace)
			}
			return next.RoundTrip(r)
		})
	})
	b.startWith(t, func(o *agent.Options) { o.Member = late })
	eventually(t, func(ctx context.Context) error { // so that nothing else has it look again
		if !refused.Load() {
			return errors.New("nothing was refused yet")
		}
		return errors.Join(b.knowsLive(1), a.says(ctx, w, hubv1alpha1.PublicationComplete), b.says(ctx, w, hubv1alpha1.PublicationComplete))
	})
	w.settled(t)
	seen.Store(true)
	b.imported(t, k)
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
}

// terminating returns the answer of an API server for which a namespace is about to go.
func terminating(r *http.Request, namespace string) (*http.Response, error) {
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "", fmt.Errorf("namespace %s is being terminated", namespace))
	refusal.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"}}
	body, err := json.Marshal(refusal.ErrStatus)
	return &http.Response{
		Status: "403 Forbidden", StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, err
}
