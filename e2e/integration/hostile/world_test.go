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
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// own is the hostile member's namespace on the hub.
const own = "member-mallory"

// What the honest export: web from b, by its agent; and what the hostile member may join, shared from older and prefixed from
// mallory-eu, whose records the test writes.
var (
	web      = key{Namespace: "honest", Name: "web"}
	shared   = key{Namespace: "shared", Name: "web"}
	prefixed = key{Namespace: "shared", Name: "prefixed"}
)

type key = world.Key

// env is a hub with two honest members, of which b exports and c imports only, and a hostile one, of which only its
// credentials on the hub exist.
type env struct {
	*world.World
	b, c    *member
	mallory *rest.Config
	// olderSettings are the settings of the shared service while older alone exports it.
	olderSettings settings
	// prefixedSlices are the slices that c has of the service of mallory-eu, as it first had them.
	prefixedSlices []discoveryv1.EndpointSlice
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
type member struct{ *world.Member }

func newEnv(t *testing.T) *env {
	t.Helper()
	hub := membership.Hub()
	hub.Audit = true
	w := &env{World: world.New(t, hub, lab.Member("b"), lab.Member("c"))}
	w.b, w.c = &member{w.Members["b"]}, &member{w.Members["c"]}
	lab.Must(t, w.c.Create(t.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "added"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{addedRange}},
	}))
	for _, m := range []*member{w.b, w.c} {
		m.Start(t, func(o *agent.Options) { o.HeartbeatInterval, o.Namespace = 10*time.Second, manifests.AgentNamespace })
	}
	var err error
	w.mallory, err = membership.Admit(t.Context(), w.Hub, manifests.MemberOptions{
		ClusterID: "mallory", PodCIDRs: membership.PodCIDRs(66),
		// Two mistakes of the hub's administrator: the ranges of another cluster's Services, and a reserved namespace.
		NodeCIDRs:   append(slices.Clone(w.c.Cluster.ServiceCIDRs), netip.MustParsePrefix(addedRange)),
		Namespaces:  []string{"hostile", "shared", "nowhere", metav1.NamespaceSystem},
		MaxServices: 150, MaxEndpoints: 200,
	})
	lab.Must(t, err)
	w.ChangeMember(t, "mallory", func(s *hubv1alpha1.MemberSpec) { s.GatewayCIDRs = w.installGateways(t) })
	w.restrictAudiences(t)
	for _, name := range []string{"honest", "shared", "hostile", "member-b"} { // the last as in a cluster that is the hub, too
		world.CreateNamespace(t, name, w.b, w.c)
	}
	w.exportWeb(t)
	w.exportShared(t)
	return w
}

// restrictAudiences does what init-hub does if the hub has ServiceAccounts, and waits until it is in effect.
func (w *env) restrictAudiences(t *testing.T) {
	t.Helper()
	audiences, err := install.New(w.HubClient).TokenAudiences(t.Context())
	lab.Must(t, err)
	objects, err := manifests.Hub(audiences...)
	lab.Must(t, err)
	for _, object := range objects {
		if object.GetName() == "tokens.hub.tombolo-mcs.io" {
			lab.Must(t, membership.Apply(t.Context(), w.Hub, object))
		}
	}
	a := w.attempt(t, "audiences", key{})
	world.Eventually(t, func(ctx context.Context) error {
		if _, err := a.issued(ctx, elsewhere()); err == nil {
			return errors.New("tokens are issued for any audience")
		}
		_, named := a.issued(ctx, authenticationv1.TokenRequestSpec{Audiences: audiences})
		_, unnamed := a.issued(ctx, authenticationv1.TokenRequestSpec{}) // as agents do
		return errors.Join(named, unnamed)
	})
}

// exportWeb has b export a service by its agent, and waits for the last write of b's agent about it.
func (w *env) exportWeb(t *testing.T) {
	t.Helper()
	w.b.ExportWeb(t, web, "10.1.0.1")
	for _, m := range []*member{w.b, w.c} {
		m.Imported(t, web)
		m.serves(t, web, "10.1.0.1")
	}
	w.b.Condition(t, web, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, "Exported")
	w.b.Condition(t, web, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, string(mcsv1beta1.ServiceExportReasonNoConflicts))
}

// pods returns the EndpointSlice of web in b.
func pods(addresses ...string) *discoveryv1.EndpointSlice {
	return world.Slice(world.Service(web, world.Port("http", 80)), "v4", addresses...)
}

// exportShared has others export services, an hour ago, that the hostile member may join.
func (w *env) exportShared(t *testing.T) {
	t.Helper()
	w.exportAs(t, "older", 3, shared, "10.3.0.1")
	w.olderSettings = w.c.settings(t, shared)
	w.exportAs(t, "mallory-eu", 4, prefixed, "10.4.0.1")
	w.prefixedSlices = w.c.Slices(t, prefixed)
}

// exportAs makes a cluster, of which nothing exists, the n-th member and has it export a service with one endpoint.
func (w *env) exportAs(t *testing.T, id clusterset.ClusterID, n int, k key, address hubv1alpha1.IPAddress) {
	t.Helper()
	config, err := membership.Admit(t.Context(), w.Hub, manifests.MemberOptions{
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

// settings returns those of an import, once it is Ready.
func (m *member) settings(t *testing.T, k key) settings {
	t.Helper()
	found, derived := m.Imported(t, k)
	return settings{found.Spec, derived.Spec, derived.Labels}
}

// attempt returns what the hostile member does something with.
func (w *env) attempt(t *testing.T, slug string, k key) *attempt {
	t.Helper()
	return w.as(t, w.mallory, slug, k)
}

// as returns a client with these credentials, whose requests have a name in the audit log.
func (w *env) as(t *testing.T, config *rest.Config, slug string, k key) *attempt {
	t.Helper()
	named := rest.CopyConfig(config)
	named.UserAgent, named.QPS, named.WarningHandler = agentOf(slug), -1, rest.NoWarnings{}
	c, err := client.New(named, client.Options{Scheme: w.HubClient.Scheme(), Mapper: w.HubClient.RESTMapper()})
	lab.Must(t, err)
	return &attempt{c, w, k}
}

func agentOf(slug string) string { return "hostile/" + slug }

func (m *member) absent(t *testing.T, k key) {
	t.Helper()
	if err := m.Get(t.Context(), k, &mcsv1beta1.ServiceImport{}); err == nil || client.IgnoreNotFound(err) != nil {
		t.Errorf("%s is imported (%v)", k, err)
	}
}

// serves waits until the slices of an import have these addresses and no others.
func (m *member) serves(t *testing.T, k key, want ...string) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		mirrored, err := m.Mirrored(ctx, k)
		if err != nil {
			return err
		}
		if got := world.Addresses(mirrored...); !slices.Equal(got, want) {
			return fmt.Errorf("endpoints of %s are %v, want %v", k, got, want)
		}
		return nil
	})
}

// honestState returns all that must not change while a hostile member acts: the honest service in both clusters, all that
// the two have in namespaces of Kubernetes' own, and what the hub holds of the honest, but for their heartbeats.
func (w *env) honestState(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	note := func(where string, c client.Client, lists []client.ObjectList, options ...client.ListOption) {
		lab.Must(t, world.Each(t.Context(), c, lists, func(o client.Object) error {
			content, err := json.Marshal(o)
			fmt.Fprintf(&text, "%s %T %s\n", where, o, content)
			return err
		}, options...))
	}
	for _, m := range []*member{w.b, w.c} {
		for _, namespace := range []string{web.Namespace, metav1.NamespaceSystem, metav1.NamespacePublic, metav1.NamespaceDefault} {
			note(m.Cluster.Name, m, append(world.OfImports(), &mcsv1beta1.ServiceExportList{}), client.InNamespace(namespace))
		}
	}
	note("hub", w.HubClient, []client.ObjectList{&hubv1alpha1.MemberList{}})
	for _, id := range []string{"b", "c", "older", "mallory-eu"} {
		records := []client.ObjectList{&hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{}}
		note("hub", w.HubClient, records, client.InNamespace("member-"+id))
	}
	return text.String()
}

// onlyOwnAddresses checks that nothing has come into c from the hostile member but addresses of its own, and no metadata.
func (w *env) onlyOwnAddresses(t *testing.T) {
	t.Helper()
	mirrored := world.List(t, w.c, &discoveryv1.EndpointSliceList{}, client.MatchingLabels{mcsv1beta1.LabelSourceCluster: "mallory"})
	if len(mirrored.Items) == 0 {
		t.Error("nothing has come at all")
	}
	for _, slice := range mirrored.Items {
		for _, address := range world.Addresses(slice) {
			ip := netip.MustParseAddr(address)
			if !slices.ContainsFunc(membership.PodCIDRs(66), func(p netip.Prefix) bool { return p.Contains(ip) }) {
				t.Errorf("%s/%s has the address %s", slice.Namespace, slice.Name, address)
			}
		}
	}
	for _, service := range world.List(t, w.c, &corev1.ServiceList{}, client.InNamespace("hostile")).Items {
		if len(service.Labels) != 3 || len(service.Annotations) > 0 || len(service.Spec.ExternalIPs) > 0 || service.Spec.Type != corev1.ServiceTypeClusterIP {
			t.Errorf("Service %s has more than it should: %+v", service.Name, service)
		}
	}
}
