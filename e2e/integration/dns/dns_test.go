// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dns_test runs the CoreDNS plugin clusterset against a real API server and asks it over the wire.
package dns_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	_ "github.com/coredns/coredns/plugin/autopath"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/dns64"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/metadata"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/rewrite"
	_ "github.com/coredns/coredns/plugin/template"
	_ "github.com/coredns/coredns/plugin/transfer"
	_ "github.com/coredns/coredns/plugin/view"
	_ "github.com/coredns/coredns/plugin/whoami"

	_ "github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

const patience = 60 * time.Second

// server is a CoreDNS in this process.
type server struct{ instance *caddy.Instance }

// serverBlock returns a Corefile with one block, for all zones, on a port that is free.
func serverBlock(plugins string) string {
	return ".:0 {\nbind 127.0.0.1\nerrors\n" + plugins + "\nwhoami\n}\n"
}

// startServer starts CoreDNS in this process, for tests that look at it from inside.
func startServer(t *testing.T, plugins string) *server {
	t.Helper()
	i, err := caddyStart(serverBlock(plugins))
	if err != nil {
		t.Fatal(err)
	}
	s := &server{i}
	t.Cleanup(func() {
		// Stop ends the servers alone, and not what they read from the cluster.
		if err := errors.Join(append(s.instance.ShutdownCallbacks(), s.instance.Stop())...); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *server) ask(question, network string) (string, *dns.Msg) {
	l := s.instance.Servers()[0]
	if network == "udp" {
		return persist(question, network, l.LocalAddr().String())
	}
	return persist(question, network, l.Addr().String())
}

// asker is a CoreDNS, wherever it runs.
type asker interface {
	// ask sends one question, "<name> <type>", until there is a reply, and returns that as text, the code and the answer in
	// order, and itself.
	ask(question, network string) (string, *dns.Msg)
}

// persist asks until there is a reply, whatever it says: on a busy machine one may take longer than exchange waits.
func persist(question, network, address string) (text string, reply *dns.Msg) {
	_ = wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		text, reply = exchange(question, network, address)
		return reply.Response, nil
	})
	return text, reply // without a reply the text is the last error
}

// exchange asks once.
func exchange(question, network, address string) (string, *dns.Msg) {
	name, typ, _ := strings.Cut(question, " ")
	m := new(dns.Msg)
	m.SetQuestion(name, dns.StringToType[typ])
	c := &dns.Client{Net: network, Timeout: time.Second}
	reply, _, err := c.Exchange(m, address)
	if err != nil {
		return err.Error(), new(dns.Msg)
	}
	lines := make([]string, 0, len(reply.Answer))
	for _, r := range reply.Answer {
		lines = append(lines, strings.TrimPrefix(r.String(), r.Header().String()))
	}
	slices.Sort(lines)
	return strings.Join(append([]string{dns.RcodeToString[reply.Rcode]}, lines...), " "), reply
}

// await asks until the reply is as wanted, over UDP and TCP.
func await(t *testing.T, s asker, question, want string) {
	t.Helper()
	for _, network := range []string{"udp", "tcp"} {
		var got string
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
			got, _ = s.ask(question, network)
			return got == want, nil
		})
		if err != nil {
			t.Fatalf("%s over %s: %s, want %s", question, network, got, want)
		}
	}
}

// world is an API server and a client for it.
type world struct {
	cluster *lab.Cluster
	client  client.Client
}

func (w world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func start(t *testing.T) world {
	t.Helper()
	cluster := lab.Start(t, lab.Member("a")).Cluster("a")
	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{clientscheme.AddToScheme, v1beta1.Install, v1alpha1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := cluster.Client(scheme)
	if err != nil {
		t.Fatal(err)
	}
	return world{cluster, c}
}

// kubeconfig returns that of a service account which may do what the plugin's README says, and nothing else.
func (w world) kubeconfig(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../coredns-plugin/clusterset/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "~~~ yaml\n")
	role, _, found := strings.Cut(rest, "~~~")
	if !found {
		t.Fatal("no role in the README")
	}
	if err := w.cluster.Apply(t.Context(), []byte(role)); err != nil {
		t.Fatal(err)
	}
	w.create(t,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "coredns"}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "coredns"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "coredns-clusterset"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "coredns"}},
		})
	path, err := w.cluster.ServiceAccountKubeconfig(t.Context(), "default", "coredns")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCluster asks for a few services of one cluster. Its parts share it, and each finds it as if it were new.
func TestCluster(t *testing.T) { //nolint:tparallel // one after the other
	t.Parallel()
	w := start(t)
	if err := membership.InstallCRDs(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string]func(*testing.T){
		"Clients":              w.testClients,
		"Chain":                w.testChain,
		"TransfersAreAnswered": w.testTransfersAreAnswered,
		"ClusterLocal":         w.testClusterLocal,
		"MirroredTwice":        w.testMirroredTwice,
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { w.clear(t) })
			part(t)
		})
	}
}

// clear deletes the services that a part has left behind.
func (w world) clear(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	butTheAPI := client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("metadata.name", "kubernetes")}
	for _, kind := range []client.Object{&v1beta1.ServiceImport{}, &discoveryv1.EndpointSlice{}, &corev1.Service{}} {
		if err := w.client.DeleteAllOf(ctx, kind, client.InNamespace("default"), butTheAPI); err != nil {
			t.Error(err)
		}
	}
}

// TestLife follows one server through the life of its cluster.
//
// spec: N2, N3, N8
func TestLife(t *testing.T) {
	w := start(t)
	t.Run("WithoutCRD", w.testWithoutCRD)
	s := startServer(t, "transfer {\nto *\n}\nclusterset clusterset.local {\nkubeconfig "+w.kubeconfig(t)+"\nstartup_timeout 1m\n}")
	await(t, s, "web.default.svc.clusterset.local. A", "SERVFAIL")
	if got, _ := s.ask("example.org. A", "udp"); got != "NOERROR" {
		t.Errorf("without the CRD, another zone: %s", got)
	}

	if err := membership.InstallCRDs(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	await(t, s, "web.default.svc.clusterset.local. A", "NXDOMAIN")
	w.create(t, imported("web", v1beta1.ClusterSetIP, "10.96.0.1"), imported("db", v1beta1.Headless), endpoints("db-east-1", "10.1.0.1", "10.1.0.2"))
	await(t, s, "web.default.svc.clusterset.local. A", "NOERROR 10.96.0.1")
	await(t, s, "_http._tcp.web.default.svc.clusterset.local. SRV", "NOERROR 0 100 80 web.default.svc.clusterset.local.")
	await(t, s, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1 10.1.0.2")
	await(t, s, "10-1-0-1.east.db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1")
	await(t, s, "east.db.default.svc.clusterset.local. A", "NOERROR")

	if err := w.client.Delete(t.Context(), endpoints("db-east-1")); err != nil {
		t.Fatal(err)
	}
	await(t, s, "db.default.svc.clusterset.local. A", "NXDOMAIN")

	w.restart(t, s)
	s.reload(t)
	s.transfer(t)
	w.downgrade(t, s)
	w.stumble(t)
}

// restart stops the API server and starts it again: what was last seen stays served, and what changes is seen.
func (w world) restart(t *testing.T, s *server) {
	t.Helper()
	api := w.cluster.Processes()[slices.IndexFunc(w.cluster.Processes(), func(p *lab.Process) bool {
		return strings.Contains(p.String(), "apiserver")
	})]
	if err := api.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if got, _ := s.ask("web.default.svc.clusterset.local. A", "udp"); got != "NOERROR 10.96.0.1" {
			t.Fatalf("without API server: %s", got)
		}
	}
	if err := api.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.create(t, endpoints("db-east-2", "10.1.0.3"))
	await(t, s, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.3")
}

// reload replaces the server by a new one with the same Corefile, as plugin reload does. The serial number does not go
// back, and nothing of the old servers is left running.
func (s *server) reload(t *testing.T) {
	t.Helper()
	_, reply := s.ask("clusterset.local. SOA", "udp")
	before := runtime.NumGoroutine()
	for range 4 {
		i, err := s.instance.Restart(s.instance.Caddyfile())
		if err != nil {
			t.Fatal(err)
		}
		s.instance = i
		if got, _ := s.ask("web.default.svc.clusterset.local. A", "udp"); got != "NOERROR 10.96.0.1" {
			t.Errorf("after a reload: %s", got)
		}
		_, again := s.ask("clusterset.local. SOA", "udp")
		if int32(again.Answer[0].(*dns.SOA).Serial-reply.Answer[0].(*dns.SOA).Serial) < 0 {
			t.Errorf("after a reload the serial number is %v, before it was %v", again.Answer[0], reply.Answer[0])
		}
		reply = again
	}
	// A server that leaks leaves at least its publisher and two watches behind. Connections take a moment to close.
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return runtime.NumGoroutine() < before+3*4, nil
	})
	if err != nil {
		buffer := make([]byte, 1<<20)
		t.Errorf("%d goroutines, before %d:\n%s", runtime.NumGoroutine(), before, buffer[:runtime.Stack(buffer, true)])
	}
}

// patientTransfer waits for a server longer than a user would.
func patientTransfer() *dns.Transfer {
	return &dns.Transfer{DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience}
}

// transfer fetches the zone.
func (s *server) transfer(t *testing.T) {
	t.Helper()
	m := new(dns.Msg)
	m.SetAxfr("clusterset.local.")
	envelopes, err := patientTransfer().In(m, s.instance.Servers()[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for e := range envelopes {
		if e.Error != nil {
			t.Fatal(e.Error)
		}
		records += len(e.RR)
	}
	// SOA twice, NS, its address, dns-version; A and two SRV of web; A, A of the host and two SRV of db
	if records != 5+3+4 {
		t.Errorf("%d records", records)
	}
}

// downgrade makes the API server stop serving v1beta1: the plugin goes on with v1alpha1.
func (w world) downgrade(t *testing.T, s *server) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "serviceimports.multicluster.x-k8s.io"}, crd); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		if version := v.(map[string]any); version["name"] == "v1beta1" {
			version["served"] = false
		}
	}
	if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	old := &v1alpha1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "old"},
		Spec:       v1alpha1.ServiceImportSpec{Type: v1alpha1.ClusterSetIP, IPs: []string{"10.96.0.9"}, Ports: []v1alpha1.ServicePort{}},
	}
	w.create(t, old)
	await(t, s, "old.default.svc.clusterset.local. A", "NOERROR 10.96.0.9")
	await(t, s, "web.default.svc.clusterset.local. A", "NOERROR 10.96.0.1")
}

func imported(name string, kind v1beta1.ServiceImportType, ips ...string) *v1beta1.ServiceImport {
	return &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1beta1.ServiceImportSpec{
			Type: kind, IPs: ips, Ports: []v1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
}

func endpoints(name string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name,
			Labels: map[string]string{v1beta1.LabelServiceName: "db", v1beta1.LabelSourceCluster: "east"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](80)}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}
