// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// headlessBehindGateway is behindGateway for a headless service, with hostnames in cluster b.
func headlessBehindGateway(hostnames clusterset.Hostnames) view {
	v := behindGateway()
	for i := range v.Sources.Hub.Exports {
		export := &v.Sources.Hub.Exports[i]
		export.Type, export.Affinity, export.IPFamilies = mcsv1beta1.Headless, clusterset.Affinity{}, []corev1.IPFamily{corev1.IPv4Protocol}
	}
	v.Sources.Hub.Exports[1].Hostnames = hostnames
	return v
}

// cluster is what an API server and the allocators store for one import.
type cluster struct {
	room      int // for virtual IPs
	allocator map[ports.Owner]int32
	addresses int
	view      view
}

func newCluster(v view) *cluster {
	return &cluster{
		room: MaxVirtualIPs, view: v, allocator: map[ports.Owner]int32{},
	}
}

// reconcile does what Reconcile does, and stores the result as the existing objects.
func (c *cluster) reconcile(t check.T) decision {
	v := &c.view
	v.choosePaths()
	request := v.wantedVirtualIPs()
	granted := slices.Concat(request.Used, request.Unused)
	v.Numbers.VirtualIPs = granted[:min(len(granted), c.room)]
	for _, owner := range v.wantedPorts() {
		if c.allocator[owner] == 0 {
			c.allocator[owner] = ports.First + int32(len(c.allocator))
		}
	}
	v.choose(c.allocator)
	var existing []*corev1.Service
	for _, service := range decide(*v).virtual.services {
		at := slices.IndexFunc(v.VirtualServices, func(s *corev1.Service) bool { return s.Name == service.Name })
		if at >= 0 {
			service.Spec.ClusterIPs = v.VirtualServices[at].Spec.ClusterIPs
		} else {
			c.addresses++
			service.Spec.ClusterIPs = []string{fmt.Sprintf("10.96.%d.%d", c.addresses/250, c.addresses%250+1)}
		}
		existing = append(existing, service)
	}
	v.VirtualServices = existing
	d := decide(*v)
	v.VirtualSlices, v.Mirrored = d.virtual.slices, desiredSlices(d)
	return d
}

// resolved returns the addresses of the endpoints of cluster b by hostname.
func resolved(mirrored []*discoveryv1.EndpointSlice) map[string]string {
	result := map[string]string{}
	for _, slice := range mirrored {
		for _, endpoint := range slice.Endpoints {
			if SourceOf(slice) == "b" {
				hostname := ""
				if endpoint.Hostname != nil {
					hostname = *endpoint.Hostname
				}
				result[hostname] += strings.Join(endpoint.Addresses, " ")
			}
		}
	}
	return result
}

// leads returns the ports, endpoints and listening ports of the slices of virtual IPs by hostname.
func leads(all []*discoveryv1.EndpointSlice) map[string][]string {
	result := map[string][]string{}
	for hostname, slice := range byHostname(all) {
		result[hostname] = slices.Concat(served([]*discoveryv1.EndpointSlice{slice})["b"], []string{slice.Labels[clusterset.LabelGateway]})
	}
	return result
}

func byHostname(all []*discoveryv1.EndpointSlice) map[string]*discoveryv1.EndpointSlice {
	result := map[string]*discoveryv1.EndpointSlice{}
	for _, slice := range all {
		result[slice.Labels[clusterset.LabelHostname]] = slice
	}
	return result
}

// Each available hostname is an endpoint with its virtual IP, which leads to a gateway. One that is not available keeps its virtual IP and
// its listening port.
// spec: G9
func TestHeadlessSource(t *testing.T) {
	t.Parallel()
	c := newCluster(headlessBehindGateway(clusterset.Hostnames{"db-0": {80: 8080}, "db-1": {80: 8080}, "": {80: 9090}}))
	d := c.reconcile(t)
	want := map[string]string{"": "10.96.0.2", "db-0": "10.96.0.3", "db-1": "10.96.0.4"}
	check.Equal(t, "addresses", want, resolved(desiredSlices(d)))
	wantLeads := map[string][]string{
		"": {"http", "10.9.0.1", "80=10000", "true"}, "db-0": {"http", "10.9.0.1", "80=10001", "true"}, "db-1": {"http", "10.9.0.1", "80=10002", "true"},
	}
	check.Equal(t, "slices of virtual IPs", wantLeads, leads(d.virtual.slices))
	for _, slice := range desiredSlices(d) {
		if listen, err := render.ListeningPorts(slice); SourceOf(slice) == "b" && (err != nil || len(listen) > 0) {
			t.Errorf("mirrored slice %s has listening ports %v, %v", slice.Name, listen, err)
		}
	}
	c.view.Sources.Hub.Exports[1].Hostnames = clusterset.Hostnames{"db-1": {80: 8080}}
	d = c.reconcile(t)
	check.Equal(t, "addresses without db-0", map[string]string{"db-1": "10.96.0.4"}, resolved(desiredSlices(d)))
	wantLeads[""], wantLeads["db-0"] = []string{"80=10000", "true"}, []string{"80=10001", "true"}
	check.Equal(t, "slices without db-0", wantLeads, leads(d.virtual.slices))
	for _, service := range d.virtual.services {
		if len(service.Spec.Ports) != 1 {
			t.Errorf("Service of %s has ports %v, want one", service.Labels[clusterset.LabelHostname], service.Spec.Ports)
		}
	}
}

// What the hub lost stays; what was withdrawn, has another type, or is reached directly now goes; and what no gateway can reach at present
// keeps its addresses.
// spec: G9
func TestVirtualIPsStay(t *testing.T) {
	t.Parallel()
	first := map[string]string{"db-0": "10.96.0.2"}
	for name, test := range map[string]struct {
		change         func(*view)
		services, ends int // ends are the endpoints of slices of virtual IPs
		resolved       map[string]string
	}{
		"nothing": {func(*view) {}, 1, 1, first},
		"missing": {
			func(v *view) {
				v.Sources.Hub.Exports, v.missing = v.Sources.Hub.Exports[:1], map[clusterset.ClusterID]sources.Missing{"b": {Export: true}}
			}, 1, 1, first,
		},
		"withdrawn":       {func(v *view) { v.Sources.Hub.Exports = v.Sources.Hub.Exports[:1] }, 0, 0, map[string]string{}},
		"no gateway here": {func(v *view) { v.Sources.Gateways = nil }, 1, 0, map[string]string{}},
		"another type": {
			func(v *view) {
				for i := range v.Sources.Hub.Exports {
					v.Sources.Hub.Exports[i].Type = mcsv1beta1.ClusterSetIP
				}
			}, 0, 0, map[string]string{"": "10.9.0.1"},
		},
		"only its type is another": {func(v *view) { v.Sources.Hub.Exports[1].Type = mcsv1beta1.ClusterSetIP }, 0, 0, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(headlessBehindGateway(clusterset.Hostnames{"db-0": {80: 8080}}))
			c.reconcile(t)
			test.change(&c.view)
			d := c.reconcile(t)
			ends := 0
			for _, slice := range d.virtual.slices {
				ends += len(slice.Endpoints)
			}
			check.Equal(t, "Services and endpoints", [2]int{test.services, test.ends}, [2]int{len(d.virtual.services), ends})
			check.Equal(t, "addresses", test.resolved, resolved(desiredSlices(d)))
		})
	}
}

// spec: G9, G10
func TestLeftOutHostnames(t *testing.T) {
	t.Parallel()
	c := newCluster(headlessBehindGateway(clusterset.Hostnames{"db-0": {80: 8080}, "db-1": {80: 8080}}))
	c.view.Sources.Hub.Exports[1].HostnamesLeftOut = 12
	c.room = 1
	d := c.reconcile(t)
	want := []string{
		"port 53/UDP of cluster b is left out: gateways support only TCP",
		"12 hostnames of cluster b are left out: it publishes at most 100 of a headless service. Spread the pods over several services",
		"1 hostnames of cluster b are left out: the 1000 virtual IPs of this cluster are all in use, or that cluster already uses its share of the last quarter. Import fewer headless services through gateways",
	}
	check.Equal(t, "left out", want, check.Messages(unusable(c.view, d)))
}

// A hostname for which no listening port is free is not an endpoint.
// spec: G2, G9
func TestHostnameWithoutListeningPort(t *testing.T) {
	t.Parallel()
	c := newCluster(headlessBehindGateway(clusterset.Hostnames{"db-0": {80: 8080}, "db-1": {80: 8080}}))
	c.reconcile(t)
	delete(c.allocator, ports.Owner{Service: key, Cluster: "b", Hostname: "db-0", Port: 80})
	c.view.choose(c.allocator)
	d := decide(c.view)
	check.Equal(t, "addresses", map[string]string{"db-1": "10.96.0.3"}, resolved(desiredSlices(d)))
	const want = "port 80/TCP of cluster b is left out: the gateways' 20000 listening ports are all in use, or that cluster already uses its share of the last quarter. Import fewer services through gateways"
	if got := unusable(c.view, d); len(got) != 2 || got[1].Error() != want && got[0].Error() != want {
		t.Errorf("unusable: %v, want %s", got, want)
	}
}

// A hostname keeps its address while the import lives, unless the bound needs those that are not available; two hostnames never share an
// address or a listening port; the objects that a reconcile desires are as stable as its input.
// spec: G9
func TestVirtualIPs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster(headlessBehindGateway(nil))
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			hostnames := clusterset.Hostnames{}
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 150), 0, clusterset.MaxHostnames, rapid.ID).Draw(t, "hostnames") {
				hostnames[fmt.Sprint("db-", n)] = map[int32]int32{80: rapid.Int32Range(8080, 8082).Draw(t, "port")}
			}
			c.view.Sources.Hub.Exports[1].Hostnames = hostnames
			before := c.view.existingVirtualIPs()
			d := c.reconcile(t)
			after := c.view.existingVirtualIPs()
			kept := 0
			for ip, service := range before {
				if again := after[ip]; again != nil {
					kept++
					check.Equal(t, "addresses of "+ip.Hostname, service.Spec.ClusterIPs, again.Spec.ClusterIPs)
				}
			}
			if len(after) > clusterset.MaxHostnames || kept < len(before) && len(after) < clusterset.MaxHostnames {
				t.Fatalf("%d of %d virtual IPs were kept, and there are %d", kept, len(before), len(after))
			}
			check.Equal(t, "hostnames", slices.Sorted(maps.Keys(hostnames)), slices.Sorted(maps.Keys(resolved(c.view.Mirrored))))
			seen := map[string]string{}
			for hostname, slice := range byHostname(d.virtual.slices) {
				for _, number := range portsOf(slice) {
					if other, taken := seen[fmt.Sprint(number)]; taken {
						t.Fatalf("port %d of %s and %s", number, hostname, other)
					}
					seen[fmt.Sprint(number)] = hostname
				}
				address := strings.Join(after[clusterset.VirtualIP{Service: key, Cluster: "b", Hostname: hostname}].Spec.ClusterIPs, " ")
				if other, taken := seen[address]; taken {
					t.Fatalf("address %s of %s and %s", address, hostname, other)
				}
				seen[address] = hostname
			}
			again := c.reconcile(t)
			check.Equal(t, "slices that the same input changes", 0, len(plan.EndpointSlices(again.virtual.slices, d.virtual.slices)))
		}
	})
}
