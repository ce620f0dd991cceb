// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
)

// feed is the interface of the table for the reflector of one kind: a client-go ReflectorStore that stores records, not objects.
// As a TransformingStore, it also keeps whole objects out of memory while a list is streamed.
type feed struct {
	table      *table
	kind       kind
	names      zone.Names
	namespaces map[string]struct{} // empty: all
	gauges     gauges
}

// Transformer returns the function that converts objects to records.
func (f *feed) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return f.record(object) }
}

func (f *feed) record(object any) (zone.Record, error) {
	var r zone.Record
	switch o := object.(type) {
	case zone.Record:
		return o, nil
	case cache.DeletedFinalStateUnknown:
		return f.record(o.Obj)
	case *v1beta1.ServiceImport:
		r = f.names.ImportOf(o)
	case *v1alpha1.ServiceImport:
		r = f.names.ImportOfAlpha(o)
	case *discoveryv1.EndpointSlice:
		r = f.names.SliceOf(o)
	default:
		return nil, fmt.Errorf("a %T is neither a ServiceImport nor an EndpointSlice", object)
	}
	if _, ok := f.namespaces[r.ID().Namespace]; !ok && len(f.namespaces) > 0 {
		return zone.IgnoredOf(r), nil
	}
	return r, nil
}

// Add stores an object of a watch event.
func (f *feed) Add(object any) error { return f.Update(object) }

// Update stores an object of a watch event.
func (f *feed) Update(object any) error {
	f.gauges.received(f.kind, time.Now())
	r, err := f.record(object)
	if err != nil {
		return err
	}
	if _, ok := r.(*zone.Ignored); ok {
		return nil
	}
	if f.table.put(f.kind, r) {
		f.logRefusals(r)
	}
	return nil
}

// Delete removes an object of a watch event.
func (f *feed) Delete(object any) error {
	f.gauges.received(f.kind, time.Now())
	r, err := f.record(object)
	if err != nil {
		return err
	}
	f.table.remove(f.kind, r.ID())
	return nil
}

// Replace replaces all objects of the kind by those of a list.
func (f *feed) Replace(objects []any, _ string) error {
	f.gauges.received(f.kind, time.Now())
	list := make([]zone.Record, 0, len(objects))
	for _, object := range objects {
		r, err := f.record(object)
		if err != nil {
			return err
		}
		if _, ok := r.(*zone.Ignored); !ok {
			list = append(list, r)
		}
	}
	for _, r := range f.table.replace(f.kind, list) {
		f.logRefusals(r)
	}
	return nil
}

// Resync does nothing: there are no event handlers to notify again.
func (f *feed) Resync() error { return nil }

// Bookmark records that the watch is connected.
func (f *feed) Bookmark(string) error {
	f.gauges.received(f.kind, time.Now())
	return nil
}

// logRefusals logs the refusals of a changed object.
func (f *feed) logRefusals(r zone.Record) {
	for _, refusal := range r.Refused() {
		log.Warningf("%s %s/%s: %s", f.kind, r.ID().Namespace, r.ID().Name, refusal.Detail)
	}
}
