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

// feed is the table as the reflector of one kind sees it: a client-go ReflectorStore that keeps records, not objects.
// Being a TransformingStore, it keeps whole objects out of memory while a list is streamed, too.
type feed struct {
	table      *table
	kind       kind
	names      names
	namespaces map[string]struct{} // empty: all
	gauges     gauges
}

// ignored stands for objects in namespaces that are not served.
type ignored struct{ header }

// Transformer returns the function that makes records of objects.
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

// Add takes over an object that the watch announces.
func (f *feed) Add(object any) error { return f.Update(object) }

// Update takes over an object that the watch announces.
func (f *feed) Update(object any) error {
	f.gauges.heard(f.kind, time.Now())
	r, err := f.record(object)
	if err != nil {
		return err
	}
	if _, ok := r.(*ignored); ok {
		return nil
	}
	if f.table.put(f.kind, r) {
		f.tell(r)
	}
	return nil
}

// Delete forgets an object whose deletion the watch announces.
func (f *feed) Delete(object any) error {
	f.gauges.heard(f.kind, time.Now())
	r, err := f.record(object)
	if err != nil {
		return err
	}
	f.table.remove(f.kind, r.id())
	return nil
}

// Replace makes the objects of a list the only ones of their kind.
func (f *feed) Replace(objects []any, _ string) error {
	f.gauges.heard(f.kind, time.Now())
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
		f.tell(r)
	}
	return nil
}

// Resync does nothing: nothing here needs to be told twice.
func (f *feed) Resync() error { return nil }

// Bookmark notes that the watch is alive.
func (f *feed) Bookmark(string) error {
	f.gauges.heard(f.kind, time.Now())
	return nil
}

// tell logs what is refused of an object that is news.
func (f *feed) tell(r record) {
	for _, refusal := range r.refused() {
		log.Warningf("%s %s/%s: %s", f.kind, r.id().namespace, r.id().name, refusal.detail)
	}
}
