// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var start = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// mirrored is a slice of gateways for a service of cluster west that was created some seconds after the start.
func mirrored(service string, age int, listen string) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: service, CreationTimestamp: metav1.NewTime(start.Add(time.Duration(age) * time.Second)),
		Labels: map[string]string{
			discoveryv1.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: service, mcsv1beta1.LabelSourceCluster: "west",
			clusterset.LabelGateway: "true",
		},
		Annotations: map[string]string{clusterset.AnnotationGatewayPorts: listen},
	}}
}

// spec: G2
func TestListening(t *testing.T) {
	t.Parallel()
	foreign, otherFamily := mirrored("web", 0, "80=10000"), mirrored("web", 1, "80=10000")
	otherFamily.Name = "web-6"
	foreign.Labels[discoveryv1.LabelManagedBy] = "another"
	for name, test := range map[string]struct {
		slices []discoveryv1.EndpointSlice
		want   map[int32]string
		errs   []string
	}{
		"nothing":   {want: map[int32]string{}},
		"two ports": {slices: []discoveryv1.EndpointSlice{mirrored("web", 0, "80=10000,443=10001")}, want: map[int32]string{10000: "shop/web:80", 10001: "shop/web:443"}},
		"two slices of a service, one in each family": {
			slices: []discoveryv1.EndpointSlice{mirrored("web", 0, "80=10000"), otherFamily},
			want:   map[int32]string{10000: "shop/web:80"},
		},
		"a port that two services claim": {
			slices: []discoveryv1.EndpointSlice{mirrored("late", 1, "80=10000"), mirrored("web", 0, "80=10000")},
			want:   map[int32]string{10000: "shop/web:80"},
			errs:   []string{"EndpointSlice shop/late has port 10000, which EndpointSlice shop/web had before"},
		},
		"a port that a slice has twice": {
			slices: []discoveryv1.EndpointSlice{mirrored("web", 0, "80=10000,443=10000")}, want: map[int32]string{10000: "shop/web:80"},
			errs: []string{"EndpointSlice shop/web has port 10000, which EndpointSlice shop/web had before"},
		},
		"a port of another program": {
			slices: []discoveryv1.EndpointSlice{mirrored("web", 0, "80=8443")}, want: map[int32]string{},
			errs: []string{"EndpointSlice shop/web has port 8443, which is none of gateways"},
		},
		"not of the agent": {
			slices: []discoveryv1.EndpointSlice{foreign}, want: map[int32]string{},
			errs: []string{"EndpointSlice shop/web is not as the agent has written it: its labels are not those of a slice of gateways"},
		},
		"edited": {
			slices: []discoveryv1.EndpointSlice{mirrored("web", 0, "80")}, want: map[int32]string{},
			errs: []string{`EndpointSlice shop/web is not as the agent has written it: "80" are no listening ports such as 80=10000`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClaims(func() {})
			for _, slice := range test.slices {
				c.observe(client.ObjectKeyFromObject(&slice), &slice)
			}
			got, _, refused := c.take()
			leads := map[int32]string{}
			for number, owner := range got {
				leads[number] = fmt.Sprintf("%s:%d", owner.Service, owner.Port)
				check.Equal(t, fmt.Sprintf("port %d leads to cluster", number), clusterset.ClusterID("west"), owner.Cluster)
			}
			check.Equal(t, "listeners", test.want, leads)
			check.Equal(t, "refused", test.errs, check.Messages(refused))
		})
	}
}

// A port that no slice has any more leads for a while where it led before, because kube-proxy may still send clients there; a port that
// has got another owner does not. spec: G2, G8
func TestReleasedPort(t *testing.T) {
	one, other := ports.Owner{Cluster: "west", Port: 80}, ports.Owner{Cluster: "north", Port: 80}
	served := make(chan ports.Owner, 1)
	l := &listeners{addresses: []string{"127.0.0.1"}, lag: time.Hour}
	l.serve = func(_ context.Context, client loop.Accepted, to ports.Owner, ended func()) {
		client.Close()
		served <- to
		ended()
	}
	const number, address = 0, "127.0.0.1:0" // any that is free
	apply := func(owner ports.Owner) {
		t.Helper()
		check.Must(t, l.apply(t.Context(), map[int32]ports.Owner{number: owner}))
	}
	leadsTo := func(step string, want ports.Owner) {
		t.Helper()
		conn, err := net.Dial("tcp", l.open[address].Addr().String())
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		defer conn.Close()
		check.Equal(t, fmt.Sprintf("%s: the port leads to", step), want, <-served)
	}
	apply(one)
	leadsTo("wanted", one)
	apply(ports.Owner{})
	leadsTo("released", one)
	apply(other)
	leadsTo("with another owner", other)
	apply(ports.Owner{})
	apply(other)
	l.expire(address, l.open[address])
	leadsTo("wanted again", other)
	l.lag = time.Nanosecond
	apply(ports.Owner{})
	l.running.Wait() // for the end of all listeners
	apply(one)
	l.closeAll()
	l.running.Wait()
}

// A port that cannot be opened is tried again, until it leads nowhere. spec: G2
func TestPortThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	const number = 10000
	l := &listeners{addresses: []string{"192.0.2.1"}, lag: time.Hour} // an address of another host
	for i, step := range []struct {
		changes map[int32]ports.Owner
		failed  bool
	}{{nil, false}, {map[int32]ports.Owner{number: {Cluster: "west", Port: 80}}, true}, {nil, true}, {map[int32]ports.Owner{number: {}}, false}, {nil, false}} {
		if err := l.apply(t.Context(), step.changes); (err != nil) != step.failed {
			t.Errorf("step %d: %v, want an error: %v", i, err, step.failed)
		}
	}
}

func bundleOf(t *testing.T, authorities ...identity.Authority) gatewayv1alpha1.RemoteGateway {
	t.Helper()
	return gatewayv1alpha1.RemoteGateway{
		ObjectMeta: metav1.ObjectMeta{Name: "west"},
		Spec: gatewayv1alpha1.RemoteGatewaySpec{
			Cluster: "west", Bundle: identity.EncodeBundle(authorities), Versions: []int32{1},
			Addresses: []gatewayv1alpha1.Address{{Host: "2001:db8::1", Port: 443}},
		},
	}
}

// spec: G4, G5
func TestRemotes(t *testing.T) {
	t.Parallel()
	first, err := identity.NewAuthority("west", start)
	check.Must(t, err)
	second, err := identity.NewAuthority("west", start)
	check.Must(t, err)
	newer, broken := bundleOf(t, first), bundleOf(t, first)
	newer.Spec.Versions, broken.Spec.Bundle = []int32{3}, "garbage"
	for name, test := range map[string]struct {
		before, after []gatewayv1alpha1.RemoteGateway
		less          bool
		err           string
	}{
		"no change":           {before: []gatewayv1alpha1.RemoteGateway{bundleOf(t, first)}, after: []gatewayv1alpha1.RemoteGateway{bundleOf(t, first)}},
		"one authority more":  {before: []gatewayv1alpha1.RemoteGateway{bundleOf(t, first)}, after: []gatewayv1alpha1.RemoteGateway{bundleOf(t, first, second)}},
		"one authority fewer": {before: []gatewayv1alpha1.RemoteGateway{bundleOf(t, first, second)}, after: []gatewayv1alpha1.RemoteGateway{bundleOf(t, second)}, less: true},
		"gone":                {before: []gatewayv1alpha1.RemoteGateway{bundleOf(t, first)}, less: true},
		"another version": {
			before: []gatewayv1alpha1.RemoteGateway{bundleOf(t, first)}, after: []gatewayv1alpha1.RemoteGateway{newer}, less: true,
			err: "cluster west: its gateways support versions [3] of the protocol, this one versions [1 2]: upgrade the older of both",
		},
		"not readable": {
			after: []gatewayv1alpha1.RemoteGateway{broken},
			err:   "cluster west: the bundle contains more than PEM blocks of certificates without headers",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, _ := remotesOf(test.before, nil)
			after, err := remotesOf(test.after, before)
			check.Equal(t, "less trusted", test.less, lessTrusted(before, after))
			check.Equal(t, "the pool has not changed", name == "no change", after["west"].authorities != nil && after["west"].authorities == before["west"].authorities)
			check.Equal(t, "error", test.err, check.Message(err))
			if r, ok := after["west"]; ok && strings.Join(r.addresses, " ") != "[2001:db8::1]:443" {
				t.Errorf("addresses %v", r.addresses)
			}
		})
	}
}

// spec: G8
func TestReport(t *testing.T) {
	t.Parallel()
	later := start.Add(time.Minute)
	first := report([]string{"10.1.0.1"}, map[clusterset.ClusterID]error{"west": nil, "north": errors.New(strings.Repeat("ä", 300))}, gatewayv1alpha1.GatewayReport{}, start)
	second := report([]string{"10.1.0.1"}, map[clusterset.ClusterID]error{"west": errors.New("refused"), "north": errors.New("timeout")}, first, later)
	want := gatewayv1alpha1.GatewayReport{
		Addresses: []string{"10.1.0.1"}, Versions: wire.Versions(),
		Clusters: []gatewayv1alpha1.ClusterReachability{
			{Cluster: "north", Reason: "ConnectionFailed", Message: strings.Repeat("ä", 256), Since: metav1.NewTime(start)},
			{Cluster: "west", Reachable: true, Since: metav1.NewTime(start)},
		},
	}
	check.Equal(t, "first", want, first)
	want.Clusters[0].Message = "timeout"
	want.Clusters[1] = gatewayv1alpha1.ClusterReachability{Cluster: "west", Reason: "ConnectionFailed", Message: "refused", Since: metav1.NewTime(later)}
	check.Equal(t, "second", want, second)
}

// spec: G9, G10
func TestPortOf(t *testing.T) {
	t.Parallel()
	service := corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.2.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}, {Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53}},
		},
	}
	headless := service
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	for name, test := range map[string]struct {
		service  corev1.Service
		hostname string
		port     uint16
		want     string
		refusal  string
	}{
		"TCP":                       {service, "", 80, "http", ""},
		"UDP":                       {service, "", 53, "", "service shop/web: it has no TCP port 53"},
		"none":                      {service, "", 81, "", "service shop/web: it has no TCP port 81"},
		"headless":                  {headless, "", 80, "http", ""},
		"headless, with a hostname": {headless, "web-0", 80, "http", ""},
		"a hostname":                {service, "web-0", 80, "", "service shop/web: it is not headless, so it has no hostnames"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, refusal := portOf(&test.service, requestOf(ports.Owner{Service: clusterset.ServiceKey{Namespace: "shop", Name: "web"}, Port: int32(test.port), Hostname: test.hostname}, netip.MustParseAddrPort("10.1.0.1:1024")))
			text := ""
			if refusal != nil {
				text = refusal.Text
			}
			if got.Name != test.want || text != test.refusal || refusal != nil && refusal.Code != wire.CodeNotExported {
				t.Errorf("%q, %q", got, text)
			}
		})
	}
}

// A gateway does not connect to its own cluster or node, even if a name of another cluster's gateways leads there. spec: G4
func TestPermit(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	defer listener.Close()
	r := remote{refused: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/64")}}
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	if conn, err := tunnel.DialTCP(t.Context(), "localhost:"+port, time.Second, r.permit); err == nil || !strings.Contains(err.Error(), "is loopback") {
		t.Errorf("a name that leads to loopback: %v, %v", conn, err)
	}
	for address, want := range map[string]string{
		"198.51.100.1": "", "2001:db8::1": "", "10.2.0.1": "",
		"10.1.2.3": "10.1.2.3 is in range 10.1.0.0/16", "fd00:1::2": "fd00:1::2 is in range fd00:1::/64", "::ffff:10.1.2.3": "10.1.2.3 is in range",
		"169.254.169.254": "169.254.169.254 is loopback, link-local", "::": ":: is loopback, link-local, multicast or unspecified",
	} {
		if err := r.permit(netip.MustParseAddr(address)); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
