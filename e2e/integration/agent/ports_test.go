// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// The target, the number and the name of a port change one after the other. The slices follow, also where the EndpointSlice
// controller is late, and no port that was is left.
//
// spec: D7, R2, I5
func testPortChanges(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80), port("admin", 9090))
	source := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1")
	a.exportService(t, service, source)
	b.endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.1:admin:17090")
	before, _ := b.imported(t, k)
	follow := func() {
		t.Helper()
		source.Ports = slice(service, "v4", discoveryv1.AddressTypeIPv4).Ports
		lab.Must(t, a.Update(t.Context(), source))
	}

	service.Spec.Ports[0].TargetPort = intstr.FromInt32(7000)
	lab.Must(t, a.Update(t.Context(), service))
	follow()
	b.endpoints(t, k, "a 10.1.0.1:http:7000", "a 10.1.0.1:admin:17090")
	b.ports(t, k, "http:80", "admin:9090")

	service.Spec.Ports[0].Port = 81 // the endpoints do not change
	lab.Must(t, a.Update(t.Context(), service))
	b.ports(t, k, "http:81", "admin:9090")
	b.endpoints(t, k, "a 10.1.0.1:http:7000", "a 10.1.0.1:admin:17090")

	service.Spec.Ports[0].Name = "web"
	lab.Must(t, a.Update(t.Context(), service))
	b.ports(t, k, "web:81", "admin:9090")
	b.endpoints(t, k, "a 10.1.0.1:admin:17090") // the slice still says http, which is no port any more
	follow()
	b.endpoints(t, k, "a 10.1.0.1:web:7000", "a 10.1.0.1:admin:17090")

	service.Spec.Ports = []corev1.ServicePort{service.Spec.Ports[0]}
	lab.Must(t, a.Update(t.Context(), service))
	b.ports(t, k, "web:81")
	b.endpoints(t, k, "a 10.1.0.1:web:7000") // the slice still has the other
	service.Spec.Ports[0].Name = ""
	lab.Must(t, a.Update(t.Context(), service))
	follow()
	b.endpoints(t, k, "a 10.1.0.1:unnamed:7000")
	after, _ := b.imported(t, k)
	if diff := cmp.Diff(before.Spec.IPs, after.Spec.IPs); diff != "" {
		t.Errorf("addresses (-before +after):\n%s", diff)
	}
}

// ports waits until an import and its derived Service have these "name:number" ports.
func (m *member) ports(t *testing.T, k key, want ...string) {
	t.Helper()
	eventually(t, func(context.Context) error {
		serviceImport, derived := m.imported(t, k)
		var inImport, inService []string
		for _, p := range serviceImport.Spec.Ports {
			inImport = append(inImport, fmt.Sprintf("%s:%d", p.Name, p.Port))
		}
		for _, p := range derived.Spec.Ports {
			inService = append(inService, fmt.Sprintf("%s:%d", p.Name, p.Port))
		}
		if diff := cmp.Diff([][]string{want, want}, [][]string{inImport, inService}); diff != "" {
			return fmt.Errorf("%s: ports of the import %s and of its derived Service (-want +got):\n%s", m.id, k, diff)
		}
		return nil
	})
}

// Hints are computed here for what asks for the same zone, whatever the source says, and only where all ready endpoints
// of the family get one.
//
// spec: D6, D7
func testHints(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	four := slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1", "10.1.0.2", "10.1.0.3")
	six := slice(service, "v6", discoveryv1.AddressTypeIPv6, "fd00:1::1")
	four.Endpoints[1].Zone = new("zone-2")
	four.Endpoints[2].Zone, four.Endpoints[2].Conditions.Ready = nil, new(false) // takes no traffic, so it needs no zone
	for i := range four.Endpoints {
		four.Endpoints[i].Hints = &discoveryv1.EndpointHints{
			ForZones: []discoveryv1.ForZone{{Name: "elsewhere"}}, ForNodes: []discoveryv1.ForNode{{Name: "node-1"}},
		}
	}
	a.exportService(t, service, four, six)
	none := map[string]string{"10.1.0.1": "", "10.1.0.2": "", "10.1.0.3": "", "fd00:1::1": ""}
	all := map[string]string{"10.1.0.1": "zone-1", "10.1.0.2": "zone-2", "10.1.0.3": "", "fd00:1::1": "zone-1"}
	hints := func(want map[string]string) {
		t.Helper()
		for _, m := range []*member{a, b} {
			m.hints(t, k, want)
		}
	}
	hints(none)
	for _, preference := range []string{"PreferClose", "PreferSameNode", "PreferSameZone"} {
		service.Spec.TrafficDistribution = new(preference)
		lab.Must(t, a.Update(t.Context(), service))
		b.distributes(t, k, preference, imported)
		hints(all)
	}
	four.Endpoints[2].Conditions.Ready = new(true)
	lab.Must(t, a.Update(t.Context(), four))
	hints(map[string]string{"10.1.0.1": "", "10.1.0.2": "", "10.1.0.3": "", "fd00:1::1": "zone-1"})
	four.Endpoints[2].Zone = new("zone-3")
	lab.Must(t, a.Update(t.Context(), four))
	all["10.1.0.3"] = "zone-3"
	hints(all)
	service.Spec.TrafficDistribution = nil
	lab.Must(t, a.Update(t.Context(), service))
	hints(none)
}

// The oldest export says whether hints are wanted, and the endpoints of all clusters must have a zone.
//
// spec: D6, R3, C4
func testHintsOfTwoExporters(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	inA, inB := clusterIPService(k, port("http", 80)), clusterIPService(k, port("http", 80))
	inA.Spec.TrafficDistribution = new("PreferClose")
	a.exportService(t, inA, slice(inA, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	b.imported(t, k)
	theirs := slice(inB, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1")
	theirs.Endpoints[0].Zone = nil
	b.exportService(t, inB, theirs)
	for _, m := range []*member{a, b} {
		m.condition(t, k, conflict, "True", string(mcsv1beta1.ServiceExportReasonTrafficDistributionConflict))
		m.hints(t, k, map[string]string{"10.1.0.1": "", "10.2.0.1": ""})
	}
	theirs.Endpoints[0].Zone = new("zone-9")
	lab.Must(t, b.Update(t.Context(), theirs))
	for _, m := range []*member{a, b} {
		m.hints(t, k, map[string]string{"10.1.0.1": "zone-1", "10.2.0.1": "zone-9"})
	}
}
