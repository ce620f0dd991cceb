// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

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

// Namespace has all services of the benchmark and their imports.
const Namespace = "bench"

// perSlice is how many endpoints a service has, in one slice.
const perSlice = 10

// GatewayPods is how many gateways a member has. A mirrored slice lists all of them for a source with several endpoints.
const GatewayPods = 2

// TestService is a service of one exporter: the objects of its users, and those that follow from them. The baseline writes
// the same objects as an agent, so both cause the same load.
type TestService struct {
	Service *corev1.Service
	slice   *discoveryv1.EndpointSlice
	Export  *mcsv1beta1.ServiceExport

	Record    *hubv1alpha1.PublishedService
	Endpoints *hubv1alpha1.PublishedEndpoints

	derived          *corev1.Service
	mirrored         *discoveryv1.EndpointSlice
	imported         *mcsv1beta1.ServiceImport
	exportConditions []metav1.Condition
	importStatus     mcsv1beta1.ServiceImportStatus
}

// ServiceName returns a name that differs from others in every part: the names of derived Services are checksums
// (spec D2). Of 2,000 numbered names four in five would share one, and each costs an agent another attempt.
func ServiceName(i int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(i)))
	return "svc-" + hex.EncodeToString(sum[:12])
}

// Address returns an address of the lab's n-th member's pods. The first half of them is for endpoints as they are created,
// the second half for changes.
func Address(n, at int) string { return fmt.Sprintf("10.%d.%d.%d", n, at>>8&0xff, at&0xff) }

// FirstChange is the first offset of the addresses for changes.
const FirstChange = 1 << 15

// NextAddress returns an offset for address that no endpoint of the member has had for long.
func (m *Member) NextAddress() int { return FirstChange + int(m.Changes.Add(1))%FirstChange }

// CreateServices creates the Services and slices of a member's first n test services, which are not exported yet.
func CreateServices(ctx context.Context, log LogFunc, m *Member, n int) ([]*TestService, error) {
	log("create %d Services with %d endpoints each", n, perSlice)
	all, err := m.NewServices(n)
	if err != nil {
		return nil, err
	}
	return all, Each(ctx, SetupWidth, all, func(ctx context.Context, s *TestService) error {
		return errors.Join(m.Admin.Create(ctx, s.Service.DeepCopy()), m.Admin.Create(ctx, s.slice.DeepCopy()))
	})
}

// NewServices returns a member's first n test services.
func (m *Member) NewServices(n int) ([]*TestService, error) {
	all := make([]*TestService, n)
	for i := range all {
		var err error
		if all[i], err = newService(m, i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func newService(exporter *Member, i int) (*TestService, error) {
	name := ServiceName(i)
	meta := metav1.ObjectMeta{Namespace: Namespace, Name: name}
	s := &TestService{
		Service: &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports:      []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		}},
		Export: &mcsv1beta1.ServiceExport{ObjectMeta: meta},
		slice: &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: Namespace, Name: name + "-0", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
		},
	}
	for e := range perSlice {
		s.slice.Endpoints = append(s.slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{Address(exporter.Number, (i*perSlice+e)%FirstChange)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	err := s.render(exporter.ID)
	return s, err
}

// render computes the objects that follow from the users', by the agents' own rules.
func (s *TestService) render(exporter clusterset.ClusterID) error {
	exported, rejection := export.Decide(exporter, s.Export, s.Service)
	if rejection != nil {
		return fmt.Errorf("%s cannot be exported: %s", s.Service.Name, rejection.Message)
	}
	exported.Age = metav1.Now().Time
	merged, _ := merge.Merge([]clusterset.Export{exported})
	sources := export.Slices(exporter, []*discoveryv1.EndpointSlice{s.slice})
	// The usual names may collide; agents then choose another, which the baseline cannot.
	site := render.Site{IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, DerivedName: clusterset.LongDerivedName(s.Service.Name)}
	s.Record, s.Endpoints = record.EncodeService(exported), record.EncodeEndpoints(exported.Key, sources[0])
	s.derived, s.mirrored = render.Service(merged, site), render.Slices(merged, site, sources)[0]
	s.imported = render.ServiceImport(merged, site, nil)
	s.importStatus = render.ImportStatus(merged)
	s.importStatus.Conditions = conditions.Set(nil, []metav1.Condition{conditions.ImportReady(nil, nil)}, 1, metav1.Now())
	s.exportConditions = conditions.Set(nil, []metav1.Condition{
		conditions.Valid(nil), conditions.Exported(nil, conditions.Publication{Hub: conditions.HubSynced, Published: true}), conditions.Conflict(merged),
	}, 1, metav1.Now())
	return nil
}

// SourceSlices are slices in their own cluster, whose endpoints change as if pods were replaced.
type SourceSlices struct {
	Member *Member
	Slices []*discoveryv1.EndpointSlice
	locks  []sync.Mutex // of each slice
}

// ReadSlices reads the slices of services in their own cluster.
func ReadSlices(ctx context.Context, m *Member, services []*TestService) (*SourceSlices, error) {
	c := &SourceSlices{Member: m, locks: make([]sync.Mutex, len(services))}
	for _, s := range services {
		slice := &discoveryv1.EndpointSlice{}
		if err := m.Admin.Get(ctx, client.ObjectKeyFromObject(s.slice), slice); err != nil {
			return nil, err
		}
		c.Slices = append(c.Slices, slice)
	}
	return c, nil
}

// Change changes an address of the i-th slice, modulo their number.
func (c *SourceSlices) Change(ctx context.Context, i int) error {
	return c.changeTo(ctx, i, Address(c.Member.Number, c.Member.NextAddress()))
}

func (c *SourceSlices) changeTo(ctx context.Context, i int, to string) error {
	i %= len(c.Slices)
	c.locks[i].Lock()
	defer c.locks[i].Unlock()
	slice := c.Slices[i]
	metav1.SetMetaDataAnnotation(&slice.ObjectMeta, corev1.EndpointsLastChangeTriggerTime, time.Now().UTC().Format(time.RFC3339Nano))
	slice.Endpoints[0].Addresses[0] = to
	return c.Member.Admin.Update(ctx, slice)
}

// ChangeSeen is change, and returns the latency in milliseconds once the change has arrived at the observer.
func (c *SourceSlices) ChangeSeen(ctx context.Context, i int, o *Observer) (float64, error) {
	to := Address(c.Member.Number, c.Member.NextAddress())
	return o.LatencyOf(ctx, to, to, func() error { return c.changeTo(ctx, i, to) })
}
