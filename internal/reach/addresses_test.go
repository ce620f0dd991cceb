// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

type addresses = []hubv1alpha1.GatewayAddress

func serviceOf(kind corev1.ServiceType, ingress ...corev1.LoadBalancerIngress) *corev1.Service {
	return &corev1.Service{
		Spec: corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{
			{Protocol: corev1.ProtocolUDP, Port: 53, NodePort: 30053}, {Protocol: corev1.ProtocolTCP, Port: 443, NodePort: 30443},
		}},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}},
	}
}

func node(of ...corev1.NodeAddress) *corev1.Node {
	return &corev1.Node{Status: corev1.NodeStatus{Addresses: of}}
}

// spec: G4
func TestAddresses(t *testing.T) {
	t.Parallel()
	udp := serviceOf(corev1.ServiceTypeLoadBalancer, corev1.LoadBalancerIngress{IP: "198.51.100.1"})
	udp.Spec.Ports = udp.Spec.Ports[:1]
	tcp := serviceOf(corev1.ServiceTypeLoadBalancer, corev1.LoadBalancerIngress{IP: "198.51.100.1"})
	tcp.Spec.Ports = tcp.Spec.Ports[1:]
	var many []corev1.LoadBalancerIngress
	for i := range 20 {
		many = append(many, corev1.LoadBalancerIngress{IP: fmt.Sprintf("198.51.100.%d", 100+i)})
	}
	var bounded addresses
	for i := range 16 {
		bounded = append(bounded, hubv1alpha1.GatewayAddress{Host: fmt.Sprintf("198.51.100.%d", 100+i), Port: 443})
	}
	internal := corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}
	external := corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "198.51.100.9"}
	name := corev1.NodeAddress{Type: corev1.NodeHostName, Address: "node-1"}
	for title, test := range map[string]struct {
		service *corev1.Service
		nodes   []*corev1.Node
		want    addresses
	}{
		"of a cluster IP":      {serviceOf(corev1.ServiceTypeClusterIP), []*corev1.Node{node(internal)}, nil},
		"no load balancer yet": {serviceOf(corev1.ServiceTypeLoadBalancer), []*corev1.Node{node(internal)}, nil},
		"a load balancer": {
			serviceOf(corev1.ServiceTypeLoadBalancer, corev1.LoadBalancerIngress{IP: "198.51.100.1"}, corev1.LoadBalancerIngress{Hostname: "LB.Example.com."}), nil,
			addresses{{Host: "198.51.100.1", Port: 443}, {Host: "lb.example.com", Port: 443}},
		},
		"in another order, twice": {
			serviceOf(corev1.ServiceTypeLoadBalancer, corev1.LoadBalancerIngress{IP: "2001:DB8:0::1"}, corev1.LoadBalancerIngress{IP: "198.51.100.1"},
				corev1.LoadBalancerIngress{IP: "2001:db8::1"}), nil,
			addresses{{Host: "198.51.100.1", Port: 443}, {Host: "2001:db8::1", Port: 443}},
		},
		"no address":   {serviceOf(corev1.ServiceTypeLoadBalancer, corev1.LoadBalancerIngress{Hostname: "no name"}, corev1.LoadBalancerIngress{}), nil, nil},
		"no TCP port":  {udp, nil, nil},
		"only TCP":     {tcp, nil, addresses{{Host: "198.51.100.1", Port: 443}}},
		"20 addresses": {serviceOf(corev1.ServiceTypeLoadBalancer, many...), nil, bounded},
		"nodes": {
			serviceOf(corev1.ServiceTypeNodePort),
			[]*corev1.Node{node(name, internal, external), node(internal), node(name)},
			addresses{{Host: "192.0.2.1", Port: 30443}, {Host: "198.51.100.9", Port: 30443}},
		},
		"no nodes": {serviceOf(corev1.ServiceTypeNodePort), nil, nil},
	} {
		check.Equal(t, title, test.want, Addresses(test.service, test.nodes))
	}
}

// spec: G4
func TestParseAddress(t *testing.T) {
	t.Parallel()
	invalid := func(text string) string {
		return fmt.Sprintf("%q is no address of a gateway: write host or host:port, such as gateway.example.com:443", text)
	}
	for text, test := range map[string]struct {
		host string
		port int32
		err  string
	}{
		"gateway.example.com":      {"gateway.example.com", 443, ""},
		"Gateway.example.com:8443": {"gateway.example.com", 8443, ""},
		"198.51.100.1":             {"198.51.100.1", 443, ""},
		"198.51.100.1:8443":        {"198.51.100.1", 8443, ""},
		"2001:db8:0::1":            {"2001:db8::1", 443, ""},
		"[2001:db8::1]:8443":       {"2001:db8::1", 8443, ""},
		"":                         {err: invalid("")},
		"a_b":                      {err: invalid("a_b")},
		"gateway:":                 {err: invalid("gateway:")},
		"gateway:0":                {err: invalid("gateway:0")},
		"gateway:65536":            {err: invalid("gateway:65536")},
		"gateway:1:2":              {err: invalid("gateway:1:2")},
	} {
		got, err := ParseAddress(text)
		check.Equal(t, fmt.Sprintf("%q", text), hubv1alpha1.GatewayAddress{Host: test.host, Port: test.port}, got)
		check.Equal(t, fmt.Sprintf("error of %q", text), test.err, check.Message(err))
	}
}

// What is usable is written, what is revoked is not, and what the hub lacks stays as it is.
//
// spec: G4, G5, W5
func TestRemote(t *testing.T) {
	t.Parallel()
	published := func(host string) *hubv1alpha1.PublishedGateway {
		return &hubv1alpha1.PublishedGateway{Spec: hubv1alpha1.PublishedGatewaySpec{
			Addresses: addresses{{Host: host, Port: 443}}, Bundle: "bundle", Versions: []int32{1},
		}}
	}
	remote := func(id, host string) *gatewayv1alpha1.RemoteGateway {
		result := &gatewayv1alpha1.RemoteGateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: id, Labels: map[string]string{"app.kubernetes.io/managed-by": "tombolo-mcs.io"}},
			Spec: gatewayv1alpha1.RemoteGatewaySpec{
				Cluster: id, Addresses: []gatewayv1alpha1.Address{{Host: host, Port: 443}}, Bundle: "bundle", Versions: []int32{1},
			},
		}
		result.Spec.OwnRanges = &gatewayv1alpha1.OwnRanges{Pods: []string{"10.1.0.0/16"}, Services: []string{"10.96.0.0/16", "fd00::/112"}}
		if id != "missing" {
			result.Spec.RefusedRanges = []string{"10.1.0.0/16"}
		}
		return result
	}
	usable := map[clusterset.ClusterID]*hubv1alpha1.PublishedGateway{"new": published("198.51.100.1"), "changed": published("198.51.100.2")}
	existing := []*gatewayv1alpha1.RemoteGateway{remote("missing", "198.51.100.3"), remote("changed", "198.51.100.4"), remote("revoked", "198.51.100.5")}
	properties := map[clusterset.ClusterID]map[string]string{"new": {}, "changed": {"region": "eu"}}
	for _, older := range existing {
		older.Spec.OwnRanges = nil
	}
	own := clusterset.OwnRanges{
		Pods: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, Services: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00::/112")},
	}
	got := Remote("agents", usable, []string{"10.1.0.0/16"}, own, properties, existing, func(id clusterset.ClusterID) bool { return id == "revoked" })
	want := []*gatewayv1alpha1.RemoteGateway{remote("changed", "198.51.100.2"), remote("missing", "198.51.100.3"), remote("new", "198.51.100.1")}
	want[0].Spec.Properties = map[string]gatewayv1alpha1.PropertyValue{"region": "eu"}
	want[2].Spec.Properties = map[string]gatewayv1alpha1.PropertyValue{}
	check.Equal(t, "RemoteGateways", want, got)
	properties = map[clusterset.ClusterID]map[string]string{"missing": {"region": "us"}}
	got = Remote("agents", nil, nil, clusterset.OwnRanges{}, properties, got, func(clusterset.ClusterID) bool { return false })
	want[1].Spec.Properties = map[string]gatewayv1alpha1.PropertyValue{"region": "us"}
	check.Equal(t, "only properties are known", want, got)
	got = Remote("agents", usable, []string{"10.1.0.0/16"}, clusterset.OwnRanges{}, nil, got, func(clusterset.ClusterID) bool { return false })
	check.Equal(t, "the Member is not known, and a record changes", want[0].Spec.OwnRanges, got[0].Spec.OwnRanges)
}
