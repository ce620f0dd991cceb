// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// patience is how long anything may take on a busy machine.
const patience = 90 * time.Second

// own is the hostile member's namespace on the hub.
const own = "member-mallory"

// What the honest export: web from b, by its agent; and what the hostile member may join, shared from elder and twin from
// mallory-eu, whose records the test writes.
var (
	web    = key{Namespace: "honest", Name: "web"}
	shared = key{Namespace: "shared", Name: "web"}
	twin   = key{Namespace: "shared", Name: "twin"}
)

type key = client.ObjectKey

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	m.Run()
}

// world is a hub with two honest members, of which b exports and c imports only, and a hostile one, of which nothing
// exists but its credentials on the hub.
type world struct {
	hub     *lab.Cluster
	hubKube client.Client
	b, c    *member
	mallory *rest.Config
	// elders are the settings of the shared service while elder alone exports it.
	elders settings
	// twins are the slices that c has of the service of mallory-eu, as it first had them.
	twins []discoveryv1.EndpointSlice
}

// addedRange is where c takes addresses for its Services from besides the range that its API server was started with.
const addedRange = "10.250.0.0/24"

// settings are what an import takes from the oldest export.
type settings struct {
	Import  mcsv1beta1.ServiceImportSpec
	Derived corev1.ServiceSpec
	Labels  map[string]string
}

// member is an honest one, with an agent.
type member struct {
	client.Client
	cluster  *lab.Cluster
	registry *prometheus.Registry
}

func newWorld(t *testing.T) *world {
	t.Helper()
	hub := membership.Hub()
	hub.Audit = true
	l := lab.Start(t, hub, lab.Member("b"), lab.Member("c"))
	w := &world{hub: l.Cluster("hub")}
	w.hubKube = membership.Client(t, w.hub)
	lab.Must(t, membership.InitHub(t.Context(), w.hub))
	lab.Must(t, membership.Client(t, l.Cluster("c")).Create(t.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "added"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{addedRange}},
	}))
	w.b, w.c = w.join(t, l.Cluster("b"), 1), w.join(t, l.Cluster("c"), 2)
	var err error
	w.mallory, err = membership.Admit(t.Context(), w.hub, manifests.MemberOptions{
		ClusterID: "mallory", PodCIDRs: membership.PodCIDRs(66),
		// Two mistakes of the hub's administrator: the ranges of another cluster's Services, and a reserved namespace.
		NodeCIDRs:   append(slices.Clone(w.c.cluster.ServiceCIDRs), netip.MustParsePrefix(addedRange)),
		Namespaces:  []string{"hostile", "shared", "nowhere", metav1.NamespaceSystem},
		MaxServices: 150, MaxEndpoints: 200,
	})
	lab.Must(t, err)
	w.restrictAudiences(t)
	for _, m := range []*member{w.b, w.c} {
		for _, name := range []string{"honest", "shared", "hostile", "member-b"} { // the last as on a cluster that is the hub as well
			lab.Must(t, m.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		}
	}
	w.exportWeb(t)
	w.exportShared(t)
	return w
}

// restrictAudiences does what init-hub does where the hub has ServiceAccounts already, and waits until it is in force.
func (w *world) restrictAudiences(t *testing.T) {
	t.Helper()
	audiences, err := install.New(w.hubKube).TokenAudiences(t.Context())
	lab.Must(t, err)
	objects, err := manifests.Hub(audiences...)
	lab.Must(t, err)
	for _, object := range objects {
		if object.GetName() == "tokens.hub.tombolo-mcs.io" {
			text, err := object.MarshalJSON()
			lab.Must(t, err)
			lab.Must(t, w.hub.Apply(t.Context(), text))
		}
	}
	a := w.attempt(t, "audiences", key{})
	eventually(t, func(ctx context.Context) error {
		if _, err := a.issued(ctx, elsewhere()); err == nil {
			return errors.New("tokens are issued for any audience")
		}
		_, named := a.issued(ctx, authenticationv1.TokenRequestSpec{Audiences: audiences})
		_, unnamed := a.issued(ctx, authenticationv1.TokenRequestSpec{}) // as agents do
		return errors.Join(named, unnamed)
	})
}

// join makes a cluster the n-th member and runs its agent until the test ends.
func (w *world) join(t *testing.T, cluster *lab.Cluster, n int) *member {
	t.Helper()
	hub, err := membership.Join(t.Context(), w.hub, cluster, manifests.MemberOptions{PodCIDRs: membership.PodCIDRs(n)})
	lab.Must(t, err)
	local, err := membership.InstallAgent(t.Context(), cluster)
	lab.Must(t, err)
	m := &member{Client: membership.Client(t, cluster), cluster: cluster, registry: prometheus.NewRegistry()}
	ctx, cancel := context.WithCancel(context.Background())
	said, ended := &output{}, make(chan error, 1)
	options := agent.Options{
		Member: local, Hub: hub, Election: agent.RunAlone, Workers: 4, HeartbeatInterval: 10 * time.Second, AbsentTimeout: time.Hour, MetricsAddress: "0",
		ProbeAddress: "0", Registry: m.registry, Log: funcr.New(said.line, funcr.Options{LogTimestamp: true}), Version: "test",
	}
	go func() { ended <- agent.Run(ctx, options) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("agent of %s: %v", cluster.Name, err)
		}
		if t.Failed() {
			t.Logf("agent of %s:\n%s", cluster.Name, said.tail())
		}
	})
	return m
}

// exportWeb has b export a service by its agent.
func (w *world) exportWeb(t *testing.T) {
	t.Helper()
	lab.Must(t, w.b.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)},
		}},
	}))
	lab.Must(t, w.b.Create(t.Context(), pods("10.1.0.1")))
	lab.Must(t, w.b.Create(t.Context(), &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}}))
	w.c.imported(t, web)
	w.b.imported(t, web)
	for _, m := range []*member{w.b, w.c} {
		m.serves(t, web, "10.1.0.1")
	}
	eventually(t, func(ctx context.Context) error { // the last that b's agent writes of it
		found := &mcsv1beta1.ServiceExport{}
		if err := w.b.Get(ctx, web, found); err != nil {
			return err
		}
		said := found.Status.Conditions
		if !meta.IsStatusConditionTrue(said, string(mcsv1beta1.ServiceExportConditionReady)) || !meta.IsStatusConditionFalse(said, string(mcsv1beta1.ServiceExportConditionConflict)) {
			return fmt.Errorf("ServiceExport %s is not ready yet: %+v", web, said)
		}
		return nil
	})
}

// pods returns the EndpointSlice of the Service in b.
func pods(addresses ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: web.Namespace, Name: "web-v4",
			Labels: map[string]string{discoveryv1.LabelServiceName: web.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return slice
}

// exportShared has others export services, an hour ago, that the hostile member may join.
func (w *world) exportShared(t *testing.T) {
	t.Helper()
	w.exportAs(t, "elder", 3, shared, "10.3.0.1")
	w.elders = w.c.settings(t, shared)
	w.exportAs(t, "mallory-eu", 4, twin, "10.4.0.1")
	w.twins = w.c.twins(t)
}

// exportAs makes a cluster, of which nothing exists, the n-th member and has it export a service with one endpoint.
func (w *world) exportAs(t *testing.T, id clusterset.ClusterID, n int, k key, address hubv1alpha1.IPAddress) {
	t.Helper()
	config, err := membership.Admit(t.Context(), w.hub, manifests.MemberOptions{
		ClusterID: id, PodCIDRs: membership.PodCIDRs(n), ClaimedAges: hubv1alpha1.ClaimedAgesTrusted,
	})
	lab.Must(t, err)
	exporter := w.as(t, config, string(id), k)
	service, endpoints := exporter.records()
	service.Namespace, endpoints.Namespace = id.HubNamespace(), id.HubNamespace()
	service.Spec.ExportedAt = metav1.NewTime(time.Now().Add(-time.Hour))
	service.Spec.Labels = map[string]hubv1alpha1.LabelValue{"team": hubv1alpha1.LabelValue(id)}
	endpoints.Spec.Groups[0].Addresses = []hubv1alpha1.IPAddress{address}
	lab.Must(t, exporter.write(t.Context(), service, endpoints))
	w.c.serves(t, k, string(address))
}

// twins returns the slices of the service of mallory-eu.
func (m *member) twins(t *testing.T) []discoveryv1.EndpointSlice {
	t.Helper()
	mirrored, err := m.mirrored(t.Context(), twin)
	lab.Must(t, err)
	return mirrored
}

// settings returns those of an import, once it is Ready.
func (m *member) settings(t *testing.T, k key) settings {
	t.Helper()
	found, derived := m.imported(t, k)
	return settings{found.Spec, derived.Spec, derived.Labels}
}

// attempt returns what the hostile member does something with.
func (w *world) attempt(t *testing.T, slug string, k key) *attempt {
	t.Helper()
	return w.as(t, w.mallory, slug, k)
}

// as returns a client with these credentials, whose requests have a name in the audit log.
func (w *world) as(t *testing.T, config *rest.Config, slug string, k key) *attempt {
	t.Helper()
	named := rest.CopyConfig(config)
	named.UserAgent, named.QPS, named.WarningHandler = agentOf(slug), -1, rest.NoWarnings{}
	c, err := client.New(named, client.Options{Scheme: w.hubKube.Scheme(), Mapper: w.hubKube.RESTMapper()})
	lab.Must(t, err)
	return &attempt{c, w, k}
}

// agentOf is how requests of an attempt name themselves.
func agentOf(slug string) string { return "hostile/" + slug }

// imported returns the import once it is Ready, and its derived Service.
func (m *member) imported(t *testing.T, k key) (*mcsv1beta1.ServiceImport, *corev1.Service) {
	t.Helper()
	found, derived := &mcsv1beta1.ServiceImport{}, &corev1.Service{}
	eventually(t, func(ctx context.Context) error {
		if err := m.Get(ctx, k, found); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(found.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
			return fmt.Errorf("ServiceImport %s is not ready: %+v", k, found.Status)
		}
		return m.Get(ctx, key{Namespace: k.Namespace, Name: found.Annotations["multicluster.kubernetes.io/derived-service"]}, derived)
	})
	return found, derived
}

// absent checks that there is no import of a service.
func (m *member) absent(t *testing.T, k key) {
	t.Helper()
	if err := m.Get(t.Context(), k, &mcsv1beta1.ServiceImport{}); err == nil || client.IgnoreNotFound(err) != nil {
		t.Errorf("%s is imported (%v)", k, err)
	}
}

// mirrored returns the slices of an import, in the order of their names.
func (m *member) mirrored(ctx context.Context, k key) ([]discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := m.List(ctx, list, client.InNamespace(k.Namespace), client.MatchingLabels{mcsv1beta1.LabelServiceName: k.Name})
	slices.SortFunc(list.Items, func(a, b discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, err
}

// serves waits until the slices of an import have these addresses and no others.
func (m *member) serves(t *testing.T, k key, want ...string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		mirrored, err := m.mirrored(ctx, k)
		if err != nil {
			return err
		}
		var got []string
		for _, slice := range mirrored {
			for _, endpoint := range slice.Endpoints {
				got = append(got, endpoint.Addresses...)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("endpoints of %s are %v, want %v", k, got, want)
		}
		return nil
	})
}

// complains returns nil once there is an Event about a refused record of a service that gives this reason.
func (m *member) complains(ctx context.Context, k key, reason string) error {
	list := &eventsv1.EventList{}
	if err := m.List(ctx, list, client.InNamespace(k.Namespace)); err != nil {
		return err
	}
	var said []string
	for _, event := range list.Items {
		if event.Reason != "RecordRefused" || event.Regarding.Name != k.Name {
			continue
		}
		if strings.Contains(event.Note, reason) {
			return nil
		}
		said = append(said, event.Note)
	}
	return fmt.Errorf("no Event says that %s is refused because %s, but %q", k, reason, said)
}

// refusedRecords returns the value of the metric.
func (m *member) refusedRecords(t *testing.T) int {
	t.Helper()
	families, err := m.registry.Gather()
	lab.Must(t, err)
	for _, family := range families {
		if family.GetName() == "tombolo_refused_records" {
			return int(family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	t.Fatal("there is no metric tombolo_refused_records")
	return 0
}

// belongings returns all that must not change while a hostile member acts: the honest service in both clusters, all that
// the two have in namespaces of Kubernetes' own, and what the hub holds of the honest, but for their heartbeats.
func (w *world) belongings(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	note := func(where string, c client.Client, list client.ObjectList, options ...client.ListOption) {
		lab.Must(t, c.List(t.Context(), list, options...))
		lab.Must(t, meta.EachListItem(list, func(o runtime.Object) error {
			content, err := json.Marshal(o)
			fmt.Fprintf(&text, "%s %T %s\n", where, o, content)
			return err
		}))
	}
	for _, m := range []*member{w.b, w.c} {
		for _, namespace := range []string{web.Namespace, metav1.NamespaceSystem, metav1.NamespacePublic, metav1.NamespaceDefault} {
			for _, list := range []client.ObjectList{
				&mcsv1beta1.ServiceImportList{}, &mcsv1beta1.ServiceExportList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{},
			} {
				note(m.cluster.Name, m, list, client.InNamespace(namespace))
			}
		}
	}
	note("hub", w.hubKube, &hubv1alpha1.MemberList{})
	for _, id := range []string{"b", "c", "elder", "mallory-eu"} {
		note("hub", w.hubKube, &hubv1alpha1.PublishedServiceList{}, client.InNamespace("member-"+id))
		note("hub", w.hubKube, &hubv1alpha1.PublishedEndpointsList{}, client.InNamespace("member-"+id))
	}
	return text.String()
}

// fenced checks that nothing has come into c from the hostile member but addresses of its own, and no metadata.
func (w *world) fenced(t *testing.T) {
	t.Helper()
	mirrored := &discoveryv1.EndpointSliceList{}
	lab.Must(t, w.c.List(t.Context(), mirrored, client.MatchingLabels{mcsv1beta1.LabelSourceCluster: "mallory"}))
	if len(mirrored.Items) == 0 {
		t.Error("nothing has come at all")
	}
	for _, slice := range mirrored.Items {
		for _, endpoint := range slice.Endpoints {
			for _, address := range endpoint.Addresses {
				ip := netip.MustParseAddr(address)
				if !slices.ContainsFunc(membership.PodCIDRs(66), func(p netip.Prefix) bool { return p.Contains(ip) }) {
					t.Errorf("%s/%s has the address %s", slice.Namespace, slice.Name, address)
				}
			}
		}
	}
	derived := &corev1.ServiceList{}
	lab.Must(t, w.c.List(t.Context(), derived, client.InNamespace("hostile")))
	for _, service := range derived.Items {
		if len(service.Labels) != 3 || len(service.Annotations) > 0 || len(service.Spec.ExternalIPs) > 0 || service.Spec.Type != corev1.ServiceTypeClusterIP {
			t.Errorf("Service %s has more than it should: %+v", service.Name, service)
		}
	}
}

// output collects an agent's log.
type output struct {
	mu    sync.Mutex
	lines []string
}

func (o *output) line(prefix, args string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, prefix+" "+args)
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines[max(0, len(o.lines)-60):], "\n")
}

// eventually ends the test unless check succeeds in time; then with check's last error.
func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	lab.Eventually(t, patience, check)
}
