// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// shape is what a name is, said by whoever made the content, not by those who serve it.
type shape string

const noSuchName shape = "no such name"

// content is what an API server holds, and the shape of each name that has a record, lies above one, or looks as if it
// had one. All other names have the shape noSuchName.
type content struct {
	rand       *rand.Rand
	namespaces []string
	objects    []client.Object
	shapes     map[string]shape // by name, in lower case
	addresses  int
	names      int
}

// service is what the content of a service is made of.
type service struct {
	kind      shape
	namespace string
	name      string
}

// mirror is an EndpointSlice of a service from a cluster.
type mirror struct {
	cluster string
	kind    discoveryv1.AddressType
	ports   []discoveryv1.EndpointPort
	ends    []discoveryv1.Endpoint
}

// newContent returns content with every shape of service in it. Names, addresses, numbers of endpoints and of ports follow
// from the seed.
func newContent(seed uint64) *content {
	c := &content{rand: rand.New(rand.NewPCG(seed, 0)), shapes: map[string]shape{}}
	for _, namespace := range []string{"shop", "svc", "pod", "x1", "0-day"} {
		c.namespaces = append(c.namespaces, namespace)
		c.shapes[namespace+".svc."+zone] = "<namespace>"
	}
	for name, s := range map[string]shape{
		"": "the zone", "svc.": "svc", "dns.": "dns", "ns.dns.": "ns.dns", "dns-version.": "dns-version",
	} {
		c.shapes[name+zone] = s
	}
	c.namespaces = append(c.namespaces, "vacant", "dark")
	c.shapes["vacant.svc."+zone] = "<namespace> that holds no service"
	c.shapes["dark.svc."+zone] = "<namespace> that holds no service"
	c.pods()
	for _, namespace := range c.namespaces[:5] {
		for range 3 {
			c.clusterSetIP(namespace)
			c.headless(namespace)
		}
		c.odd(namespace)
	}
	c.dark("dark")
	return c
}

// pods gives the names of pods their shapes.
func (c *content) pods() {
	c.shapes["pod."+zone] = "pod"
	for _, namespace := range c.namespaces {
		c.shapes[namespace+".pod."+zone] = "<namespace>.pod"
		for _, address := range []string{"10-0-0-1", "fd00--1"} {
			name := address + "." + namespace + ".pod." + zone
			c.shapes[name] = "<address>.<namespace>.pod"
			c.shapes["x."+name], c.shapes["_http._tcp."+name] = "below <address>.<namespace>.pod", "below <address>.<namespace>.pod"
		}
	}
}

// service returns a service with a name of its own, every other one with a digit at the beginning.
func (c *content) service(kind shape, namespace string) service {
	c.names++
	name := fmt.Sprintf("%s%d", []string{"web", "3d", "a-b"}[c.rand.IntN(3)], c.names)
	if c.names == 3 {
		name = "svc"
	}
	s := service{kind, namespace, name}
	c.shapes[s.dns()] = kind
	return s
}

func (s service) dns() string { return s.name + "." + s.namespace + ".svc." + zone }

// address returns an address that nobody has.
func (c *content) address(family discoveryv1.AddressType) string {
	c.addresses++
	if family == discoveryv1.AddressTypeIPv4 {
		return fmt.Sprintf("10.1.%d.%d", c.addresses/250, c.addresses%250+1)
	}
	return fmt.Sprintf([]string{"fd00:1::%x", "fd00:2:%x::"}[c.rand.IntN(2)], c.addresses)
}

func (c *content) ips() []string {
	v4, v6 := c.address(discoveryv1.AddressTypeIPv4), c.address(discoveryv1.AddressTypeIPv6)
	return [][]string{{v4}, {v6}, {v4, v6}, {v6, v4}}[c.names%4]
}

// clusterSetIP adds a service of every sort that has addresses of its own.
func (c *content) clusterSetIP(namespace string) {
	s := c.service("<ClusterSetIP service>", namespace)
	ports := []v1beta1.ServicePort{
		{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80},
		{Name: "Metrics", Protocol: corev1.ProtocolTCP, Port: int32(1024 + c.rand.IntN(1000))},
		{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53},
		{Protocol: corev1.ProtocolTCP, Port: int32(3000 + c.rand.IntN(1000))},
	}
	c.imports(s, v1beta1.ClusterSetIP, c.ips(), ports[:1+c.rand.IntN(4)])
	for _, cluster := range c.clusters() {
		c.slice(s, mirror{cluster: cluster, kind: discoveryv1.AddressTypeIPv4, ports: c.ports(), ends: c.ends(discoveryv1.AddressTypeIPv4)})
	}
	c.imports(c.service("<ClusterSetIP service without ports>", namespace), v1beta1.ClusterSetIP, c.ips(), nil)
	c.imports(c.service("<ClusterSetIP service without addresses>", namespace), v1beta1.ClusterSetIP, nil, ports[:1])
}

// headless adds a service of one to four clusters, of one or both families, with and without ports.
func (c *content) headless(namespace string) {
	s := c.service("<headless service>", namespace)
	c.imports(s, v1beta1.Headless, nil, nil)
	for _, cluster := range c.clusters() {
		ports := c.ports()
		for i, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			if i == 0 || c.rand.IntN(2) == 0 {
				c.slice(s, mirror{cluster: cluster, kind: family, ports: ports, ends: c.ends(family)})
			}
		}
	}
	s = c.service("<headless service without ports>", namespace)
	c.imports(s, v1beta1.Headless, nil, nil)
	for _, cluster := range c.clusters() {
		c.slice(s, mirror{cluster: cluster, kind: discoveryv1.AddressTypeIPv4, ends: c.ends(discoveryv1.AddressTypeIPv4)})
	}
}

// clusters returns one to four of them.
func (c *content) clusters() []string {
	all := []string{"east", "west", "3rd", "a-very-long-name-for-a-cluster-yet-a-label-of-63-characters-yes"}
	c.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+c.rand.IntN(4)]
}

// ports returns one to three, the last without a name.
func (c *content) ports() []discoveryv1.EndpointPort {
	all := []discoveryv1.EndpointPort{
		slicePort("http", corev1.ProtocolTCP, 8080),
		slicePort("dns", corev1.ProtocolUDP, int32(5300+c.rand.IntN(2))),
		slicePort("", corev1.ProtocolTCP, 9000),
	}
	return all[:1+c.rand.IntN(3)]
}

func slicePort(name string, protocol corev1.Protocol, number int32) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: ptr.To(name), Protocol: &protocol, Port: &number}
}

// ends returns ready endpoints, with and without hostnames, two of one hostname, and one that is not ready.
func (c *content) ends(family discoveryv1.AddressType) []discoveryv1.Endpoint {
	var all []discoveryv1.Endpoint
	for i, host := range []string{"", "db-0", "db-0", "10-0-0-1", "", "0"} {
		if i > c.rand.IntN(7) {
			continue
		}
		e := discoveryv1.Endpoint{Addresses: []string{c.address(family)}}
		if host != "" {
			e.Hostname = &host
		}
		if c.rand.IntN(2) == 0 {
			e.Conditions.Ready = ptr.To(true)
		}
		all = append(all, e)
	}
	lost := discoveryv1.Endpoint{Addresses: []string{c.address(family)}, Hostname: ptr.To("lost")}
	lost.Conditions.Ready = ptr.To(false)
	return append(all, lost)
}

// imports adds the ServiceImport of a service, and gives the names of its ports their shapes.
func (c *content) imports(s service, kind v1beta1.ServiceImportType, ips []string, ports []v1beta1.ServicePort) {
	c.objects = append(c.objects, &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name},
		Spec:       v1beta1.ServiceImportSpec{Type: kind, IPs: ips, Ports: append([]v1beta1.ServicePort{}, ports...)},
	})
	for _, p := range ports {
		c.port(s, p.Name, string(cmp.Or(p.Protocol, corev1.ProtocolTCP)))
	}
}

// port gives the names of a port their shapes, and those that look alike.
func (c *content) port(s service, name, protocol string) {
	name, protocol = strings.ToLower(name), strings.ToLower(protocol)
	if name != "" {
		c.shapes["_"+protocol+"."+s.dns()] = "_<protocol>." + s.kind
		c.shapes["_"+name+"._"+protocol+"."+s.dns()] = "_<port>._<protocol>." + s.kind
		c.shapes["_"+name+"."+protocol+"."+s.dns()] = "_<port>.<protocol>." + s.kind
		c.shapes[name+"._"+protocol+"."+s.dns()] = "<port>._<protocol>." + s.kind
		c.shapes["_"+name+"._."+s.dns()] = "_<port>._." + s.kind
	}
	c.shapes["_._"+protocol+"."+s.dns()] = "_._<protocol>." + s.kind
}

// slice adds an EndpointSlice of a service, and gives the names of its endpoints their shapes.
func (c *content) slice(s service, e mirror) {
	c.objects = append(c.objects, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: fmt.Sprintf("%s-%d", strings.ReplaceAll(s.name, ".", "-"), len(c.objects)),
			Labels: map[string]string{v1beta1.LabelServiceName: s.name, v1beta1.LabelSourceCluster: e.cluster},
		},
		AddressType: e.kind, Ports: e.ports, Endpoints: e.ends,
	})
	ready := slices.DeleteFunc(slices.Clone(e.ends), func(end discoveryv1.Endpoint) bool { return !ptr.Deref(end.Conditions.Ready, true) })
	for _, end := range ready {
		label := ptr.Deref(end.Hostname, "")
		if label == "" {
			label = strings.NewReplacer(".", "-", ":", "-").Replace(end.Addresses[0])
			if strings.HasSuffix(label, "-") {
				label += "0"
			}
		}
		if e.cluster == "" {
			c.shapes[label+"."+s.dns()] = "<endpoint>." + s.kind
			continue
		}
		c.shapes[e.cluster+"."+s.dns()] = "<cluster>." + s.kind
		c.shapes[label+"."+e.cluster+"."+s.dns()] = "<endpoint>.<cluster>." + s.kind
	}
	if strings.HasPrefix(string(s.kind), "<headless") && len(ready) > 0 {
		for _, p := range e.ports {
			c.port(s, ptr.Deref(p.Name, ""), string(*p.Protocol))
		}
	}
}

// odd adds services that few clusters have.
func (c *content) odd(namespace string) {
	v4, fqdn := discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeFQDN
	one := func(address string) []discoveryv1.Endpoint {
		return []discoveryv1.Endpoint{{Addresses: []string{address}}}
	}
	http := []discoveryv1.EndpointPort{slicePort("http", corev1.ProtocolTCP, 80)}
	c.dark(namespace)
	for _, s := range []struct {
		kind shape
		mirror
	}{
		{"<headless service of host names>", mirror{"east", fqdn, http, one("example.org")}},
		{"<headless service of no cluster>", mirror{"", v4, http, one(c.address(v4))}},
		{"<headless service of a cluster with a dot>", mirror{"eu.west", v4, http, one(c.address(v4))}},
		{"<headless service with a port without a number>", mirror{"east", v4, []discoveryv1.EndpointPort{{Name: ptr.To("any"), Protocol: ptr.To(corev1.ProtocolTCP)}}, one(c.address(v4))}},
		{"<endpoints without a ServiceImport>", mirror{"east", v4, http, one(c.address(v4))}},
		{"<ClusterSetIP service with a port of no protocol>", mirror{"east", v4, nil, one(c.address(v4))}},
	} {
		made := c.service(s.kind, namespace)
		switch {
		case strings.HasPrefix(string(s.kind), "<headless"):
			c.imports(made, v1beta1.Headless, nil, nil)
		case strings.HasPrefix(string(s.kind), "<ClusterSetIP"):
			c.imports(made, v1beta1.ClusterSetIP, c.ips(), []v1beta1.ServicePort{{Name: "http", Port: 80}})
		}
		c.slice(made, s.mirror)
	}
	c.imports(service{"<service with a dot>", namespace, "a.b"}, v1beta1.ClusterSetIP, c.ips(), []v1beta1.ServicePort{{Name: "http", Port: 80}})
	c.shapes["a.b."+namespace+".svc."+zone] = "<service with a dot>"
}

// dark adds headless services that nobody serves: without endpoints, without slices.
func (c *content) dark(namespace string) {
	s := c.service("<headless service without ready endpoints>", namespace)
	c.imports(s, v1beta1.Headless, nil, nil)
	lost := discoveryv1.Endpoint{Addresses: []string{c.address(discoveryv1.AddressTypeIPv4)}}
	lost.Conditions.Ready = ptr.To(false)
	c.slice(s, mirror{"east", discoveryv1.AddressTypeIPv4, c.ports(), []discoveryv1.Endpoint{lost}})
	c.imports(c.service("<headless service without ready endpoints>", namespace), v1beta1.Headless, nil, nil)
}
