// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"fmt"
	"maps"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// behindGateway returns the view of a cluster with one gateway, of a service with a direct exporter a, and an exporter b in another
// network.
func behindGateway() view {
	direct, remote := exportOf("a", 1, http), exportOf("b", 2, http)
	remote.Ports = append(remote.Ports, clusterset.Port{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53})
	remote.Available = clusterset.Availability{http.ID(): 1, remote.Ports[1].ID(): 1}
	v := view{Observed: Observed{
		Namespace: NamespaceAllowed, Families: []corev1.IPFamily{corev1.IPv4Protocol}, Policies: liveness.DefaultPolicies(),
		States: map[clusterset.ClusterID]liveness.State{"a": liveness.Live, "b": liveness.Live},
		Sources: sources.Sources{
			Key: key,
			Hub: sources.Hub{
				Exports:   []clusterset.Export{direct, remote},
				Exporters: map[clusterset.ClusterID]reach.Cluster{"a": {}, "b": {Network: "cloud", Gateway: true}},
				Slices: []clusterset.Slice{{
					Cluster: "a", ID: "0", AddressType: "IPv4", Ports: []clusterset.EndpointPort{{Name: "http", Protocol: "TCP", Port: 8080}},
					Endpoints: []clusterset.Endpoint{{Addresses: []string{"10.1.0.1"}}},
				}},
			},
			Gateways: &sources.Gateways{Slices: []clusterset.Slice{{
				Cluster: "own", ID: "g", AddressType: "IPv4", Endpoints: []clusterset.Endpoint{{Addresses: []string{"10.9.0.1"}, NodeName: "n1"}},
			}}},
		},
	}}
	v.states = maps.Clone(v.States)
	v.choose(map[ports.Owner]int32{{Service: key, Cluster: "b", Port: 80}: 10000})
	return v
}

// choose does what gather does when it has read the sources.
func (v *view) choose(allocated map[ports.Owner]int32) {
	v.choosePaths()
	v.Numbers.Ports = map[ports.Owner]int32{}
	for _, owner := range v.wantedPorts() {
		if port, ok := allocated[owner]; ok {
			v.Numbers.Ports[owner] = port
		}
	}
	v.chooseGateways()
}

// served returns the ports and addresses of the mirrored slices by source cluster, such as "http:10000 10.9.0.1".
func served(slices []*discoveryv1.EndpointSlice) map[string][]string {
	result := map[string][]string{}
	for _, s := range slices {
		text := result[string(SourceOf(s))]
		for _, p := range s.Ports {
			text = append(text, *p.Name)
		}
		for _, e := range s.Endpoints {
			text = append(text, e.Addresses...)
		}
		result[string(SourceOf(s))] = append(text, s.Annotations[clusterset.AnnotationGatewayPorts])
	}
	return result
}

func desiredSlices(d decision) []*discoveryv1.EndpointSlice {
	return append(render.Slices(d.merged, d.site, d.slices), d.kept...)
}

// A service has direct and gateway sources at once.
// spec: W1, G2, G10
func TestGatewaySource(t *testing.T) {
	t.Parallel()
	v := behindGateway()
	d := decide(v)
	want := map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {"http", "10.9.0.1", "80=10000"}}
	check.Equal(t, "slices", want, served(desiredSlices(d)))
	left := []string{"port 53/UDP of cluster b is left out: gateways support only TCP"}
	check.Equal(t, "left out", left, check.Messages(unusable(v, d)))
}

// spec: G2, W4
func TestUnusableSource(t *testing.T) {
	t.Parallel()
	const other = "cluster b is in network cloud, this cluster in network default, and "
	for name, test := range map[string]struct {
		change func(*view)
		want   string
		served map[string][]string
	}{
		"no gateway": {
			func(v *view) { v.Sources.Gateways = nil },
			other + `this cluster has no gateway: if the pods of both reach each other, set one network in both Members`,
			map[string][]string{"a": {"http", "10.1.0.1", ""}},
		},
		"headless, without hostnames": {
			func(v *view) {
				for i := range v.Sources.Hub.Exports {
					v.Sources.Hub.Exports[i].Type, v.Sources.Hub.Exports[i].Affinity = mcsv1beta1.Headless, clusterset.Affinity{}
				}
			},
			other + "its record has no hostnames: wait until its agent has published it again, or upgrade that agent and the hub's CRDs",
			map[string][]string{"a": {"http", "10.1.0.1", ""}},
		},
		"of another type": {
			func(v *view) { v.Sources.Hub.Exports[1].Type = mcsv1beta1.Headless },
			"cluster b exports the service as Headless, but it is imported as ClusterSetIP: gateways need the same type. Export it as ClusterSetIP",
			map[string][]string{"a": {"http", "10.1.0.1", ""}},
		},
		"no free port": {
			func(*view) {},
			"port 80/TCP of cluster b is left out: the gateways' 20000 listening ports are all in use, or that cluster already uses its share of the last quarter. Import fewer services through gateways",
			map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {""}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := behindGateway()
			test.change(&v)
			v.choose(nil)
			d := decide(v)
			got := unusable(v, d)
			if len(got) == 0 || got[0].Error() != test.want {
				t.Errorf("unusable: %v, want %s", got, test.want)
			}
			check.Equal(t, "slices", test.served, served(desiredSlices(d)))
		})
	}
}

// What the hub lost stays, with the gateways that the cluster has now; and the addresses of a member that has moved to another network
// do not.
// spec: G2, W3
func TestKeptGatewaySource(t *testing.T) {
	t.Parallel()
	v := behindGateway()
	d := decide(v)
	v.Mirrored = desiredSlices(d)
	v.ServiceImport = importOf(held80, "a", "b")
	v.Sources.Hub.Exports, v.Sources.Hub.Slices, v.Sources.Hub.Exporters = nil, nil, nil
	v.missing = map[clusterset.ClusterID]sources.Missing{"a": {Export: true, Slices: []string{"0"}}, "b": {Export: true}}
	v.Sources.Gateways.Slices[0].Endpoints[0].Addresses = []string{"10.9.0.2"}
	v.choose(map[ports.Owner]int32{{Service: key, Cluster: "b", Port: 80}: 10000})
	want := map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {"http", "10.9.0.2", "80=10000"}}
	check.Equal(t, "slices while the exports are missing", want, served(desiredSlices(decide(v))))
	check.Equal(t, "ports", map[ports.Owner]int32{{Service: key, Cluster: "b", Port: 80}: 10000}, v.Numbers.Ports)

	moved := exportOf("a", 1, http)
	v.Sources.Hub.Exports = []clusterset.Export{moved}
	v.Sources.Hub.Exporters = map[clusterset.ClusterID]reach.Cluster{"a": {Network: "elsewhere"}}
	v.missing["a"] = sources.Missing{Slices: []string{"0"}}
	v.choose(nil)
	check.Equal(t, "addresses of another network", []string(nil), served(desiredSlices(decide(v)))["a"])
}

// An exporter that has come from another network is reached through gateways until its addresses are on the hub. A service without
// endpoints has none, and one that was never reached through gateways does not wait.
// spec: W1, W2
func TestSourceThatCameFromAnotherNetwork(t *testing.T) {
	t.Parallel()
	allocated := map[ports.Owner]int32{{Service: key, Cluster: "b", Port: 80}: 10000}
	gateway := map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {"http", "10.9.0.1", "80=10000"}}
	alone := map[string][]string{"a": {"http", "10.1.0.1", ""}}
	for name, test := range map[string]struct {
		change func(*view)
		want   map[string][]string
	}{
		"no address is on the hub": {func(*view) {}, gateway},
		"the addresses are on the hub": {func(v *view) {
			slice := v.Sources.Hub.Slices[0]
			slice.Cluster, slice.Endpoints = "b", []clusterset.Endpoint{{Addresses: []string{"10.2.0.1"}}}
			v.Sources.Hub.Slices = append(v.Sources.Hub.Slices, slice)
		}, map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {"http", "10.2.0.1", ""}}},
		"it has no endpoints":            {func(v *view) { v.Sources.Hub.Exports[1].Available = clusterset.Availability{http.ID(): 0} }, alone},
		"it has not been reached before": {func(v *view) { v.Mirrored = nil }, alone},
		"it has no gateway, as the hub says, but there are slices": {func(v *view) {
			v.Sources.Hub.Exporters = map[clusterset.ClusterID]reach.Cluster{"a": {}, "b": {}}
		}, gateway},
		"this cluster has no gateway": {func(v *view) { v.Sources.Gateways = nil }, alone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := behindGateway()
			v.Mirrored = desiredSlices(decide(v))
			v.Sources.Hub.Exporters = map[clusterset.ClusterID]reach.Cluster{"a": {}, "b": {Gateway: true}}
			test.change(&v)
			v.choose(allocated)
			check.Equal(t, "slices", test.want, served(desiredSlices(decide(v))))
			check.Equal(t, "obstacles", []string(nil), check.Messages(v.obstacles))
		})
	}
}

// notReachingB returns what the cluster's one gateway reports while it does not reach b.
func notReachingB() *reach.Reach {
	result := &reach.Reach{}
	result.Report("g", &gatewayv1alpha1.GatewayReport{
		Addresses: []string{"10.9.0.1"}, Clusters: []gatewayv1alpha1.ClusterReachability{{Cluster: "b"}},
	})
	return result
}

// If no gateway reaches a source, its ports that another source serves are withdrawn, and its listening ports stay.
// spec: G8
func TestSourceThatNoGatewayReaches(t *testing.T) {
	t.Parallel()
	known := notReachingB()
	v := behindGateway()
	v.Reach = known.Seen()
	v.chooseGateways()
	want := map[string][]string{"a": {"http", "10.1.0.1", ""}, "b": {"10.9.0.1", "80=10000"}}
	check.Equal(t, "another source serves", want, served(desiredSlices(decide(v))))
	check.Equal(t, "states", map[clusterset.ClusterID]liveness.State{"a": liveness.Live, "b": liveness.Silent}, v.states)
	v.Mirrored = desiredSlices(decide(v))
	v.Sources.Hub.Exporters["b"] = reach.Cluster{} // it has moved into the network of this cluster
	v.Sources.Hub.Slices = append(v.Sources.Hub.Slices, clusterset.Slice{Cluster: "b", ID: "0", AddressType: "IPv4"})
	v.states["b"] = liveness.Live
	v.choosePaths()
	v.Reach = known.Seen()
	v.chooseGateways()
	check.Equal(t, "state of b, which is reached directly", liveness.Live, v.states["b"])
}

// If no other source serves, a source that no gateway reaches stays.
// spec: G8
func TestOnlySourceThatNoGatewayReaches(t *testing.T) {
	t.Parallel()
	known := notReachingB()
	v := behindGateway()
	v.Reach = known.Seen()
	v.chooseGateways()
	v.Sources.Hub.Exports, v.Sources.Hub.Slices = v.Sources.Hub.Exports[1:], nil
	want := map[string][]string{"b": {"http", "10.9.0.1", "80=10000"}}
	check.Equal(t, "no other source serves", want, served(desiredSlices(decide(v))))
}

// A cluster reaches exporters of another IP family through gateways.
// spec: G2
func TestGatewayFamilies(t *testing.T) {
	t.Parallel()
	v := behindGateway()
	v.Sources.Hub.Exports = v.Sources.Hub.Exports[1:]
	v.Sources.Hub.Exports[0].IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
	v.choose(map[ports.Owner]int32{{Service: key, Cluster: "b", Port: 80}: 10000})
	d := decide(v)
	if got := render.Families(d.merged, d.site); !render.Supported(d.merged, d.site) || len(got) != 1 || got[0] != corev1.IPv4Protocol {
		t.Errorf("families %v, want those of the cluster", got)
	}
	if got := served(desiredSlices(d)); got["b"] == nil {
		t.Errorf("slices %v, want one of b", got)
	}
}

// TestManyExporters: the time to choose the paths is proportional to the number of exporters. With 20,000 exporters it is a tenth of a
// second; if it were quadratic, more than ten. It is the time of the CPU, so that other programs do not matter.
func TestManyExporters(t *testing.T) {
	v := manyExporters(20_000)
	begin := processorTime(t)
	v.choosePaths()
	leftOutPorts(v, merge.Merged{})
	if spent := processorTime(t) - begin; spent > 6*time.Second { // with the race detector, it is a second
		t.Errorf("it takes %v with 20,000 exporters", spent)
	}
}

// processorTime returns the processor time of this process.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	check.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// manyExporters returns the view of an import with so many exporters, each with a slice, half of them in another network.
func manyExporters(n int) view {
	v := view{
		Observed: Observed{Namespace: NamespaceAllowed, Policies: liveness.DefaultPolicies(), Numbers: Numbers{Ports: map[ports.Owner]int32{}}},
		states:   map[clusterset.ClusterID]liveness.State{},
	}
	v.Sources.Key, v.Sources.Gateways = key, &sources.Gateways{}
	v.Sources.Hub.Exporters = map[clusterset.ClusterID]reach.Cluster{}
	for i := range n {
		id := clusterset.ClusterID(fmt.Sprint("cluster-", i))
		export := exportOf(id, i+1, http)
		export.Available = clusterset.Availability{http.ID(): 1}
		v.Sources.Hub.Exports = append(v.Sources.Hub.Exports, export)
		if i%2 == 0 {
			v.Sources.Hub.Exporters[id] = reach.Cluster{Network: "cloud", Gateway: true}
		}
		v.Numbers.Ports[ports.Owner{Service: key, Cluster: id, Port: 80}] = 10000
		v.Sources.Hub.Slices = append(v.Sources.Hub.Slices, clusterset.Slice{Cluster: id, ID: "0"})
		v.Mirrored = append(v.Mirrored, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{mcsv1beta1.LabelSourceCluster: string(id)}}})
	}
	return v
}
