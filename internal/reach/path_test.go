// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	web  = clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	http = clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	dns  = clusterset.Port{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53}
)

func exportOf(available int32, ports ...clusterset.Port) clusterset.Export {
	export := clusterset.Export{Cluster: "berlin", Key: web, Type: mcsv1beta1.ClusterSetIP, Ports: ports, Available: clusterset.Availability{}}
	for _, port := range ports {
		export.Available[port.ID()] = available
	}
	return export
}

// spec: W1, W2, W4
func TestChoose(t *testing.T) {
	t.Parallel()
	ready, headless, named, unpublished := exportOf(2, http), exportOf(2, http), exportOf(2, http), exportOf(2, http)
	headless.Type, named.Type, unpublished.Available = mcsv1beta1.Headless, mcsv1beta1.Headless, nil
	named.Hostnames = clusterset.Hostnames{}
	gateway := Cluster{Network: "cloud", Gateway: true}
	for name, test := range map[string]struct {
		local, source Cluster
		export        clusterset.Export
		want          Path
		reason        string
	}{
		"one network":                     {export: ready, want: Direct},
		"one network with a name":         {local: gateway, source: gateway, export: ready, want: Direct},
		"one network, headless":           {export: headless, want: Direct},
		"one network, addresses by name":  {source: Cluster{Publish: hubv1alpha1.PublishAddresses}, export: unpublished, want: Direct},
		"two networks":                    {local: Cluster{Gateway: true}, source: gateway, export: ready, want: Gateway},
		"no addresses in one network":     {local: gateway, source: Cluster{"cloud", hubv1alpha1.PublishAvailability, true}, export: ready, want: Gateway},
		"nothing is available at present": {local: Cluster{Gateway: true}, source: gateway, export: exportOf(0, http), want: Gateway},
		"no local gateway": {
			source: gateway, export: ready, want: None,
			reason: `cluster berlin is in network cloud, this cluster in network default, and this cluster has no gateway: if the pods of both reach each other, set one network in both Members`,
		},
		"no gateway at the source": {
			local: gateway, source: Cluster{}, export: ready, want: None,
			reason: `cluster berlin is in network default, this cluster in network cloud, and it publishes no gateway: if the pods of both reach each other, set one network in both Members`,
		},
		"no addresses and no gateway": {
			source: Cluster{Publish: hubv1alpha1.PublishAvailability}, local: Cluster{Gateway: true}, export: ready, want: None,
			reason: `cluster berlin publishes no addresses, and it publishes no gateway: set publish in its Member to Addresses`,
		},
		"no availability": {
			local: Cluster{Gateway: true}, source: gateway, export: unpublished, want: None,
			reason: "cluster berlin is in network cloud, this cluster in network default, and its record has no availability: wait until its agent has published it again, or upgrade that agent",
		},
		"headless": {local: Cluster{Gateway: true}, source: gateway, export: named, want: Gateway},
		"headless, of an old agent": {
			local: Cluster{Gateway: true}, source: gateway, export: headless, want: None,
			reason: "cluster berlin is in network cloud, this cluster in network default, and its record has no hostnames: wait until its agent has published it again, or upgrade that agent and the hub's CRDs",
		},
		"UDP only": {
			local: Cluster{Gateway: true}, source: gateway, export: exportOf(2, dns), want: None,
			reason: "cluster berlin is in network cloud, this cluster in network default, and the service has no TCP port, and gateways support no other: export a TCP port",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ChoosePath(test.local, test.source, test.export)
			reason := ""
			if err != nil {
				reason = err.Error()
			}
			if got != test.want || reason != test.reason {
				t.Errorf("%s (%s), want %s (%s)", got, reason, test.want, test.reason)
			}
			if IsDirect(test.local, test.source) != (got == Direct) {
				t.Error("IsDirect and ChoosePath differ")
			}
		})
	}
}

func gatewaysOf(addresses ...string) []clusterset.Slice {
	slice := clusterset.Slice{Cluster: "own", ID: "0", AddressType: discoveryv1.AddressTypeIPv4}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, clusterset.Endpoint{Addresses: []string{address}, NodeName: "n", Zone: "z"})
	}
	return []clusterset.Slice{slice}
}

// spec: G2, G10
func TestSlices(t *testing.T) {
	t.Parallel()
	admin := clusterset.Port{Name: "admin", Protocol: corev1.ProtocolTCP, Port: 9090, AppProtocol: "http"}
	unready := gatewaysOf("10.1.0.3")
	unready[0].Endpoints[0].Ready = clusterset.False
	unready[0].Endpoints = append(unready[0].Endpoints, clusterset.Endpoint{})
	export := exportOf(1, http, admin, dns)
	export.Available[admin.ID()] = 0
	listen := map[int32]int32{80: 10000, 9090: 10001}
	got := Slices(export, []corev1.IPFamily{"IPv4", "IPv6"}, Via{Gateways: append(gatewaysOf("10.1.0.1"), unready...), Listen: listen})
	want := []clusterset.Slice{
		{
			Cluster: "berlin", ID: clusterset.SliceID("gateway/IPv4"), AddressType: discoveryv1.AddressTypeIPv4, Listen: listen,
			Ports:     []clusterset.EndpointPort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 10000}},
			Endpoints: []clusterset.Endpoint{{Addresses: []string{"10.1.0.1"}, Ready: clusterset.True, NodeName: "n", Zone: "z"}},
		},
		{
			Cluster: "berlin", ID: clusterset.SliceID("gateway/IPv6"), AddressType: discoveryv1.AddressTypeIPv6, Listen: listen,
			Ports: []clusterset.EndpointPort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 10000}},
		},
	}
	check.Equal(t, "slices", want, got)
	for _, slice := range Slices(exportOf(2, http), []corev1.IPFamily{"IPv4"}, Via{Gateways: gatewaysOf("10.1.0.1")}) {
		if len(slice.Ports)+len(slice.Endpoints) > 0 {
			t.Errorf("a port without a listening port is served: %+v", slice)
		}
	}
}

// Gateways terminate as the available endpoints of their source do, if no port has a ready one.
// spec: G2, P1
func TestTerminatingSource(t *testing.T) {
	t.Parallel()
	admin := clusterset.Port{Name: "admin", Protocol: corev1.ProtocolTCP, Port: 9090}
	for name, test := range map[string]struct {
		terminating map[clusterset.PortID]bool
		want        clusterset.Endpoint
	}{
		"none":     {nil, clusterset.Endpoint{Ready: clusterset.True}},
		"one port": {map[clusterset.PortID]bool{http.ID(): true}, clusterset.Endpoint{Ready: clusterset.True}},
		"both": {
			map[clusterset.PortID]bool{http.ID(): true, admin.ID(): true},
			clusterset.Endpoint{Ready: clusterset.False, Serving: clusterset.True, Terminating: clusterset.True},
		},
	} {
		export := exportOf(2, http, admin)
		export.Terminating, test.want.Addresses, test.want.NodeName, test.want.Zone = test.terminating, []string{"10.1.0.1"}, "n", "z"
		got := Slices(export, []corev1.IPFamily{"IPv4"}, Via{Gateways: gatewaysOf("10.1.0.1"), Listen: map[int32]int32{80: 10000, 9090: 10001}})
		check.Equal(t, fmt.Sprintf("%s: gateways", name), []clusterset.Endpoint{test.want}, got[0].Endpoints)
	}
}

// TestWeights: gateways are listed in proportion to the endpoints of a source.
//
// spec: G2
func TestWeights(t *testing.T) {
	t.Parallel()
	for available, want := range []int{0, 1, 2} {
		got := Slices(exportOf(int32(available), http), []corev1.IPFamily{"IPv4"}, Via{Gateways: gatewaysOf("10.1.0.1", "10.1.0.2", "10.1.0.3"), Listen: map[int32]int32{80: 10000}})
		if n := len(got[0].Endpoints); n != want {
			t.Errorf("%d available endpoints: %d gateways, want %d", available, n, want)
		}
	}
}

// Min(n, gateways) gateways serve; the end of one changes only the slices that had it; order and duplicates have no effect.
//
// spec: G2
func TestEndpoints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var addresses []string
		for i := range rapid.IntRange(0, 8).Draw(t, "gateways") {
			addresses = append(addresses, fmt.Sprintf("10.1.0.%d", i+1))
		}
		key := clusterset.ServiceKey{Namespace: "shop", Name: rapid.StringMatching("[a-z]{1,5}").Draw(t, "service")}
		n := rapid.IntRange(0, 2).Draw(t, "n")
		chosen := func(addresses []string) []string {
			var result []string
			for _, e := range (Via{Gateways: gatewaysOf(addresses...)}).Endpoints(key, "berlin", discoveryv1.AddressTypeIPv4, n) {
				result = append(result, e.Addresses...)
			}
			return result
		}
		got := chosen(addresses)
		if len(got) != min(n, len(addresses)) {
			t.Fatalf("%d of %d gateways, want at most %d", len(got), len(addresses), n)
		}
		shuffled := rapid.Permutation(append(slices.Clone(addresses), addresses...)).Draw(t, "order")
		if again := chosen(shuffled); !slices.Equal(got, again) {
			t.Fatalf("%v, in another order %v", got, again)
		}
		for i, address := range addresses {
			left := slices.Delete(slices.Clone(addresses), i, i+1)
			if after := chosen(left); !slices.Contains(got, address) && !slices.Equal(got, after) {
				t.Fatalf("without the unused %s: %v, before %v", address, after, got)
			}
		}
	})
}

// All gateways get a share of the services.
func TestEndpointsAreSpread(t *testing.T) {
	t.Parallel()
	uses := map[string]int{}
	for i := range 300 {
		key := clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprint("web-", i)}
		for _, e := range (Via{Gateways: gatewaysOf("10.1.0.1", "10.1.0.2", "10.1.0.3")}).Endpoints(key, "berlin", discoveryv1.AddressTypeIPv4, 1) {
			uses[e.Addresses[0]]++
		}
	}
	if counts := slices.Sorted(maps.Values(uses)); len(counts) != 3 || counts[0] < 60 {
		t.Errorf("uses of the gateways: %v, want about 100 of each", uses)
	}
}
