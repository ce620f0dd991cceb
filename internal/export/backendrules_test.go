// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func prefixes(cidrs ...string) []netip.Prefix {
	result, err := clusterset.ParsePrefixes(cidrs)
	if err != nil {
		panic(err)
	}
	return result
}

func tcp(port int32) clusterset.EndpointPort {
	return clusterset.EndpointPort{Name: "http", Protocol: corev1.ProtocolTCP, Port: port}
}

// occupied is a cluster: at some addresses and ports is what its name says.
func occupied(ip netip.Addr, port clusterset.EndpointPort) Occupants {
	onHost := func(namespace string, declared ...int32) Pod {
		pod := Pod{Namespace: namespace, HostNetwork: true}
		for _, number := range declared {
			pod.Ports = append(pod.Ports, PodPort{corev1.ProtocolTCP, number})
		}
		return pod
	}
	at := map[string]Occupants{
		"10.1.0.1":   {Pods: []Pod{{Namespace: "shop"}}},
		"10.1.0.2":   {Pods: []Pod{{Namespace: "other"}}},
		"10.1.0.7":   {Gateway: true, Pods: []Pod{{Namespace: "tombolo-system"}}},
		"fd00:1::7":  {Gateway: true},
		"10.1.0.8":   {APIServer: port.Port == 6443, Pods: []Pod{{Namespace: "kube-system"}}},
		"10.1.0.9":   {Service: port.Port == 80, Pods: []Pod{{Namespace: "shop"}}},
		"10.1.9.9":   {Pods: []Pod{onHost("kube-system", 10256), onHost("shop", 8080)}}, // a node in the range of pods
		"192.0.2.1":  {APIServer: port.Port == 6443, NodePort: port.Port == 30080, Pods: []Pod{onHost("kube-system", 10256), onHost("shop", 6443, 8080, 30080)}},
		"192.0.2.2":  {Pods: []Pod{onHost("other", 8080)}},
		"192.0.2.3":  {Gateway: true, Pods: []Pod{onHost("tombolo-system", 8443), onHost("shop", 8080, 10000, 29999)}},
		"2001:db8::": {Pods: []Pod{onHost("shop", 8080)}},
	}[ip.String()]
	at.AllPods = true
	at.NodePort = at.NodePort || port.Port == 30080
	return at
}

// An export leads to pods of its cluster only. What a gateway of its own would forward to another cluster is refused, and so
// are the addresses at which a gateway would reach what tenants must not reach.
//
// spec: W5
func TestBackendRules(t *testing.T) {
	t.Parallel()
	f := BackendRules{
		Namespace: "shop", At: occupied,
		Ranges: clusterset.OwnRanges{
			Pods: prefixes("10.1.0.0/16", "fd00:1::/64"), Nodes: prefixes("192.0.2.0/28"), Services: prefixes("10.1.200.0/24", "fd00:1::ffff:0/112"),
		},
	}
	unknown := f
	unknown.Ranges = clusterset.OwnRanges{}
	const outside, allowed = "outside", ""
	const noHostPod = " is the address of a node, and no pod of namespace shop in its host network declares port "
	for name, test := range map[string]struct {
		address string
		port    int32
		want    string
		older   string // if the ranges are not known; the same if it is "="
	}{
		"a pod":                               {"10.1.0.1", 80, allowed, "="},
		"a pod of another namespace":          {"10.1.0.2", 80, allowed, "="},
		"a pod at a port of nodes":            {"10.1.0.1", 10250, allowed, "="},
		"a pod at the number of a node port":  {"10.1.0.1", 30080, allowed, "="},
		"an address in the range of pods":     {"10.1.5.5", 80, allowed, "="},
		"the bridge of a node, the kubelet":   {"10.1.0.254", 10250, "10.1.0.254 port 10250/TCP is the address of no pod, and the port is one of nodes", "="},
		"the bridge of a node, a node port":   {"10.1.0.254", 30080, "10.1.0.254 port 30080/TCP is the address of no pod, and the port is one of nodes", "="},
		"a pod, IPv6":                         {"fd00:1::1", 80, allowed, "="},
		"IPv4 in IPv6":                        {"::ffff:10.1.0.1", 80, `"::ffff:10.1.0.1" is not in canonical form`, "="},
		"IPv6 in another form":                {"fd00:1:0::1", 80, `"fd00:1:0::1" is not in canonical form`, "="},
		"a zone":                              {"fe80::1%eth0", 80, `"fe80::1%eth0" is not in canonical form`, "="},
		"a name":                              {"example.com", 80, `"example.com" is no IP address`, "="},
		"loopback":                            {"127.0.0.1", 80, "127.0.0.1 is loopback, link-local, multicast, broadcast or unspecified", "="},
		"loopback, IPv6":                      {"::1", 80, "::1 is loopback, link-local, multicast, broadcast or unspecified", "="},
		"the metadata service":                {"169.254.169.254", 80, "169.254.169.254 is loopback, link-local, multicast, broadcast or unspecified", "="},
		"the metadata service, IPv6":          {"fd00:ec2::254", 80, "fd00:ec2::254 is the address of a metadata service", "="},
		"link-local, IPv6":                    {"fe80::1", 80, "fe80::1 is loopback, link-local, multicast, broadcast or unspecified", "="},
		"multicast":                           {"224.0.0.1", 80, "224.0.0.1 is loopback, link-local, multicast, broadcast or unspecified", "="},
		"unspecified":                         {"0.0.0.0", 80, "0.0.0.0 is loopback, link-local, multicast, broadcast or unspecified", "="},
		"unspecified, IPv6":                   {"::", 80, ":: is loopback, link-local, multicast, broadcast or unspecified", "="},
		"broadcast":                           {"255.255.255.255", 80, "255.255.255.255 is loopback, link-local, multicast, broadcast or unspecified", "="},
		"a Service":                           {"10.1.200.1", 80, "10.1.200.1 is in a range of this cluster's Services", allowed},
		"a Service, IPv6":                     {"fd00:1::ffff:1", 80, "fd00:1::ffff:1 is in a range of this cluster's Services", allowed},
		"an external IP of a Service":         {"10.1.0.9", 80, "10.1.0.9 port 80/TCP is an address of a Service of this cluster", "="},
		"beside an external IP of a Service":  {"10.1.0.9", 81, allowed, "="},
		"a gateway":                           {"10.1.0.7", 10000, "10.1.0.7 is the address of a gateway of this cluster", "="},
		"the metrics of a gateway":            {"10.1.0.7", 8080, "10.1.0.7 is the address of a gateway of this cluster", "="},
		"a gateway, IPv6":                     {"fd00:1::7", 10000, "fd00:1::7 is the address of a gateway of this cluster", "="},
		"an API server in the range of pods":  {"10.1.0.8", 6443, "10.1.0.8 port 6443/TCP is this cluster's API server", "="},
		"a pod beside an API server":          {"10.1.0.8", 80, allowed, "="},
		"an API server of a node":             {"192.0.2.1", 6443, "192.0.2.1 port 6443/TCP is this cluster's API server", "="},
		"a pod in the host network":           {"192.0.2.1", 8080, allowed, "="},
		"a node port that it declares":        {"192.0.2.1", 30080, "192.0.2.1 port 30080/TCP is a node port of a Service", "="},
		"the kubelet":                         {"192.0.2.1", 10250, "192.0.2.1" + noHostPod + "10250/TCP", "="},
		"kube-proxy, of another namespace":    {"192.0.2.1", 10256, "192.0.2.1" + noHostPod + "10256/TCP", "="},
		"a node without a pod of shop":        {"192.0.2.2", 8080, "192.0.2.2" + noHostPod + "8080/TCP", "="},
		"a node without a pod in its network": {"192.0.2.4", 8080, "192.0.2.4" + noHostPod + "8080/TCP", allowed},
		"a node in the range of pods":         {"10.1.9.9", 10250, "10.1.9.9" + noHostPod + "10250/TCP", "="},
		"its pod in the host network":         {"10.1.9.9", 8080, allowed, "="},
		"a node that is in no range":          {"2001:db8::", 8080, allowed, "="},
		"its kubelet":                         {"2001:db8::", 10250, "2001:db8::" + noHostPod + "10250/TCP", "="},
		"beside a gateway of the host network, a listening port":       {"192.0.2.3", 10000, "192.0.2.3 is the address of a gateway of this cluster", "="},
		"beside a gateway of the host network, the last one":           {"192.0.2.3", 29999, "192.0.2.3 is the address of a gateway of this cluster", "="},
		"beside a gateway of the host network, its port":               {"192.0.2.3", 8443, "192.0.2.3" + noHostPod + "8443/TCP", "="},
		"beside a gateway of the host network, a pod":                  {"192.0.2.3", 8080, allowed, "="},
		"the hub, another cluster's API server, an external machine":   {"198.51.100.1", 443, outside, allowed},
		"an external machine, IPv6":                                    {"2001:db8:1::1", 443, outside, allowed},
		"a port of nodes at an address of which the cluster knows nil": {"198.51.100.1", 10250, outside, "198.51.100.1 port 10250/TCP is the address of no pod, and the port is one of nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.older == "=" {
				test.older = test.want
			}
			if test.want == outside {
				test.want = test.address + " is outside the cluster's pod and node CIDRs"
			}
			check.Equal(t, "with ranges", test.want, check.Message(f.Check(test.address, tcp(test.port))))
			check.Equal(t, "without ranges", test.older, check.Message(unknown.Check(test.address, tcp(test.port))))
		})
	}
}

// UDP is not TCP, and a port without a number is any of them.
//
// spec: W5
func TestBackendRulesPorts(t *testing.T) {
	t.Parallel()
	f := BackendRules{Namespace: "shop", Ranges: clusterset.OwnRanges{Pods: prefixes("10.1.0.0/16")}, At: occupied}
	udp, unset := tcp(8080), tcp(0)
	udp.Protocol = corev1.ProtocolUDP
	const problem = "192.0.2.1 is the address of a node, and no pod of namespace shop in its host network declares port "
	check.Equal(t, "UDP", problem+"8080/UDP", check.Message(f.Check("192.0.2.1", udp)))
	check.Equal(t, "any", problem+"of any number", check.Message(f.Check("192.0.2.1", unset)))
	check.Equal(t, "none", "", check.Message(f.Check("192.0.2.1", clusterset.EndpointPort{})))
	check.Equal(t, "any of a pod", "", check.Message(f.Check("10.1.0.1", unset)))
}

// Of a slice with several ports, an endpoint keeps those to which an export may lead. Sources are not changed.
//
// spec: W5
func TestBackendRulesApply(t *testing.T) {
	t.Parallel()
	f := BackendRules{Namespace: "shop", Ranges: clusterset.OwnRanges{Pods: prefixes("10.1.0.0/16")}, At: occupied}
	metrics := clusterset.EndpointPort{Name: "metrics", Protocol: corev1.ProtocolTCP, Port: 10250}
	slice := func(id string, ports []clusterset.EndpointPort, addresses ...string) clusterset.Slice {
		result := clusterset.Slice{Cluster: "a", ID: id, AddressType: "IPv4", Ports: ports, Endpoints: []clusterset.Endpoint{}}
		for _, address := range addresses {
			result.Endpoints = append(result.Endpoints, clusterset.Endpoint{Addresses: []string{address}, Ready: clusterset.True})
		}
		return result
	}
	both, first := []clusterset.EndpointPort{tcp(8080), metrics}, []clusterset.EndpointPort{tcp(8080)}
	sources := []clusterset.Slice{
		slice("0123456789", both, "10.1.0.1", "192.0.2.1", "192.0.2.2", "10.1.9.9", "198.51.100.1"),
		slice("1123456789", nil, "10.1.0.1", "10.1.0.7"),
	}
	got, leftOut := f.Apply(sources)
	want := []clusterset.Slice{
		slice("0123456789", both, "10.1.0.1"), slice(got[1].ID, first, "192.0.2.1", "10.1.9.9"), slice("1123456789", nil, "10.1.0.1"),
	}
	check.Equal(t, "slices", want, got)
	if !clusterset.IsSliceID(got[1].ID) || got[1].ID == got[0].ID {
		t.Errorf("the additional slice has ID %q", got[1].ID)
	}
	check.Equal(t, "outside of the ranges", []string{
		"198.51.100.1 is outside the cluster's pod and node CIDRs", "198.51.100.1 is outside the cluster's pod and node CIDRs",
	}, check.Messages(leftOut.OutsideRanges))
	const problem = " is the address of a node, and no pod of namespace shop in its host network declares port "
	check.Equal(t, "no pods", []string{
		"192.0.2.1" + problem + "10250/TCP", "192.0.2.2" + problem + "8080/TCP", "192.0.2.2" + problem + "10250/TCP",
		"10.1.9.9" + problem + "10250/TCP", "10.1.0.7 is the address of a gateway of this cluster",
	}, check.Messages(leftOut.NotPods))
	check.Equal(t, "endpoints of the source", 5, len(sources[0].Endpoints))
	check.Equal(t, "addresses of the source", "10.1.0.1", sources[0].Endpoints[0].Addresses[0])
}
