// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
)

// kind is a kind of object that is read.
type kind string

const (
	kindImport kind = "serviceimports"
	kindSlice  kind = "endpointslices"
)

// table has the records of all objects, and the services that changed since the last publication.
type table struct {
	kinds  []kind        // that the plugin reads
	notify chan struct{} // has an element if there may be changes

	mu      sync.Mutex
	objects map[kind]map[zone.ObjectKey]zone.Record
	slices  map[zone.ServiceKey]map[zone.ObjectKey]*zone.Mirrored
	listed  map[kind]bool
	dirty   map[zone.ServiceKey]struct{}
	refused map[zone.Reason]int
}

func newTable(kinds ...kind) *table {
	t := &table{
		kinds:   kinds,
		notify:  make(chan struct{}, 1),
		objects: map[kind]map[zone.ObjectKey]zone.Record{},
		slices:  map[zone.ServiceKey]map[zone.ObjectKey]*zone.Mirrored{},
		listed:  map[kind]bool{},
		dirty:   map[zone.ServiceKey]struct{}{},
		refused: map[zone.Reason]int{},
	}
	for _, k := range kinds {
		t.objects[k] = map[zone.ObjectKey]zone.Record{}
	}
	return t
}

// put stores a record. It reports false if it is stored already.
func (t *table) put(k kind, r zone.Record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.signal()
	return t.set(k, r)
}

// remove removes an object.
func (t *table) remove(k kind, key zone.ObjectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.signal()
	t.unset(k, key)
}

// replace replaces all records of a kind by those of a list, and returns those that changed.
func (t *table) replace(k kind, list []zone.Record) []zone.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.signal()
	known := make(map[zone.ObjectKey]struct{}, len(list))
	var changes []zone.Record
	for _, r := range list {
		known[r.ID()] = struct{}{}
		if t.set(k, r) {
			changes = append(changes, r)
		}
	}
	for key := range t.objects[k] {
		if _, ok := known[key]; !ok {
			t.unset(k, key)
		}
	}
	t.listed[k] = true
	return changes
}

func (t *table) set(k kind, r zone.Record) bool {
	// equality.Semantic does not look into unexported fields.
	if reflect.DeepEqual(t.objects[k][r.ID()], r) {
		return false
	}
	t.unset(k, r.ID())
	t.objects[k][r.ID()] = r
	t.dirty[r.Service()] = struct{}{}
	for _, refusal := range r.Refused() {
		t.refused[refusal.Reason]++
	}
	if m, ok := r.(*zone.Mirrored); ok {
		if t.slices[m.Service()] == nil {
			t.slices[m.Service()] = map[zone.ObjectKey]*zone.Mirrored{}
		}
		t.slices[m.Service()][m.ID()] = m
	}
	return true
}

func (t *table) unset(k kind, key zone.ObjectKey) {
	old := t.objects[k][key]
	if old == nil {
		return
	}
	delete(t.objects[k], key)
	t.dirty[old.Service()] = struct{}{}
	for _, refusal := range old.Refused() {
		t.refused[refusal.Reason]--
	}
	if m, ok := old.(*zone.Mirrored); ok {
		delete(t.slices[m.Service()], key)
		if len(t.slices[m.Service()]) == 0 {
			delete(t.slices, m.Service())
		}
	}
}

// signal notifies the publisher.
func (t *table) signal() {
	select {
	case t.notify <- struct{}{}:
	default: // signalled already
	}
}

// changed has the records of a service to build.
type changed struct {
	imported *zone.Imported
	slices   []*zone.Mirrored
}

// take returns the services that changed since the last call. It reports false until all kinds have been listed: a kind that is not
// listed is not empty (spec N8).
func (t *table) take() (map[zone.ServiceKey]changed, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.kinds {
		if !t.listed[k] {
			return nil, false
		}
	}
	changes := make(map[zone.ServiceKey]changed, len(t.dirty))
	for key := range t.dirty {
		name, namespace, _ := strings.Cut(string(key), ".")
		i, _ := t.objects[kindImport][zone.ObjectKey{Namespace: namespace, Name: name}].(*zone.Imported)
		changes[key] = changed{i, slices.Collect(maps.Values(t.slices[key]))}
	}
	clear(t.dirty)
	return changes, true
}

// refusals returns the number of objects with a refusal, by reason.
func (t *table) refusals() map[zone.Reason]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.refused)
}
