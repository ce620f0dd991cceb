// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/render"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// namespace has all services of the benchmark and their imports.
const namespace = "bench"

// perSlice is how many endpoints a service has, in one slice.
const perSlice = 10

// testService is a service of one exporter: the objects of its users, and those that follow from them. The baseline writes
// the same objects as an agent, so both cause the same load.
type testService struct {
	service *corev1.Service
	slice   *discoveryv1.EndpointSlice
	export  *mcsv1beta1.ServiceExport

	record    *hubv1alpha1.PublishedService
	endpoints *hubv1alpha1.PublishedEndpoints

	derived          *corev1.Service
	mirrored         *discoveryv1.EndpointSlice
	imported         *mcsv1beta1.ServiceImport
	exportConditions []metav1.Condition
	importStatus     mcsv1beta1.ServiceImportStatus
}

// serviceName returns a name that differs from others in every part: the names of derived Services are checksums
// (spec D2). Of 2,000 numbered names four in five would share one, and each costs an agent another attempt.
func serviceName(i int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(i)))
	return "svc-" + hex.EncodeToString(sum[:12])
}

// address returns an address of the lab's n-th member's pods. The first half of them is for endpoints as they are created,
// the second half for changes.
func address(n, at int) string { return fmt.Sprintf("10.%d.%d.%d", n, at>>8&0xff, at&0xff) }

const firstChange = 1 << 15

// nextAddress returns an offset for address that no endpoint of the member has had for long.
func (m *member) nextAddress() int { return firstChange + int(m.changes.Add(1))%firstChange }

// createServices creates the Services and slices of a member's first n test services, which are not exported yet.
func (b *bench) createServices(ctx context.Context, m *member, n int) ([]*testService, error) {
	b.log("create %d Services with %d endpoints each", n, perSlice)
	all, err := m.newServices(n)
	if err != nil {
		return nil, err
	}
	return all, each(ctx, setupWidth, all, func(ctx context.Context, s *testService) error {
		return errors.Join(m.admin.Create(ctx, s.service.DeepCopy()), m.admin.Create(ctx, s.slice.DeepCopy()))
	})
}

// newServices returns a member's first n test services.
func (m *member) newServices(n int) ([]*testService, error) {
	all := make([]*testService, n)
	for i := range all {
		var err error
		if all[i], err = newService(m, i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func newService(exporter *member, i int) (*testService, error) {
	name := serviceName(i)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	s := &testService{
		service: &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports:      []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		}},
		export: &mcsv1beta1.ServiceExport{ObjectMeta: meta},
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
	err := s.render(exporter.id)
	return s, err
}

// render computes the objects that follow from the users', by the agents' own rules.
func (s *testService) render(exporter clusterset.ClusterID) error {
	exported, rejection := export.Decide(exporter, s.export, s.service)
	if rejection != nil {
		return fmt.Errorf("%s cannot be exported: %s", s.service.Name, rejection.Message)
	}
	exported.Age = metav1.Now().Time
	merged, _ := merge.Merge([]clusterset.Export{exported})
	sources := export.Slices(exporter, []*discoveryv1.EndpointSlice{s.slice})
	// The usual names may collide; agents then choose another, which the baseline cannot.
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

// sourceSlices are slices in their own cluster, whose endpoints change as if pods were replaced.
type sourceSlices struct {
	m      *member
	slices []*discoveryv1.EndpointSlice
	locks  []sync.Mutex // of each slice
}

func readSlices(ctx context.Context, m *member, services []*testService) (*sourceSlices, error) {
	c := &sourceSlices{m: m, locks: make([]sync.Mutex, len(services))}
	for _, s := range services {
		slice := &discoveryv1.EndpointSlice{}
		if err := m.admin.Get(ctx, client.ObjectKeyFromObject(s.slice), slice); err != nil {
			return nil, err
		}
		c.slices = append(c.slices, slice)
	}
	return c, nil
}

// change changes an address of the i-th slice, modulo their number.
func (c *sourceSlices) change(ctx context.Context, i int) error {
	return c.changeTo(ctx, i, address(c.m.number, c.m.nextAddress()))
}

func (c *sourceSlices) changeTo(ctx context.Context, i int, to string) error {
	i %= len(c.slices)
	c.locks[i].Lock()
	defer c.locks[i].Unlock()
	slice := c.slices[i]
	metav1.SetMetaDataAnnotation(&slice.ObjectMeta, corev1.EndpointsLastChangeTriggerTime, time.Now().UTC().Format(time.RFC3339Nano))
	slice.Endpoints[0].Addresses[0] = to
	return c.m.admin.Update(ctx, slice)
}

// changeSeen is change, and returns the latency in milliseconds once the change has arrived at the observer.
func (c *sourceSlices) changeSeen(ctx context.Context, i int, o *observer) (float64, error) {
	to := address(c.m.number, c.m.nextAddress())
	return o.latencyOf(ctx, to, to, func() error { return c.changeTo(ctx, i, to) })
}
