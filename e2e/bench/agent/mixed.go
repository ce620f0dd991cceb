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
)

// mixedSizes are how many endpoints the services of the scale have, over and over: 26 on average, so that 250,000 of 10,000
// services are imported; those of a port that loses a conflict are not.
var mixedSizes = []int{1, 2, 3, 5, 10, 10, 20, 30, 79, 100}

// mixed is a service of one or more members for which the harness speaks. What an importer must make of it is known from
// how it is made, without the product's rules.
type mixed struct {
	name          string
	kind          mcsv1beta1.ServiceImportType
	families      []corev1.IPFamily
	ports         []hubv1alpha1.PublishedPort // as they are imported: the oldest's
	contributions []*contribution             // of the exporters, the oldest first
}

// contribution is what one member exports of a service.
type contribution struct {
	from   *member
	record *hubv1alpha1.PublishedService
	slices []*published
}

// published is the record of a slice.
type published struct {
	from *member
	// listens says on which ports of the import its endpoints listen, as "name:number".
	listens []string

	mu     sync.Mutex
	record *hubv1alpha1.PublishedEndpoints
}

// disagreement is what a service's youngest exporter says otherwise than the oldest.
type disagreement int

const (
	otherName     disagreement = iota // of a port: its endpoints serve it under the oldest's name
	otherNumber                       // of a port: its endpoints do not serve it
	otherAffinity                     // the oldest's counts
	otherKind                         // the same
)

// disagreements are all of them.
var disagreements = []disagreement{otherName, otherNumber, otherAffinity, otherKind}

// mixer makes services.
type mixer struct {
	speakers  []*member
	addresses map[*member]int // how many each has given to endpoints
}

// newMixed returns the i-th service. The terms by which it varies share no divisor with the number of sizes, so that every
// size comes with everything.
func (x *mixer) newMixed(i int) *mixed {
	s := &mixed{
		name: subjectName(i), kind: mcsv1beta1.ClusterSetIP,
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
	for j := range min(exportersOf(i), len(x.speakers)) {
		s.contributions = append(s.contributions, s.contribution(x.speakers[(i+j)%len(x.speakers)], j, time.Now()))
	}
	if n := len(s.contributions); n > 1 {
		s.disagree(s.contributions[n-1], disagreements[i/11%len(disagreements)])
	}
	for e := range mixedSizes[i%len(mixedSizes)] {
		x.addEndpoint(s, s.contributions[e%len(s.contributions)], e)
	}
	return s
}

// exportersOf returns by how many members the i-th service is exported: two of seven by two, one of 23 by five, the others
// by one.
func exportersOf(i int) int {
	switch {
	case i%23 == 2:
		return 5
	case i%7 < 2:
		return 2
	}
	return 1
}

// contribution returns that of the j-th exporter, which is a minute younger than the one before. All ages are within what
// the hub believes.
func (s *mixed) contribution(from *member, j int, now time.Time) *contribution {
	record := &hubv1alpha1.PublishedService{
		ObjectMeta: metav1.ObjectMeta{Namespace: from.id.HubNamespace(), Name: namespace + "." + s.name},
		Spec: hubv1alpha1.PublishedServiceSpec{
			Namespace: namespace, Service: hubv1alpha1.ServiceName(s.name), ExportedAt: metav1.NewTime(now.Add(time.Duration(j-5) * time.Minute)),
			Type: s.kind, Ports: append([]hubv1alpha1.PublishedPort{}, s.ports...),
		},
	}
	for _, family := range s.families {
		record.Spec.IPFamilies = append(record.Spec.IPFamilies, hubv1alpha1.IPFamily(family))
	}
	if s.kind == mcsv1beta1.ClusterSetIP {
		record.Spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	return &contribution{from: from, record: record}
}

// disagree has an exporter say something else than the oldest.
func (s *mixed) disagree(c *contribution, about disagreement) {
	spec := &c.record.Spec
	switch about {
	case otherName:
		spec.Ports[0].Name = "other"
	case otherNumber:
		spec.Ports[0].Port++
	case otherKind:
		spec.Type = map[mcsv1beta1.ServiceImportType]mcsv1beta1.ServiceImportType{
			mcsv1beta1.ClusterSetIP: mcsv1beta1.Headless, mcsv1beta1.Headless: mcsv1beta1.ClusterSetIP,
		}[s.kind]
		spec.SessionAffinity = ""
	case otherAffinity:
		if s.kind == mcsv1beta1.ClusterSetIP {
			spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}
	}
}

// addEndpoint adds the e-th endpoint of a service to those of an exporter; every eighth is not ready.
func (x *mixer) addEndpoint(s *mixed, c *contribution, e int) {
	family := s.families[e/len(s.contributions)%len(s.families)]
	slice := c.slice(s, family)
	x.addresses[c.from]++
	to := hubv1alpha1.IPAddress(addressIn(family, c.from.number, 1+x.addresses[c.from]%(firstChange-1)))
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

// slice returns an exporter's slice of a family, which it makes if there is none.
func (c *contribution) slice(s *mixed, family corev1.IPFamily) *published {
	for _, p := range c.slices {
		if p.record.Spec.AddressType == hubv1alpha1.IPFamily(family) {
			return p
		}
	}
	p := &published{from: c.from, record: &hubv1alpha1.PublishedEndpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.record.Namespace, Name: fmt.Sprintf("%s.%010x", c.record.Name, len(c.slices))},
		Spec: hubv1alpha1.PublishedEndpointsSpec{
			Namespace: namespace, Service: c.record.Spec.Service, AddressType: hubv1alpha1.IPFamily(family),
		},
	}}
	for i, port := range c.record.Spec.Ports {
		number := targetPorts + port.Port
		p.record.Spec.Ports = append(p.record.Spec.Ports, hubv1alpha1.PublishedEndpointPort{Name: port.Name, Protocol: port.Protocol, Port: number})
		if port.Port == s.ports[i].Port {
			p.listens = append(p.listens, fmt.Sprintf("%s:%d", s.portName(i), number))
		}
	}
	c.slices = append(c.slices, p)
	return p
}

// targetPorts is what endpoints' ports are above their Services'.
const targetPorts = 8000

// portName returns what a port is called in derived Services and their slices: the one without a name is called "unnamed"
// there, but for headless services (spec R2).
func (s *mixed) portName(i int) string {
	if name := s.ports[i].Name; name != "" || s.kind == mcsv1beta1.Headless {
		return name
	}
	return "unnamed"
}

// addressIn returns the at-th address of a family of the lab's n-th member's pods.
func addressIn(family corev1.IPFamily, n, at int) string {
	if family == corev1.IPv4Protocol {
		return address(n, at)
	}
	return fmt.Sprintf("fd00:%d::%x", n, at)
}

// publishMixed writes the records of services, each slice before its service.
func publishMixed(ctx context.Context, services []*mixed) error {
	return each(ctx, setupWidth, services, func(ctx context.Context, s *mixed) error {
		for _, c := range s.contributions {
			for _, p := range c.slices {
				if err := createRecord(ctx, c.from.remote, p.record); err != nil {
					return fmt.Errorf("publish a slice of %s of %s: %w", s.name, c.from.id, err)
				}
			}
			if err := createRecord(ctx, c.from.remote, c.record); err != nil {
				return fmt.Errorf("publish %s of %s: %w", s.name, c.from.id, err)
			}
		}
		return nil
	})
}

// endpointsOf returns how many endpoints of services are imported.
func endpointsOf(services []*mixed) int {
	n := 0
	for _, s := range services {
		for _, c := range s.contributions {
			for _, p := range c.slices {
				if len(p.listens) == 0 {
					continue // it is not imported
				}
				for _, g := range p.record.Spec.Groups {
					n += len(g.Addresses)
				}
			}
		}
	}
	return n
}
