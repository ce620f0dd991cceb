// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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

// bare is the floor: a client that makes the writes which an export and a change of endpoints cannot do without, each as
// soon as a watch has brought what it follows from, and nothing else. It merges, compares and checks nothing: it knows
// beforehand what is right. It writes an export's status once, where an agent may say first that it is pending.
type bare struct {
	exporter *member
	subjects map[string]*bareSubject
	width    int
	fail     context.CancelCauseFunc
	done     sync.WaitGroup
	feeds    []*feed
}

// bareSubject is what the floor has written of a subject. Each field belongs to one lane of one stage.
type bareSubject struct {
	*subject
	index    int
	record   *hubv1alpha1.PublishedEndpoints
	mirrored []*discoveryv1.EndpointSlice // of each member
}

// startBare starts a floor with so many writes in flight in each of its stages: publication, and the import in each
// member. It works until stop, which returns what has gone wrong. The context that is returned ends as soon as something
// has: nothing more is to be waited for then.
func startBare(ctx context.Context, w *world, subjects []*subject, width int, say sayer) (working context.Context, stop func() error, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &bare{exporter: w.members[0], subjects: map[string]*bareSubject{}, width: width, fail: cancel}
	for i, s := range subjects {
		b.subjects[s.service.Name] = &bareSubject{subject: s, index: i, mirrored: make([]*discoveryv1.EndpointSlice, len(w.members))}
	}
	stop = func() error {
		cancel(nil)
		b.done.Wait()
		if n := cutOff(b.feeds); n > 0 {
			say("the API servers have cut off %d of the floor's watches, which were opened again", n)
		}
		if cause := context.Cause(ctx); cause != context.Canceled { //nolint:errorlint // the very value that cancel(nil) leaves
			return fmt.Errorf("the floor: %w", cause)
		}
		return nil
	}
	if err := b.open(ctx, w); err != nil {
		cancel(err)
		return nil, nil, stop()
	}
	return ctx, stop, nil
}

// open starts the stages and the watches that feed them.
func (b *bare) open(ctx context.Context, w *world) error {
	publication, own := b.newStage(ctx), b.newStage(ctx)
	if err := b.watch(ctx, b.exporter.local, &discoveryv1.EndpointSliceList{}, namespace, func(o client.Object) {
		slice := o.(*discoveryv1.EndpointSlice)
		s := b.subjects[slice.Labels[discoveryv1.LabelServiceName]]
		if s == nil {
			return // mirrored, or of a service of another part
		}
		publication.do(s, func(ctx context.Context) error { return b.republish(ctx, s, slice) })
		own.do(s, func(ctx context.Context) error { return remirror(ctx, b.exporter, s, addressesOf(slice)) })
	}); err != nil {
		return err
	}
	if err := b.watch(ctx, b.exporter.local, &mcsv1beta1.ServiceExportList{}, namespace, func(o client.Object) {
		s, export := b.subjects[o.GetName()], o.(*mcsv1beta1.ServiceExport)
		if s == nil || len(export.Status.Conditions) > 0 {
			return
		}
		publication.do(s, func(ctx context.Context) error { return b.publish(ctx, s, export) })
		own.do(s, func(ctx context.Context) error { return importInto(ctx, b.exporter, s) })
	}); err != nil {
		return err
	}
	for _, m := range w.members[1:] {
		if err := b.follow(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// follow imports into a member what the hub holds of the exporter.
func (b *bare) follow(ctx context.Context, m *member) error {
	stage, from := b.newStage(ctx), b.exporter.id.HubNamespace()
	if err := b.watch(ctx, m.remote, &hubv1alpha1.PublishedEndpointsList{}, from, func(o client.Object) {
		record := o.(*hubv1alpha1.PublishedEndpoints)
		s := b.subjects[string(record.Spec.Service)]
		stage.do(s, func(ctx context.Context) error { return remirror(ctx, m, s, recorded(record)) })
	}); err != nil {
		return err
	}
	return b.watch(ctx, m.remote, &hubv1alpha1.PublishedServiceList{}, from, func(o client.Object) {
		s := b.subjects[string(o.(*hubv1alpha1.PublishedService).Spec.Service)]
		stage.do(s, func(ctx context.Context) error { return importInto(ctx, m, s) })
	})
}

func (b *bare) watch(ctx context.Context, c client.WithWatch, list client.ObjectList, in string, tell func(client.Object)) error {
	f, err := openFeed(ctx, c, list, in, tell)
	if err == nil {
		b.feeds = append(b.feeds, f)
	}
	return err
}

// publish writes the records of a new export, and that this has been done.
func (b *bare) publish(ctx context.Context, s *bareSubject, export *mcsv1beta1.ServiceExport) error {
	if s.record != nil {
		return nil // the watch was opened again
	}
	s.record = s.endpoints.DeepCopy()
	if err := createRecord(ctx, b.exporter.remote, s.record); err != nil {
		return err
	}
	if err := createRecord(ctx, b.exporter.remote, s.subject.record.DeepCopy()); err != nil {
		return err
	}
	said := export.DeepCopy()
	said.Status.Conditions = s.exportConditions
	return b.exporter.local.Status().Update(ctx, said)
}

// createRecord tries again where creations of one member have raced for its quota.
func createRecord(ctx context.Context, c client.Client, record client.Object) error {
	for {
		if err := c.Create(ctx, record); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// republish writes a slice's record if the slice has changed.
func (b *bare) republish(ctx context.Context, s *bareSubject, slice *discoveryv1.EndpointSlice) error {
	if s.record == nil || sameAddresses(addressesOf(slice), recorded(s.record)) {
		return nil
	}
	group := &s.record.Spec.Groups[0]
	for i, a := range addressesOf(slice) {
		group.Addresses[i] = hubv1alpha1.IPAddress(a)
	}
	return b.exporter.remote.Update(ctx, s.record)
}

// importInto writes what a new import consists of.
func importInto(ctx context.Context, m *member, s *bareSubject) error {
	if s.mirrored[m.number-1] != nil {
		return nil
	}
	derived, mirrored, imported := s.derived.DeepCopy(), s.subject.mirrored.DeepCopy(), s.imported.DeepCopy()
	if err := m.local.Create(ctx, derived); err != nil {
		return err
	}
	if err := m.local.Create(ctx, mirrored); err != nil {
		return err
	}
	s.mirrored[m.number-1] = mirrored
	imported.Spec.IPs = derived.Spec.ClusterIPs
	if err := m.local.Create(ctx, imported); err != nil {
		return err
	}
	s.importStatus.DeepCopyInto(&imported.Status)
	return m.local.Status().Update(ctx, imported)
}

// remirror writes the addresses of a mirrored slice if they have changed.
func remirror(ctx context.Context, m *member, s *bareSubject, addresses []string) error {
	mirrored := s.mirrored[m.number-1]
	if mirrored == nil || sameAddresses(addressesOf(mirrored), addresses) {
		return nil
	}
	for i, a := range addresses {
		mirrored.Endpoints[i].Addresses = []string{a}
	}
	return m.local.Update(ctx, mirrored)
}

func addressesOf(slice *discoveryv1.EndpointSlice) []string {
	result := make([]string, len(slice.Endpoints))
	for i, e := range slice.Endpoints {
		result[i] = e.Addresses[0]
	}
	return result
}

func recorded(record *hubv1alpha1.PublishedEndpoints) []string {
	var result []string
	for _, a := range record.Spec.Groups[0].Addresses {
		result = append(result, string(a))
	}
	return result
}

func sameAddresses(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
