// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// certificate has the form of a certificate in PEM. Importers check what it contains.
const certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

func (m *member) gateway(hosts ...string) *hubv1alpha1.PublishedGateway {
	gateway := &hubv1alpha1.PublishedGateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: hubv1alpha1.GatewayName},
		Spec:       hubv1alpha1.PublishedGatewaySpec{Bundle: certificate, Versions: []int32{1}},
	}
	for _, host := range hosts {
		gateway.Spec.Addresses = append(gateway.Spec.Addresses, hubv1alpha1.GatewayAddress{Host: host, Port: 443})
	}
	return gateway
}

// spec: G4
func (h *hub) testGateways(t *testing.T) {
	m := h.join(t, manifests.MemberOptions{
		ClusterID: "gateways", PodCIDRs: prefixes("10.1.0.0/16"), GatewayCIDRs: []hubv1alpha1.CIDR{"198.51.100.0/24", "2001:db8::/64"},
		GatewayNames: []hubv1alpha1.DNSName{"gateway.example.com"},
	})
	const (
		outside = " is neither in the gatewayCIDRs nor one of the gatewayNames of the Member of cluster gateways: publish another one, or let an administrator of the hub add it to the Member"
		special = " is loopback, link-local, multicast, unspecified, or not in its shortest form: publish another one"
	)
	type change = func(*hubv1alpha1.PublishedGateway)
	host := func(host string) change {
		return func(g *hubv1alpha1.PublishedGateway) { g.Spec.Addresses[0].Host = host }
	}
	addresses := func(n int) change {
		return func(g *hubv1alpha1.PublishedGateway) { g.Spec.Addresses = slices.Repeat(g.Spec.Addresses[:1], n) }
	}
	for name, test := range map[string]struct {
		change change
		want   string
	}{
		"as allowed":            {func(*hubv1alpha1.PublishedGateway) {}, ""},
		"no address":            {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Addresses = nil }, ""},
		"IPv6":                  {host("2001:db8::1"), ""},
		"a name":                {host("gateway.example.com"), ""},
		"another name":          {host("example.com"), "example.com" + outside},
		"another address":       {host("203.0.113.1"), "203.0.113.1" + outside},
		"a pod":                 {host("10.1.0.1"), "10.1.0.1" + outside},
		"loopback":              {host("127.0.0.1"), "address 127.0.0.1" + special},
		"link-local":            {host("169.254.169.254"), "address 169.254.169.254" + special},
		"not in shortest form":  {host("2001:db8:0::1"), "address 2001:db8:0::1" + special},
		"a CIDR":                {host("198.51.100.0/24"), "should match"},
		"port 0":                {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Addresses[0].Port = 0 }, "greater than or equal to 1"},
		"too many addresses":    {addresses(17), "must have at most 16 items"},
		"10,000 addresses":      {addresses(10_000), "must have at most 16 items"},
		"another object's name": {func(g *hubv1alpha1.PublishedGateway) { g.Name = "another" }, "a member's namespace has one PublishedGateway, named gateway"},
		"no bundle":             {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Bundle = "" }, "should be at least 1 chars long"},
		"no certificate":        {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Bundle = "hello" }, "should match"},
		"a private key": {func(g *hubv1alpha1.PublishedGateway) {
			g.Spec.Bundle = strings.ReplaceAll(certificate, "CERTIFICATE", "PRIVATE KEY")
		}, "should match"},
		"an oversized bundle": {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Bundle = strings.Repeat(certificate, 300) }, "may not be more than 16384"},
		"no version":          {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Versions = nil }, "Required value"},
		"an illegal version":  {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Versions[0] = 0 }, "greater than or equal to 1"},
		"a label":             {func(g *hubv1alpha1.PublishedGateway) { g.Labels = map[string]string{"a": "b"} }, "what a member writes has no labels"},
	} {
		t.Run(name, func(t *testing.T) {
			gateway := m.gateway("198.51.100.1", "gateway.example.com")
			test.change(gateway)
			tryNew(t, h.admin, gateway, test.want)
		})
	}
	t.Run("in another member's namespace", func(t *testing.T) {
		gateway := m.gateway("198.51.100.1")
		gateway.Namespace = h.a.namespace
		checkError(t, m.Create(t.Context(), gateway), "forbidden")
	})
}

// The addresses of a member of another network are where earlier agents do not look, and a member that publishes availability
// publishes no address.
// spec: W2, W3
func (h *hub) testNetworks(t *testing.T) {
	cloud := h.join(t, manifests.MemberOptions{ClusterID: "cloud", PodCIDRs: prefixes("10.1.0.0/16"), Network: "cloud"})
	private := h.join(t, manifests.MemberOptions{ClusterID: "private", PodCIDRs: prefixes("10.1.0.0/16"), Publish: hubv1alpha1.PublishAvailability})
	in := func(network string) func(*hubv1alpha1.PublishedEndpoints) {
		return func(e *hubv1alpha1.PublishedEndpoints) {
			e.Spec.InNetwork, e.Spec.Groups = &hubv1alpha1.NetworkEndpoints{Network: network, Groups: e.Spec.Groups}, nil
		}
	}
	const noAddresses = "the Member of cluster private has publish: Availability, so it publishes no addresses: upgrade its agent if this repeats"
	for name, test := range map[string]struct {
		member *member
		change func(*hubv1alpha1.PublishedEndpoints)
		want   string
	}{
		"of the Member's network": {cloud, in("cloud"), ""},
		"of no network":           {cloud, func(*hubv1alpha1.PublishedEndpoints) {}, "the endpoints are of network default, the Member of cluster cloud is in network cloud: upgrade its agent if this repeats"},
		"of another network":      {cloud, in("office"), "the endpoints are of network office, the Member of cluster cloud is in network cloud: upgrade its agent if this repeats"},
		"of the default network":  {cloud, in("default"), "endpoints of network default are in groups"},
		"beyond pods": {cloud, func(e *hubv1alpha1.PublishedEndpoints) {
			addresses("10.2.0.1")(e)
			in("cloud")(e)
		}, "address 10.2.0.1 is outside the podCIDRs"},
		"in two places": {cloud, func(e *hubv1alpha1.PublishedEndpoints) {
			groups := e.Spec.Groups
			in("cloud")(e)
			e.Spec.Groups = groups
		}, "endpoints are in groups or in inNetwork: leave one of them out"},
		"availability only": {private, func(*hubv1alpha1.PublishedEndpoints) {}, noAddresses},
	} {
		t.Run(name, func(t *testing.T) {
			tryNew(t, test.member, test.member.endpoints(test.change), test.want)
		})
	}
	for name, test := range map[string]struct {
		available []*int32
		want      string
	}{
		"availability":            {[]*int32{new(int32(0)), new(int32(2))}, ""},
		"of one of two ports":     {[]*int32{new(int32(0)), nil}, "some ports have no availability: give it for all ports or for none"},
		"more than two":           {[]*int32{new(int32(0)), new(int32(3))}, "less than or equal to 2"},
		"fewer than no endpoints": {[]*int32{new(int32(0)), new(int32(-1))}, "greater than or equal to 0"},
	} {
		t.Run(name, func(t *testing.T) {
			tryNew(t, private, private.service(func(s *hubv1alpha1.PublishedService) {
				s.Spec.Ports = []hubv1alpha1.PublishedPort{
					{Name: "a", Protocol: "TCP", Port: 1, Available: test.available[0]}, {Name: "b", Protocol: "TCP", Port: 2, Available: test.available[1]},
				}
			}), test.want)
		})
	}
	testHostnames(t, private)
}

// The schema refuses the hostnames that importers refuse, and admits the most.
// spec: G9
func testHostnames(t *testing.T, m *member) {
	type headless = hubv1alpha1.PublishedHeadless
	many := func(n int) func(*headless) {
		return func(h *headless) {
			for i := range n {
				h.Hostnames = append(h.Hostnames, hubv1alpha1.PublishedHostname{Hostname: fmt.Sprintf("%063d", i), PortGroup: int32(i % 100)})
			}
			h.PortGroups = slices.Repeat([]hubv1alpha1.PublishedPortGroup{{TargetPorts: slices.Repeat([]int32{65535}, 100)}}, 100)
		}
	}
	named := func(names ...string) func(*headless) {
		return func(h *headless) {
			h.PortGroups = []hubv1alpha1.PublishedPortGroup{{TargetPorts: slices.Repeat([]int32{1}, 100)}}
			for _, name := range names {
				h.Hostnames = append(h.Hostnames, hubv1alpha1.PublishedHostname{Hostname: name})
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*headless)
		want   string
	}{
		"none is available": {func(*headless) {}, ""},
		"the most":          {many(100), ""},
		"one more":          {many(101), "must have at most 100 items"},
		"with and without":  {named("", "db-0"), ""},
		"twice":             {named("db-0", "db-0"), "Duplicate value"},
		"a dot":             {named("db.0"), "should match"},
		"no such group": {
			func(h *headless) { named("db-0")(h); h.Hostnames[0].PortGroup = 1 }, "a hostname refers to a port group that is not there",
		},
		"no groups":           {func(h *headless) { named("db-0")(h); h.PortGroups = nil }, "a hostname refers to a port group that is not there"},
		"too few ports":       {func(h *headless) { named("db-0")(h); h.PortGroups[0].TargetPorts = []int32{1} }, "a port group needs a target port for each port of the service"},
		"a port out of range": {func(h *headless) { named("db-0")(h); h.PortGroups[0].TargetPorts[0] = 65536 }, "less than or equal to 65535"},
	} {
		t.Run("hostnames, "+name, func(t *testing.T) {
			tryNew(t, m, m.service(func(s *hubv1alpha1.PublishedService) {
				s.Spec.Type, s.Spec.Ports, s.Spec.Headless = "Headless", nil, &headless{}
				for i := range 100 {
					s.Spec.Ports = append(s.Spec.Ports, hubv1alpha1.PublishedPort{Name: fmt.Sprint("p", i), Protocol: "TCP", Port: int32(i + 1)})
				}
				test.change(s.Spec.Headless)
			}), test.want)
		})
	}
	service := m.service(func(s *hubv1alpha1.PublishedService) { s.Spec.Headless = &headless{} })
	checkError(t, m.Create(t.Context(), service), "only a headless service has hostnames")
}
