// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
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
	objects map[kind]map[objectKey]record
	slices  map[serviceKey]map[objectKey]*mirrored
	listed  map[kind]bool
	dirty   map[serviceKey]struct{}
	refused map[reason]int
}

func newTable(kinds ...kind) *table {
	t := &table{
		kinds:   kinds,
		notify:  make(chan struct{}, 1),
		objects: map[kind]map[objectKey]record{},
		slices:  map[serviceKey]map[objectKey]*mirrored{},
		listed:  map[kind]bool{},
		dirty:   map[serviceKey]struct{}{},
		refused: map[reason]int{},
	}
	for _, k := range kinds {
		t.objects[k] = map[objectKey]record{}
	}
	return t
}

// put stores a record. It reports false if it is stored already.
func (t *table) put(k kind, r record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.signal()
	return t.set(k, r)
}

// remove removes an object.
func (t *table) remove(k kind, key objectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.signal()
	t.unset(k, key)
}

// replace replaces all records of a kind by those of a list, and returns those that changed.
func (t *table) replace(k kind, list []record) []record {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.signal()
	known := make(map[objectKey]struct{}, len(list))
	var changes []record
	for _, r := range list {
		known[r.id()] = struct{}{}
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

func (t *table) set(k kind, r record) bool {
	// equality.Semantic does not look into unexported fields.
	if reflect.DeepEqual(t.objects[k][r.id()], r) {
		return false
	}
	t.unset(k, r.id())
	t.objects[k][r.id()] = r
	t.dirty[r.service()] = struct{}{}
	for _, refusal := range r.refused() {
		t.refused[refusal.reason]++
	}
	if m, ok := r.(*mirrored); ok {
		if t.slices[m.key] == nil {
			t.slices[m.key] = map[objectKey]*mirrored{}
		}
		t.slices[m.key][m.object] = m
	}
	return true
}

func (t *table) unset(k kind, key objectKey) {
	old := t.objects[k][key]
	if old == nil {
		return
	}
	delete(t.objects[k], key)
	t.dirty[old.service()] = struct{}{}
	for _, refusal := range old.refused() {
		t.refused[refusal.reason]--
	}
	if m, ok := old.(*mirrored); ok {
		delete(t.slices[m.key], key)
		if len(t.slices[m.key]) == 0 {
			delete(t.slices, m.key)
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
	imported *imported
	slices   []*mirrored
}

// take returns the services that changed since the last call. It reports false until all kinds have been listed: a kind that is not
// listed is not empty (spec N8).
func (t *table) take() (map[serviceKey]changed, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.kinds {
		if !t.listed[k] {
			return nil, false
		}
	}
	changes := make(map[serviceKey]changed, len(t.dirty))
	for key := range t.dirty {
		name, namespace, _ := strings.Cut(string(key), ".")
		i, _ := t.objects[kindImport][objectKey{namespace, name}].(*imported)
		changes[key] = changed{i, slices.Collect(maps.Values(t.slices[key]))}
	}
	clear(t.dirty)
	return changes, true
}

// refusals returns the number of objects with a refusal, by reason.
func (t *table) refusals() map[reason]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.refused)
}
