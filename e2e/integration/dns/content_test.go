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

// shape is a class of names. It follows from the content, not from the replies.
type shape string

const unknown shape = "no such name"

const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6

// content is the objects of an API server, and the shapes of the names that exist or are similar to those that exist. All other
// names have the shape unknown.
type content struct {
	rand       *rand.Rand
	namespaces []string
	objects    []client.Object
	shapes     map[string]shape // by name, in lower case
	addresses  int
	names      int
}

type service struct {
	shape           shape
	namespace, name string
}

// mirrored is an EndpointSlice of a service from a cluster.
type mirrored struct {
	cluster   string
	family    discoveryv1.AddressType
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint
}

// newContent returns content with services of every shape. Names, addresses, and the numbers of endpoints and ports follow from the
// seed.
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
	for _, namespace := range c.namespaces {
		for range 3 {
			c.clusterSetIP(namespace)
			c.headless(namespace)
		}
		c.unusual(namespace)
	}
	for _, namespace := range []string{"empty", "unready"} {
		c.namespaces = append(c.namespaces, namespace)
		c.shapes[namespace+".svc."+zone] = "<namespace> without services"
	}
	c.withoutReadyEndpoints("unready")
	c.pods()
	return c
}

// pods adds the shapes of the names of pods.
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

// service returns a service with a unique name.
func (c *content) service(s shape, namespace string) service {
	c.names++
	name := fmt.Sprintf("%s%d", []string{"web", "3d", "a-b"}[c.rand.IntN(3)], c.names)
	if c.names == 3 {
		name = "svc"
	}
	made := service{s, namespace, name}
	c.shapes[made.dns()] = s
	return made
}

func (s service) dns() string { return s.name + "." + s.namespace + ".svc." + zone }

func (c *content) address(family discoveryv1.AddressType) string {
	c.addresses++
	if family == v4 {
		return fmt.Sprintf("10.1.%d.%d", c.addresses/250, c.addresses%250+1)
	}
	return fmt.Sprintf([]string{"fd00:1::%x", "fd00:2:%x::"}[c.rand.IntN(2)], c.addresses)
}

func (c *content) ips() []string {
	a, b := c.address(v4), c.address(v6)
	return [][]string{{a}, {b}, {a, b}, {b, a}}[c.names%4]
}

// clusterSetIP adds ClusterSetIP services: with ports, without ports, without addresses.
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
		c.slice(s, mirrored{cluster, v4, c.ports(), c.endpoints(v4)})
	}
	c.imports(c.service("<ClusterSetIP service without ports>", namespace), v1beta1.ClusterSetIP, c.ips(), nil)
	c.imports(c.service("<ClusterSetIP service without addresses>", namespace), v1beta1.ClusterSetIP, nil, ports[:1])
}

// headless adds headless services of one to four clusters and of one or both families, with and without ports.
func (c *content) headless(namespace string) {
	s := c.service("<headless service>", namespace)
	c.imports(s, v1beta1.Headless, nil, nil)
	for _, cluster := range c.clusters() {
		ports := c.ports()
		for i, family := range []discoveryv1.AddressType{v4, v6} {
			if i == 0 || c.rand.IntN(2) == 0 {
				c.slice(s, mirrored{cluster, family, ports, c.endpoints(family)})
			}
		}
	}
	s = c.service("<headless service without ports>", namespace)
	c.imports(s, v1beta1.Headless, nil, nil)
	for _, cluster := range c.clusters() {
		c.slice(s, mirrored{cluster, v4, nil, c.endpoints(v4)})
	}
}

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

// endpoints returns ready endpoints, with and without hostnames, two of one hostname, and one that is not ready.
func (c *content) endpoints(family discoveryv1.AddressType) []discoveryv1.Endpoint {
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
	return append(all, c.unready(family, ptr.To("unready")))
}

func (c *content) unready(family discoveryv1.AddressType, hostname *string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: []string{c.address(family)}, Hostname: hostname, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)},
	}
}

// imports adds the ServiceImport of a service, and the shapes of the names of its ports.
func (c *content) imports(s service, kind v1beta1.ServiceImportType, ips []string, ports []v1beta1.ServicePort) {
	c.objects = append(c.objects, &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name},
		Spec:       v1beta1.ServiceImportSpec{Type: kind, IPs: ips, Ports: append([]v1beta1.ServicePort{}, ports...)},
	})
	for _, p := range ports {
		c.port(s, p.Name, string(cmp.Or(p.Protocol, corev1.ProtocolTCP)))
	}
}

// port adds the shapes of the names of a port, and of similar names.
func (c *content) port(s service, name, protocol string) {
	name, protocol = strings.ToLower(name), strings.ToLower(protocol)
	if name != "" {
		c.shapes["_"+protocol+"."+s.dns()] = "_<protocol>." + s.shape
		c.shapes["_"+name+"._"+protocol+"."+s.dns()] = "_<port>._<protocol>." + s.shape
		c.shapes["_"+name+"."+protocol+"."+s.dns()] = "_<port>.<protocol>." + s.shape
		c.shapes[name+"._"+protocol+"."+s.dns()] = "<port>._<protocol>." + s.shape
		c.shapes["_"+name+"._."+s.dns()] = "_<port>._." + s.shape
	}
	c.shapes["_._"+protocol+"."+s.dns()] = "_._<protocol>." + s.shape
}

// slice adds an EndpointSlice of a service, and the shapes of the names of its endpoints.
func (c *content) slice(s service, e mirrored) {
	c.objects = append(c.objects, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: fmt.Sprintf("%s-%d", strings.ReplaceAll(s.name, ".", "-"), len(c.objects)),
			Labels: map[string]string{v1beta1.LabelServiceName: s.name, v1beta1.LabelSourceCluster: e.cluster},
		},
		AddressType: e.family, Ports: e.ports, Endpoints: e.endpoints,
	})
	ready := slices.DeleteFunc(slices.Clone(e.endpoints), func(end discoveryv1.Endpoint) bool { return !ptr.Deref(end.Conditions.Ready, true) })
	for _, end := range ready {
		label := ptr.Deref(end.Hostname, "")
		if label == "" {
			label = strings.NewReplacer(".", "-", ":", "-").Replace(end.Addresses[0])
			if strings.HasSuffix(label, "-") {
				label += "0"
			}
		}
		if e.cluster == "" {
			c.shapes[label+"."+s.dns()] = "<endpoint>." + s.shape
			continue
		}
		c.shapes[e.cluster+"."+s.dns()] = "<cluster>." + s.shape
		c.shapes[label+"."+e.cluster+"."+s.dns()] = "<endpoint>.<cluster>." + s.shape
	}
	if strings.HasPrefix(string(s.shape), "<headless") && len(ready) > 0 {
		for _, p := range e.ports {
			c.port(s, ptr.Deref(p.Name, ""), string(*p.Protocol))
		}
	}
}

// unusual adds services with unusual or invalid fields.
func (c *content) unusual(namespace string) {
	const fqdn = discoveryv1.AddressTypeFQDN
	one := func(address string) []discoveryv1.Endpoint {
		return []discoveryv1.Endpoint{{Addresses: []string{address}}}
	}
	http := []discoveryv1.EndpointPort{slicePort("http", corev1.ProtocolTCP, 80)}
	c.withoutReadyEndpoints(namespace)
	for _, s := range []struct {
		shape shape
		mirrored
	}{
		{"<headless service of host names>", mirrored{"east", fqdn, http, one("example.org")}},
		{"<headless service of no cluster>", mirrored{"", v4, http, one(c.address(v4))}},
		{"<headless service of a cluster with a dot>", mirrored{"eu.west", v4, http, one(c.address(v4))}},
		{"<headless service with a port without a number>", mirrored{"east", v4, []discoveryv1.EndpointPort{{Name: ptr.To("any"), Protocol: ptr.To(corev1.ProtocolTCP)}}, one(c.address(v4))}},
		{"<endpoints without a ServiceImport>", mirrored{"east", v4, http, one(c.address(v4))}},
		{"<ClusterSetIP service with a port of no protocol>", mirrored{"east", v4, nil, one(c.address(v4))}},
	} {
		made := c.service(s.shape, namespace)
		switch {
		case strings.HasPrefix(string(s.shape), "<headless"):
			c.imports(made, v1beta1.Headless, nil, nil)
		case strings.HasPrefix(string(s.shape), "<ClusterSetIP"):
			c.imports(made, v1beta1.ClusterSetIP, c.ips(), []v1beta1.ServicePort{{Name: "http", Port: 80}})
		}
		c.slice(made, s.mirrored)
	}
	c.imports(service{"<service with a dot>", namespace, "a.b"}, v1beta1.ClusterSetIP, c.ips(), []v1beta1.ServicePort{{Name: "http", Port: 80}})
	c.shapes["a.b."+namespace+".svc."+zone] = "<service with a dot>"
}

// withoutReadyEndpoints adds headless services without a ready endpoint, and without slices.
func (c *content) withoutReadyEndpoints(namespace string) {
	s := c.service("<headless service without ready endpoints>", namespace)
	c.imports(s, v1beta1.Headless, nil, nil)
	c.slice(s, mirrored{"east", v4, c.ports(), []discoveryv1.Endpoint{c.unready(v4, nil)}})
	c.imports(c.service("<headless service without ready endpoints>", namespace), v1beta1.Headless, nil, nil)
}
