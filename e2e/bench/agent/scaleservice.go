// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
)

// endpointCounts are the numbers of endpoints of services, in turn: 26 on average, so that 10,000 services have 250,000
// imported endpoints. Those of a port that loses a conflict are not imported.
var endpointCounts = []int{1, 2, 3, 5, 10, 10, 20, 30, 79, 100}

// targetPorts is the difference of a port of endpoints and its Service's.
const targetPorts = 8000

// scaleService is a service of one or more members for which the harness publishes. What an importer must create is known
// from how it is made, without the product's rules.
type scaleService struct {
	name     string
	kind     mcsv1beta1.ServiceImportType
	families []corev1.IPFamily
	ports    []hubv1alpha1.PublishedPort // as they are imported: the oldest export's
	exports  []*memberExport             // the oldest first
}

// memberExport is what one member exports of a service.
type memberExport struct {
	from   *world.Member
	record *hubv1alpha1.PublishedService
	slices []*recordedSlice
}

// recordedSlice is the record of a slice.
type recordedSlice struct {
	from *world.Member
	// ports are those of the import that its endpoints serve, as "name:number"; if there are none, it is not imported.
	ports []string

	mu     sync.Mutex
	record *hubv1alpha1.PublishedEndpoints
}

// scaleServices are all services, and the number of addresses that each publisher has used.
type scaleServices struct {
	publishers []*world.Member
	addresses  map[*world.Member]int
	all        []*scaleService
}

func newScaleServices(publishers []*world.Member) *scaleServices {
	return &scaleServices{publishers: publishers, addresses: map[*world.Member]int{}}
}

// add adds services until there are n, and returns the new ones.
func (x *scaleServices) add(n int) []*scaleService {
	first := len(x.all)
	for i := first; i < n; i++ {
		x.all = append(x.all, x.newService(i))
	}
	return x.all[first:]
}

// newService returns the i-th service. The divisors by which properties vary have no factor in common with the number of
// endpointCounts, so that each number occurs with each property.
func (x *scaleServices) newService(i int) *scaleService {
	s := &scaleService{
		name: world.ServiceName(i), kind: mcsv1beta1.ClusterSetIP,
		families: [][]corev1.IPFamily{{corev1.IPv4Protocol}, {corev1.IPv4Protocol}, {corev1.IPv4Protocol, corev1.IPv6Protocol}, {corev1.IPv6Protocol}}[i/3%4],
		ports: [][]hubv1alpha1.PublishedPort{
			{{Name: "http", Protocol: "TCP", Port: 80}},
			{{Name: "http", Protocol: "TCP", Port: 80}, {Name: "https", Protocol: "TCP", Port: 443}},
			{{Protocol: "TCP", Port: 5432}},
			{{Name: "dns", Protocol: "UDP", Port: 53}, {Name: "dns-tcp", Protocol: "TCP", Port: 53}},
		}[i/7%4],
	}
	if i%13 == 6 {
		s.kind = mcsv1beta1.Headless
	}
	exporters := 1
	switch {
	case i%23 == 2:
		exporters = 5
	case i%7 < 2:
		exporters = 2
	}
	for j := range min(exporters, len(x.publishers)) {
		s.exports = append(s.exports, s.exportFrom(x.publishers[(i+j)%len(x.publishers)], j))
	}
	if n := len(s.exports); n > 1 {
		conflicts[i/11%len(conflicts)](s.exports[n-1])
	}
	for e := range endpointCounts[i%len(endpointCounts)] {
		x.addEndpoint(s, s.exports[e%len(s.exports)], e)
	}
	return s
}

// conflicts are the differences of the youngest export from the oldest. Endpoints of a port with another name serve it
// under the oldest's name, those of a port with another number do not serve it.
var conflicts = []func(*memberExport){
	func(e *memberExport) { e.record.Spec.Ports[0].Name = "other" },
	func(e *memberExport) { e.record.Spec.Ports[0].Port++ },
	func(e *memberExport) { // the affinity, which headless services do not have
		if e.record.Spec.Type == mcsv1beta1.ClusterSetIP {
			e.record.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}
	},
	func(e *memberExport) { // the type
		if e.record.Spec.SessionAffinity = ""; e.record.Spec.Type == mcsv1beta1.Headless {
			e.record.Spec.Type = mcsv1beta1.ClusterSetIP
		} else {
			e.record.Spec.Type = mcsv1beta1.Headless
		}
	},
}

// exportFrom returns the j-th member's export, which is a minute younger than the one before. The hub accepts all ages.
func (s *scaleService) exportFrom(from *world.Member, j int) *memberExport {
	record := &hubv1alpha1.PublishedService{
		ObjectMeta: metav1.ObjectMeta{Namespace: from.ID.HubNamespace(), Name: world.Namespace + "." + s.name},
		Spec: hubv1alpha1.PublishedServiceSpec{
			Namespace: world.Namespace, Service: hubv1alpha1.ServiceName(s.name), ExportedAt: metav1.NewTime(time.Now().Add(time.Duration(j-5) * time.Minute)),
			Type: s.kind, Ports: append([]hubv1alpha1.PublishedPort{}, s.ports...),
		},
	}
	for _, family := range s.families {
		record.Spec.IPFamilies = append(record.Spec.IPFamilies, hubv1alpha1.IPFamily(family))
	}
	if s.kind == mcsv1beta1.ClusterSetIP {
		record.Spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	return &memberExport{from: from, record: record}
}

// addEndpoint adds the e-th endpoint of a service to an export; every eighth is not ready.
func (x *scaleServices) addEndpoint(s *scaleService, export *memberExport, e int) {
	family := s.families[e/len(s.exports)%len(s.families)]
	slice := export.slice(s, family)
	x.addresses[export.from]++
	to := hubv1alpha1.IPAddress(addressIn(family, export.from.Number, 1+x.addresses[export.from]%(world.FirstChange-1)))
	group := hubv1alpha1.EndpointGroup{Zone: "zone-1", Ready: new(true)}
	if e%8 == 7 {
		group = hubv1alpha1.EndpointGroup{Zone: "zone-2", Ready: new(false), Serving: new(true), Terminating: new(true)}
	}
	groups := &slice.record.Spec.Groups
	for g := range *groups {
		if *(*groups)[g].Ready == *group.Ready {
			(*groups)[g].Addresses = append((*groups)[g].Addresses, to)
			return
		}
	}
	group.Addresses = []hubv1alpha1.IPAddress{to}
	*groups = append(*groups, group)
}

// slice returns the export's slice of a family, and creates it if there is none.
func (e *memberExport) slice(s *scaleService, family corev1.IPFamily) *recordedSlice {
	for _, r := range e.slices {
		if r.record.Spec.AddressType == hubv1alpha1.IPFamily(family) {
			return r
		}
	}
	r := &recordedSlice{from: e.from, record: &hubv1alpha1.PublishedEndpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.record.Namespace, Name: fmt.Sprintf("%s.%010x", e.record.Name, len(e.slices))},
		Spec: hubv1alpha1.PublishedEndpointsSpec{
			Namespace: world.Namespace, Service: e.record.Spec.Service, AddressType: hubv1alpha1.IPFamily(family),
		},
	}}
	for i, port := range e.record.Spec.Ports {
		number := targetPorts + port.Port
		r.record.Spec.Ports = append(r.record.Spec.Ports, hubv1alpha1.PublishedEndpointPort{Name: port.Name, Protocol: port.Protocol, Port: number})
		if port.Port == s.ports[i].Port {
			names := []string{s.derivedPortName(i)}
			switch {
			case s.kind == mcsv1beta1.Headless: // slices of headless services have ports without names (spec R2)
				names[0] = s.ports[i].Name
			case s.ports[i].Name == "":
				names = append(names, "")
			}
			for _, name := range names {
				r.ports = append(r.ports, fmt.Sprintf("%s:%d", name, number))
			}
		}
	}
	e.slices = append(e.slices, r)
	return r
}

// addressIn returns an address of a family of the lab's n-th member's pods.
func addressIn(family corev1.IPFamily, n, at int) string {
	if family == corev1.IPv4Protocol {
		return world.Address(n, at)
	}
	return fmt.Sprintf("fd00:%d::%x", n, at)
}

// publish writes the records of services, each slice before its service.
func publishAll(ctx context.Context, services []*scaleService) error {
	return world.Each(ctx, world.SetupWidth, services, func(ctx context.Context, s *scaleService) error {
		for _, e := range s.exports {
			for _, r := range e.slices {
				if err := world.CreateRecords(ctx, e.from, r.record); err != nil {
					return err
				}
			}
			if err := world.CreateRecords(ctx, e.from, e.record); err != nil {
				return err
			}
		}
		return nil
	})
}

// importedSlices returns the records of all slices that are imported.
func (x *scaleServices) importedSlices() []*recordedSlice {
	var result []*recordedSlice
	for _, s := range x.all {
		for _, e := range s.exports {
			for _, r := range e.slices {
				if len(r.ports) > 0 {
					result = append(result, r)
				}
			}
		}
	}
	return result
}

// endpoints returns how many endpoints are imported.
func (x *scaleServices) endpoints() int {
	n := 0
	for _, r := range x.importedSlices() {
		for _, group := range r.record.Spec.Groups {
			n += len(group.Addresses)
		}
	}
	return n
}

// change changes the address of an endpoint, as the exporter's agent would.
func (r *recordedSlice) change(ctx context.Context, o *world.Observer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := r.setNext()
	expected := o.Expect(r, to)
	err := r.from.Remote.Update(ctx, r.record)
	expected.WasSent(time.Now())
	return err
}

// setNext changes the address of an endpoint in the record, and returns it.
func (r *recordedSlice) setNext() string {
	to := addressIn(corev1.IPFamily(r.record.Spec.AddressType), r.from.Number, r.from.NextAddress())
	r.record.Spec.TriggerTime = new(metav1.NowMicro())
	r.record.Spec.Groups[0].Addresses[0] = hubv1alpha1.IPAddress(to)
	return to
}
