// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"slices"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// bareClient is the baseline: it makes the writes that an export and a change of endpoints need, each as soon as a watch
// has returned the object that it depends on, and nothing else. It merges, compares and checks nothing. It writes the
// status of an export once; an agent may first report that it is pending.
type bareClient struct {
	exporter *Member
	services map[string]*bareService
	width    int // writes in flight of a stage
	fail     context.CancelCauseFunc
	workers  sync.WaitGroup
}

// bareService is what the bare client has written of a service. Each field is used by one worker of one stage.
type bareService struct {
	*TestService
	index    int
	written  *hubv1alpha1.PublishedEndpoints
	mirrored []*discoveryv1.EndpointSlice // of each member
}

// StartBare starts a bare client, with so many writes in flight in each of its stages: publication, and the import in each
// member. It works until stop, which returns its error. The returned context ends when the client has failed.
func StartBare(ctx context.Context, w *World, services []*TestService, width int) (working context.Context, stop func() error, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &bareClient{exporter: w.Members[0], services: map[string]*bareService{}, width: width, fail: cancel}
	for i, s := range services {
		b.services[s.Service.Name] = &bareService{TestService: s, index: i, mirrored: make([]*discoveryv1.EndpointSlice, len(w.Members))}
	}
	stop = func() error {
		cancel(nil)
		b.workers.Wait()
		if cause := context.Cause(ctx); cause != context.Canceled { //nolint:errorlint // exactly the cause that cancel(nil) sets
			return fmt.Errorf("the baseline: %w", cause)
		}
		return nil
	}
	if err := b.open(ctx, w); err != nil {
		cancel(err)
		return nil, nil, stop()
	}
	return ctx, stop, nil
}

// stage is a step that runs beside the others: a queue for each of its workers. All work for a service is done by the same
// worker, in order.
type stage []chan func(context.Context) error

// queueLength is more than a round adds to a queue.
const queueLength = 1 << 16

// newStage starts a stage that works until ctx ends or something fails.
func (b *bareClient) newStage(ctx context.Context) stage {
	s := make(stage, b.width)
	for i := range s {
		s[i] = make(chan func(context.Context) error, queueLength)
		b.workers.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case do := <-s[i]:
					if err := do(ctx); err != nil && ctx.Err() == nil {
						b.fail(err)
					}
				}
			}
		})
	}
	return s
}

// enqueue adds work for a service; nil is a service of another part of the run.
func (s stage) enqueue(service *bareService, do func(context.Context) error) {
	if service != nil {
		s[service.index%len(s)] <- do
	}
}

// open starts the stages and the watches that add work to them.
func (b *bareClient) open(ctx context.Context, w *World) error {
	publication, own := b.newStage(ctx), b.newStage(ctx)
	if err := watchObjects(ctx, b.exporter.Local, &discoveryv1.EndpointSliceList{}, Namespace, func(o client.Object) {
		slice := o.(*discoveryv1.EndpointSlice)
		s := b.services[slice.Labels[discoveryv1.LabelServiceName]]
		publication.enqueue(s, func(ctx context.Context) error { return b.republish(ctx, s, slice) })
		own.enqueue(s, func(ctx context.Context) error { return updateMirrored(ctx, b.exporter, s, addressesOf(slice)) })
	}); err != nil {
		return err
	}
	if err := watchObjects(ctx, b.exporter.Local, &mcsv1beta1.ServiceExportList{}, Namespace, func(o client.Object) {
		s, export := b.services[o.GetName()], o.(*mcsv1beta1.ServiceExport)
		if len(export.Status.Conditions) > 0 {
			return
		}
		publication.enqueue(s, func(ctx context.Context) error { return b.publish(ctx, s, export) })
		own.enqueue(s, func(ctx context.Context) error { return createImport(ctx, b.exporter, s) })
	}); err != nil {
		return err
	}
	for _, m := range w.Members[1:] {
		if err := b.openImporter(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// openImporter imports the exporter's records into a member.
func (b *bareClient) openImporter(ctx context.Context, m *Member) error {
	stage, from := b.newStage(ctx), b.exporter.ID.HubNamespace()
	if err := watchObjects(ctx, m.Remote, &hubv1alpha1.PublishedEndpointsList{}, from, func(o client.Object) {
		record := o.(*hubv1alpha1.PublishedEndpoints)
		s := b.services[string(record.Spec.Service)]
		stage.enqueue(s, func(ctx context.Context) error { return updateMirrored(ctx, m, s, publishedAddresses(record)) })
	}); err != nil {
		return err
	}
	return watchObjects(ctx, m.Remote, &hubv1alpha1.PublishedServiceList{}, from, func(o client.Object) {
		s := b.services[string(o.(*hubv1alpha1.PublishedService).Spec.Service)]
		stage.enqueue(s, func(ctx context.Context) error { return createImport(ctx, m, s) })
	})
}

// publish writes the records of a new export, and its status.
func (b *bareClient) publish(ctx context.Context, s *bareService, export *mcsv1beta1.ServiceExport) error {
	if s.written != nil {
		return nil // the watch was opened again
	}
	s.written = s.Endpoints.DeepCopy()
	if err := CreateRecords(ctx, b.exporter, s.written, s.Record.DeepCopy()); err != nil {
		return err
	}
	export = export.DeepCopy()
	export.Status.Conditions = s.exportConditions
	return b.exporter.Local.Status().Update(ctx, export)
}

// CreateRecords creates records of a member, again after a conflict: creations of one member race for its quota.
func CreateRecords(ctx context.Context, m *Member, records ...client.Object) error {
	for _, record := range records {
		err := m.Remote.Create(ctx, record)
		for apierrors.IsConflict(err) {
			err = m.Remote.Create(ctx, record)
		}
		if err != nil {
			return fmt.Errorf("publish %s of %s: %w", record.GetName(), m.ID, err)
		}
	}
	return nil
}

// republish writes a slice's record if the slice has changed.
func (b *bareClient) republish(ctx context.Context, s *bareService, slice *discoveryv1.EndpointSlice) error {
	if s.written == nil || sameAddresses(addressesOf(slice), publishedAddresses(s.written)) {
		return nil
	}
	for i, a := range addressesOf(slice) {
		s.written.Spec.Groups[0].Addresses[i] = hubv1alpha1.IPAddress(a)
	}
	return b.exporter.Remote.Update(ctx, s.written)
}

// createImport writes the objects of a new import.
func createImport(ctx context.Context, m *Member, s *bareService) error {
	if s.mirrored[m.Number-1] != nil {
		return nil
	}
	derived, mirrored, imported := s.derived.DeepCopy(), s.TestService.mirrored.DeepCopy(), s.imported.DeepCopy()
	if err := m.Local.Create(ctx, derived); err != nil {
		return err
	}
	if err := m.Local.Create(ctx, mirrored); err != nil {
		return err
	}
	s.mirrored[m.Number-1] = mirrored
	imported.Spec.IPs = derived.Spec.ClusterIPs
	if err := m.Local.Create(ctx, imported); err != nil {
		return err
	}
	s.importStatus.DeepCopyInto(&imported.Status)
	return m.Local.Status().Update(ctx, imported)
}

// updateMirrored writes the addresses of a mirrored slice if they have changed.
func updateMirrored(ctx context.Context, m *Member, s *bareService, addresses []string) error {
	mirrored := s.mirrored[m.Number-1]
	if mirrored == nil || sameAddresses(addressesOf(mirrored), addresses) {
		return nil
	}
	for i, a := range addresses {
		mirrored.Endpoints[i].Addresses = []string{a}
	}
	return m.Local.Update(ctx, mirrored)
}

func addressesOf(slice *discoveryv1.EndpointSlice) []string {
	result := make([]string, len(slice.Endpoints))
	for i, e := range slice.Endpoints {
		result[i] = e.Addresses[0]
	}
	return result
}

func publishedAddresses(record *hubv1alpha1.PublishedEndpoints) []string {
	var result []string
	for _, a := range record.Spec.Groups[0].Addresses {
		result = append(result, string(a))
	}
	return result
}

func sameAddresses(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
