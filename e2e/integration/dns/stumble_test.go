// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
)

// proxy stands before an API server. While it has lost that, it answers 404 to everything, as load balancers do.
type proxy struct {
	*httptest.Server
	lost    atomic.Bool
	gate    sync.RWMutex             // requests wait while it is locked
	refused map[string]*atomic.Int32 // requests, by resource
}

func (w world) proxy(t *testing.T) *proxy {
	t.Helper()
	config := w.cluster.Config()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	behind := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, ErrorLog: log.New(t.Output(), "", 0),
	}
	p := &proxy{refused: map[string]*atomic.Int32{"serviceimports": {}, "endpointslices": {}}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.gate.RLock()
		p.gate.RUnlock() //nolint:gocritic,staticcheck // it is only waited for
		if !p.lost.Load() {
			behind.ServeHTTP(rw, r)
			return
		}
		http.NotFound(rw, r)
		if count := p.refused[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]; count != nil {
			count.Add(1)
		}
	}))
	t.Cleanup(func() {
		p.lost.Store(true) // whoever comes again does not stay
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// stumble lets a proxy before the API server say for a moment that neither ServiceImports nor EndpointSlices exist: what was
// last seen stays served, and what changes is seen.
func (w world) stumble(t *testing.T) {
	t.Helper()
	p := w.proxy(t)
	s := startServer(t, "clusterset clusterset.local {\nendpoint "+p.URL+"\nstartup_timeout 1m\n}")
	await(t, s, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.3")
	p.lost.Store(true)
	p.CloseClientConnections()
	for resource, refused := range p.refused {
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, patience, true, func(context.Context) (bool, error) {
			return refused.Load() > 0, nil
		})
		if err != nil {
			t.Fatalf("%s are not asked for", resource)
		}
	}
	if got, _ := s.ask("db.default.svc.clusterset.local. A", "udp"); got != "NOERROR 10.1.0.3" {
		t.Errorf("while the API server cannot be found: %s", got)
	}
	p.lost.Store(false)
	w.create(t, endpoints("db-east-3", "10.1.0.4"), &v1alpha1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "found"},
		Spec:       v1alpha1.ServiceImportSpec{Type: v1alpha1.ClusterSetIP, IPs: []string{"10.96.0.10"}, Ports: []v1alpha1.ServicePort{}},
	})
	await(t, s, "found.default.svc.clusterset.local. A", "NOERROR 10.96.0.10")
	await(t, s, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.3 10.1.0.4")
}
