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
)

// feed is the interface of the table for the reflector of one kind: a client-go ReflectorStore that stores records, not objects.
// As a TransformingStore, it also keeps whole objects out of memory while a list is streamed.
type feed struct {
	table      *table
	kind       kind
	names      names
	namespaces map[string]struct{} // empty: all
	gauges     gauges
}

// ignored is the record of an object in a namespace that is not served.
type ignored struct{ header }

// Transformer returns the function that converts objects to records.
func (f *feed) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return f.record(object) }
}

func (f *feed) record(object any) (record, error) {
	var r record
	switch o := object.(type) {
	case record:
		return o, nil
	case cache.DeletedFinalStateUnknown:
		return f.record(o.Obj)
	case *v1beta1.ServiceImport:
		r = f.names.importOf(o)
	case *v1alpha1.ServiceImport:
		r = f.names.importOfAlpha(o)
	case *discoveryv1.EndpointSlice:
		r = f.names.sliceOf(o)
	default:
		return nil, fmt.Errorf("a %T is neither a ServiceImport nor an EndpointSlice", object)
	}
	if _, ok := f.namespaces[r.id().namespace]; !ok && len(f.namespaces) > 0 {
		return &ignored{header{object: r.id()}}, nil
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
	if _, ok := r.(*ignored); ok {
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
	f.table.remove(f.kind, r.id())
	return nil
}

// Replace replaces all objects of the kind by those of a list.
func (f *feed) Replace(objects []any, _ string) error {
	f.gauges.received(f.kind, time.Now())
	list := make([]record, 0, len(objects))
	for _, object := range objects {
		r, err := f.record(object)
		if err != nil {
			return err
		}
		if _, ok := r.(*ignored); !ok {
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
func (f *feed) logRefusals(r record) {
	for _, refusal := range r.refused() {
		log.Warningf("%s %s/%s: %s", f.kind, r.id().namespace, r.id().name, refusal.detail)
	}
}
