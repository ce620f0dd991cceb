// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/export"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
	"github.com/tombolo-mcs/tombolo/pkg/record"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// namespace is where all services of the benchmark lie, and where they are imported.
const namespace = "bench"

// perSlice is how many endpoints a service has, in one slice.
const perSlice = 10

// subject is a service of one exporter: what its users write, and what has to be written for it. The floor writes the
// very objects that an agent would, so both ask the same of the API servers.
type subject struct {
	service *corev1.Service
	slice   *discoveryv1.EndpointSlice
	export  *mcsv1beta1.ServiceExport

	record    *hubv1alpha1.PublishedService
	endpoints *hubv1alpha1.PublishedEndpoints

	derived  *corev1.Service
	mirrored *discoveryv1.EndpointSlice
	imported *mcsv1beta1.ServiceImport
	// exportConditions and importStatus are the two statuses.
	exportConditions []metav1.Condition
	importStatus     mcsv1beta1.ServiceImportStatus
}

// subjectName returns a name that has little to do with the one before: the usual names of derived Services are checksums
// (spec D2) that numbered names share, four of five in 2,000, and each costs an agent another try.
func subjectName(i int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(i)))
	return "svc-" + hex.EncodeToString(sum[:12])
}

// address returns the at-th address of the lab's n-th member's pods. The lower half is the endpoints', as they are written
// first; the upper half is for changes.
func address(n, at int) string { return fmt.Sprintf("10.%d.%d.%d", n, at>>8&0xff, at&0xff) }

// firstChange is where the upper half begins.
const firstChange = 1 << 15

// newSubject returns the i-th service of the lab's n-th member.
func newSubject(exporter *member, i int) (*subject, error) {
	name := subjectName(i)
	at := metav1.ObjectMeta{Namespace: namespace, Name: name}
	s := &subject{
		service: &corev1.Service{ObjectMeta: at, Spec: corev1.ServiceSpec{
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports:      []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		}},
		export: &mcsv1beta1.ServiceExport{ObjectMeta: at},
		slice: &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name + "-0", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
		},
	}
	for e := range perSlice {
		s.slice.Endpoints = append(s.slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address(exporter.number, (i*perSlice+e)%firstChange)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	if err := s.renderAs(exporter.id); err != nil {
		return nil, err
	}
	return s, nil
}

// renderAs fills in what has to be written for the service, by the agents' own rules.
func (s *subject) renderAs(exporter clusterset.ClusterID) error {
	exported, rejection := export.Decide(exporter, s.export, s.service)
	if rejection != nil {
		return fmt.Errorf("%s cannot be exported: %s", s.service.Name, rejection.Message)
	}
	exported.Age = metav1.Now().Time
	merged, _ := merge.Merge([]clusterset.Export{exported})
	sources := export.Slices(exporter, []*discoveryv1.EndpointSlice{s.slice})
	// The usual names meet sometimes; agents evade that, the floor cannot.
	site := render.Site{IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, DerivedName: clusterset.LongDerivedName(s.service.Name)}
	s.record, s.endpoints = record.EncodeService(exported), record.EncodeEndpoints(exported.Key, sources[0])
	s.derived, s.mirrored = render.Service(merged, site), render.Slices(merged, site, sources)[0]
	s.imported = render.ServiceImport(merged, site, nil)
	s.importStatus = render.ImportStatus(merged)
	s.importStatus.Conditions = conditions.Set(nil, []metav1.Condition{conditions.ImportReady(nil, nil)}, 1, metav1.Now())
	s.exportConditions = conditions.Set(nil, []metav1.Condition{
		conditions.Valid(nil), conditions.Exported(nil, conditions.Publication{Hub: conditions.HubSynced, Published: true}), conditions.Conflict(merged),
	}, 1, metav1.Now())
	return nil
}
