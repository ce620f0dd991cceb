// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// TestLifecycle follows one DNS server: before the CRD is installed, after that, while the API server is down, and when it no
// longer serves v1beta1.
//
// spec: N2, N3, N8
func TestLifecycle(t *testing.T) {
	c := startCluster(t)
	c.testWithoutCRD(t)
	s := startCoreDNS(t, clustersetStanza("kubeconfig "+c.documentedRights(t)))
	s.await(t, "web.default.svc.clusterset.local. A", "SERVFAIL")
	if got, _ := s.ask(t, "example.org. A", "udp"); got != "NOERROR" {
		t.Errorf("without the CRD, another zone: %s", got)
	}

	c.installCRDs(t)
	s.await(t, "web.default.svc.clusterset.local. A", "NXDOMAIN")
	c.create(t, clusterSetIPImport("web", "10.96.0.1"), headlessImport("db"), endpoints("db", "1", "10.1.0.1"))
	s.await(t, "web.default.svc.clusterset.local. A", "NOERROR 10.96.0.1")
	s.await(t, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1")
	c.delete(t, endpoints("db", "1"))
	s.await(t, "db.default.svc.clusterset.local. A", "NXDOMAIN")

	lab.Must(t, c.APIServer.Stop(t.Context()))
	for range 100 {
		if got, _ := s.ask(t, "web.default.svc.clusterset.local. A", "udp"); got != "NOERROR 10.96.0.1" {
			t.Fatalf("while the API server is down: %s", got)
		}
	}
	lab.Must(t, c.APIServer.Start(t.Context()))
	c.create(t, endpoints("db", "2", "10.1.0.3"))
	s.await(t, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.3")
	c.testNotFound(t)

	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName("serviceimports.multicluster.x-k8s.io")
	const stopServing = `[{"op":"test","path":"/spec/versions/1/name","value":"v1beta1"},{"op":"replace","path":"/spec/versions/1/served","value":false}]`
	lab.Must(t, c.client.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(stopServing))))
	lab.Must(t, c.Apply(t.Context(), []byte(`{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport,
metadata: {namespace: default, name: old}, spec: {type: ClusterSetIP, ips: [10.96.0.9], ports: []}}`)))
	s.await(t, "old.default.svc.clusterset.local. A", "NOERROR 10.96.0.9")
	s.await(t, "web.default.svc.clusterset.local. A", "NOERROR 10.96.0.1")
}

// testWithoutCRD: if the CRD is not installed, queries for the names of the cluster itself are not affected. This is a
// difference from CoreDNS' own plugin that the README names.
func (c cluster) testWithoutCRD(t *testing.T) {
	t.Helper()
	api := &corev1.Service{}
	lab.Eventually(t, waitLimit, func(ctx context.Context) error { // the API server creates it soon after its start
		return c.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, api)
	})
	for plugins, want := range map[string]string{
		c.clusterset() + "\n" + c.kubernetes("cluster.local"):                                                 "NXDOMAIN",
		c.kubernetes("cluster.local clusterset.local", "multicluster clusterset.local", "startup_timeout 1s"): "SERVFAIL",
	} {
		s := startCoreDNS(t, plugins)
		s.await(t, "kubernetes.default.svc.cluster.local. A", "NOERROR "+api.Spec.ClusterIP)
		if got, _ := s.ask(t, "none.default.svc.cluster.local. A", "tcp"); got != want {
			t.Errorf("%s, want %s, with\n%s", got, want, plugins)
		}
	}
}

// testNotFound: a proxy before the API server replies for a moment that neither ServiceImports nor EndpointSlices exist, as load
// balancers do. The last state is served meanwhile, and later changes are followed.
func (c cluster) testNotFound(t *testing.T) {
	t.Helper()
	p := c.startProxy(t)
	s := startCoreDNS(t, clustersetStanza("endpoint "+p.URL))
	s.await(t, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.3")
	p.notFound.Store(true)
	p.CloseClientConnections()
	lab.Eventually(t, waitLimit, func(context.Context) error {
		if p.imports.Load() == 0 || p.slices.Load() == 0 {
			return errors.New("not both kinds have been requested")
		}
		return nil
	})
	if got, _ := s.ask(t, "db.default.svc.clusterset.local. A", "udp"); got != "NOERROR 10.1.0.3" {
		t.Errorf("after a 404: %s", got)
	}
	p.notFound.Store(false)
	c.create(t, clusterSetIPImport("found", "10.96.0.10"), endpoints("db", "3", "10.1.0.4"))
	s.await(t, "found.default.svc.clusterset.local. A", "NOERROR 10.96.0.10")
	s.await(t, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.3 10.1.0.4")
}

type proxy struct {
	*httptest.Server
	gate            sync.RWMutex // requests wait while it is locked
	notFound        atomic.Bool  // reply 404 to every request
	imports, slices atomic.Int32 // requests that got a 404
}

func (c cluster) startProxy(t *testing.T) *proxy {
	t.Helper()
	transport, err := rest.TransportFor(c.Config())
	lab.Must(t, err)
	target, err := url.Parse(c.Config().Host)
	lab.Must(t, err)
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, ErrorLog: log.New(t.Output(), "", 0),
	}
	p := new(proxy)
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.gate.RLock()
		p.gate.RUnlock() //nolint:gocritic,staticcheck // only to wait
		if !p.notFound.Load() {
			forward.ServeHTTP(rw, r)
			return
		}
		http.NotFound(rw, r)
		switch {
		case strings.HasSuffix(r.URL.Path, "/serviceimports"):
			p.imports.Add(1)
		case strings.HasSuffix(r.URL.Path, "/endpointslices"):
			p.slices.Add(1)
		}
	}))
	t.Cleanup(func() {
		p.notFound.Store(true) // so that no new watch keeps a connection open
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// TestRestored: the cluster is restored from a backup while CoreDNS runs. CoreDNS lists again, serves the content of the backup,
// and follows later changes.
//
// spec: N2, N3
func TestRestored(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.installCRDs(t)
	p := c.startProxy(t)
	s := startCoreDNS(t, clustersetStanza("endpoint "+p.URL))
	old := clusterSetIPImport("old", "10.96.0.1")
	c.create(t, old, headlessImport("db"), endpoints("db", "1", "10.1.0.1"))
	s.await(t, "old.default.svc.clusterset.local. A", "NOERROR 10.96.0.1")
	backup := filepath.Join(t.TempDir(), "backup")
	lab.Must(t, c.Backup(t.Context(), backup))

	c.delete(t, old)
	// The resource version of the backup must be lower even after the writes of an API server that starts.
	changes := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "changes"}}
	c.create(t, changes)
	for i := range 200 {
		changes.Data = map[string]string{"n": strconv.Itoa(i)}
		lab.Must(t, c.client.Update(t.Context(), changes))
	}
	c.create(t, clusterSetIPImport("later", "10.96.0.2"), endpoints("db", "2", "10.1.0.2"))
	s.await(t, "old.default.svc.clusterset.local. A", "NXDOMAIN")
	s.await(t, "later.default.svc.clusterset.local. A", "NOERROR 10.96.0.2")
	s.await(t, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1 10.1.0.2")
	// A starting API server refuses some requests, and client-go lists after that anyway. So CoreDNS must wait for the restored one.
	p.gate.Lock()
	err := c.Restore(t.Context(), backup)
	p.gate.Unlock()
	lab.Must(t, err)

	s.await(t, "old.default.svc.clusterset.local. A", "NOERROR 10.96.0.1")
	s.await(t, "later.default.svc.clusterset.local. A", "NXDOMAIN")
	s.await(t, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1")
	c.create(t, clusterSetIPImport("new", "10.96.0.3"), endpoints("db", "3", "10.1.0.3"))
	s.await(t, "new.default.svc.clusterset.local. A", "NOERROR 10.96.0.3")
	s.await(t, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1 10.1.0.3")
}

// testReload: CoreDNS reloads its Corefile while it is queried without pause. Each reply is complete, never one of a server
// that has read only a part. The serial number does not decrease, and nothing of the old servers keeps running.
//
// spec: N8
func (c cluster) testReload(t *testing.T) {
	const reloads = 4
	c.create(t, clusterSetIPImport("web", "10.96.0.1"), headlessImport("db"), endpoints("db", "1", "10.1.0.1", "10.1.0.2"))
	s := startCoreDNS(t, "cache\nloadbalance\n"+c.clusterset())
	wanted := map[string]string{
		"web.default.svc.clusterset.local. A":                "NOERROR 10.96.0.1",
		"db.default.svc.clusterset.local. A":                 "NOERROR 10.1.0.1 10.1.0.2",
		"east.db.default.svc.clusterset.local. A":            "NOERROR",
		"10-1-0-2.east.db.default.svc.clusterset.local. A":   "NOERROR 10.1.0.2",
		"_http._tcp.web.default.svc.clusterset.local. SRV":   "NOERROR 0 100 80 web.default.svc.clusterset.local.",
		"none.default.svc.clusterset.local. A":               "NXDOMAIN",
		"x.10-1-0-2.east.db.default.svc.clusterset.local. A": "NXDOMAIN",
	}
	for query, want := range wanted {
		s.await(t, query, want)
	}
	before, serial := s.goroutines(t), s.serial(t)
	var replies, lost atomic.Int64
	var clients sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for _, network := range []string{"udp", "udp", "udp", "tcp"} {
		clients.Go(func() {
			for ctx.Err() == nil {
				for query, want := range wanted {
					got, _, err := s.askOnce(query, network)
					if err != nil {
						lost.Add(1) // clients repeat the query
						continue
					}
					replies.Add(1)
					if got != want {
						t.Errorf("during a reload, %s over %s: %s, want %s", query, network, got, want)
					}
				}
			}
		})
	}
	for i := range reloads {
		received := replies.Load()
		s.command(t, reload)
		c.create(t, clusterSetIPImport(fmt.Sprintf("more-%d", i), "10.96.1.1"))
		s.await(t, fmt.Sprintf("more-%d.default.svc.clusterset.local. A", i), "NOERROR 10.96.1.1")
		now := s.serial(t)
		if int32(now-serial) < 0 {
			t.Errorf("after reload %d the serial number is %d, before it was %d", i, now, serial)
		}
		serial = now
		lab.Eventually(t, waitLimit, func(context.Context) error {
			if n := replies.Load() - received; n < 200 {
				return fmt.Errorf("after reload %d there are %d replies", i, n)
			}
			return nil
		})
	}
	stop()
	clients.Wait()
	t.Logf("%d replies, %d queries without", replies.Load(), lost.Load())
	if lost.Load() > replies.Load() {
		t.Errorf("%d queries got no reply, %d did", lost.Load(), replies.Load())
	}
	lab.Eventually(t, waitLimit, func(context.Context) error {
		if n := s.goroutines(t); n >= before+3*reloads { // a server has a publisher and two watches
			return fmt.Errorf("%d goroutines, before %d", n, before)
		}
		return nil
	})
}

func (c *coreDNS) serial(t *testing.T) uint32 {
	t.Helper()
	_, reply := c.ask(t, zone+" SOA", "udp")
	return reply.Answer[0].(*dns.SOA).Serial
}
