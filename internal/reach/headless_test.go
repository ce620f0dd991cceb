// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Hostnames with the same ports share a slice; one without a virtual IP is left out; and a slice remains if none is available.
// spec: G9
func TestVirtualSlices(t *testing.T) {
	t.Parallel()
	export := exportOf(2, http, dns)
	export.Type = mcsv1beta1.Headless
	export.Hostnames = clusterset.Hostnames{"db-10": {80: 8080}, "db-2": {80: 8080}, "db-3": {80: 9090}, "db-4": {80: 8080}}
	addresses := map[string][]netip.Addr{}
	for hostname, address := range map[string]string{"db-10": "10.96.0.1", "db-2": "10.96.0.2", "db-3": "10.96.0.3", "gone": "10.96.0.4"} {
		addresses[hostname] = []netip.Addr{netip.MustParseAddr(address), netip.MustParseAddr("fd00::" + address[len(address)-1:])}
	}
	both := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	got := map[string][]string{}
	ids := map[string]bool{}
	for _, slice := range VirtualSlices(export, both, addresses) {
		ids[slice.ID] = true
		if slice.Listen == nil || len(slice.Listen) > 0 || len(slice.Ports) != 1 || slice.Ports[0].Name != "http" {
			t.Errorf("slice %+v, want one port, and the mark of gateways without listening ports", slice)
		}
		for _, e := range slice.Endpoints {
			key := string(slice.AddressType) + " " + map[int32]string{8080: "8080", 9090: "9090"}[slice.Ports[0].Port]
			got[key] = append(got[key], e.Hostname+" "+e.Addresses[0])
		}
	}
	want := map[string][]string{
		"IPv4 8080": {"db-2 10.96.0.2", "db-10 10.96.0.1"}, "IPv4 9090": {"db-3 10.96.0.3"},
		"IPv6 8080": {"db-2 fd00::2", "db-10 fd00::1"}, "IPv6 9090": {"db-3 fd00::3"},
	}
	if diff := cmp.Diff(want, got); diff != "" || len(ids) != 4 {
		t.Errorf("%d slices; endpoints (-want +got):\n%s", len(ids), diff)
	}
	export.Hostnames = clusterset.Hostnames{}
	none := VirtualSlices(export, both, addresses)
	if len(none) != 2 || len(none[0].Endpoints)+len(none[0].Ports) > 0 || none[0].Listen == nil || !ids[none[0].ID] {
		t.Errorf("no hostname is available: %+v, want an empty slice in each family", none)
	}
}

// spec: G9
func TestHostnameSlices(t *testing.T) {
	t.Parallel()
	export := exportOf(0, http)
	export.Hostnames = clusterset.Hostnames{"db-0": {80: 8080}}
	for hostname, want := range map[string]int{"db-0": 2, "db-1": 0, "": 0} {
		listen := map[int32]int32{80: 10000}
		got := HostnameSlices(export, hostname, []corev1.IPFamily{corev1.IPv4Protocol}, Via{Gateways: gatewaysOf("10.1.0.1", "10.1.0.2", "10.1.0.3"), Listen: listen})
		if len(got) != 1 || len(got[0].Endpoints) != want || len(got[0].Ports) != min(want, 1) || got[0].Listen[80] != 10000 {
			t.Errorf("slices of %q: %+v, want %d gateways", hostname, got, want)
		}
	}
	if export.Available[http.ID()] != 0 {
		t.Error("the argument has changed")
	}
}
