// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retain keeps the objects of a kind in a cache when the CustomResourceDefinition of the kind is deleted. An API server deletes
// all objects of a kind with its definition, one by one, as if a user had deleted each. For rules, which restrict, this would allow
// everything: missing data never counts as deletion.
package retain

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tombolo-mcs/tombolo/internal/rewind"
)

// Definition returns the UID of the definition of a kind, empty if it does not exist or is being deleted, and Unknown if it may not be read.
type Definition func(ctx context.Context) (types.UID, error)

// errDefinition is the error of a list that an incomplete set of objects may answer.
var errDefinition = errors.New("the definition of the kind is being deleted or replaced: the objects that were read stay in the cache")

// retryInterval is the time between two reads of the definition.
const retryInterval = time.Second

// Source returns a source of one kind for a reflector, whose objects stay when their definition is deleted. They stay until an object of the
// same name is created, also after the definition has been created again without them. changed is called with the number of such
// objects, if it has changed.
func Source(from *cache.ListWatch, definition Definition, changed func(retained int)) *cache.ListWatch {
	s := &source{from: from, definition: definition, changed: changed, known: objects{}, retained: objects{}}
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

// objects are objects by their keys.
type objects map[cache.ObjectName]runtime.Object

func (o objects) add(object runtime.Object) (cache.ObjectName, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return cache.ObjectName{}, err
	}
	key := cache.MetaObjectToName(accessor)
	o[key] = object
	return key, nil
}

type source struct {
	from       *cache.ListWatch
	definition Definition
	changed    func(int)

	mu sync.Mutex
	// uid is that of the definition of the known objects.
	uid             types.UID
	known, retained objects
	// listed are the objects of a list of which parts are to come.
	listed objects
}

// list returns the objects and the retained ones. It fails while the definition is being deleted.
func (s *source) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if rewind.IsCheck(options) {
		return s.from.ListWithContext(ctx, options)
	}
	before, err := s.definition(ctx)
	if err != nil {
		return nil, err
	}
	list, err := s.from.ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	after, err := s.definition(ctx)
	switch {
	case err != nil:
		return nil, err
	case before == "" || before != after:
		return nil, errDefinition
	}
	if options.Continue == "" {
		s.beginList()
	}
	return list, s.merge(list, after)
}

// beginList drops the parts of an earlier list.
func (s *source) beginList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = objects{}
}

// merge takes over a list of the objects of a definition, or a part of it, and adds the retained objects to the last part.
func (s *source) merge(list runtime.Object, uid types.UID) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	part, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range items {
		if _, err := s.listed.add(item); err != nil {
			return err
		}
	}
	if part.GetContinue() != "" {
		return nil
	}
	count := len(s.retained)
	if s.uid != "" && s.isReplaced(uid) {
		maps.Copy(s.retained, s.known)
	}
	for key := range s.listed {
		delete(s.retained, key)
	}
	s.uid, s.known, s.listed = uid, s.listed, nil
	s.note(count)
	for _, key := range slices.SortedFunc(maps.Keys(s.retained), compare) {
		items = append(items, s.retained[key])
	}
	return meta.SetList(list, items)
}

// isReplaced reports whether a definition is not that of the known objects. One that may not be read is not known to be another.
func (s *source) isReplaced(uid types.UID) bool {
	return uid != s.uid && (uid == "" || uid != Unknown && s.uid != Unknown)
}

func compare(a, b cache.ObjectName) int {
	return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
}

// note calls changed if the number of retained objects has changed.
func (s *source) note(before int) {
	if len(s.retained) != before {
		s.changed(len(s.retained))
	}
}

// watch returns the events without the deletions that the deletion of the definition causes.
func (s *source) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := s.from.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(e watch.Event) (watch.Event, bool) { return e, s.observe(ctx, e) }), nil
}

// observe reports whether the event is to be passed on.
func (s *source) observe(ctx context.Context, e watch.Event) bool {
	switch e.Type {
	case watch.Added, watch.Modified:
		s.mu.Lock()
		defer s.mu.Unlock()
		count := len(s.retained)
		if key, err := s.known.add(e.Object); err == nil {
			delete(s.retained, key)
		}
		s.note(count)
	case watch.Deleted:
		return s.isDeleted(ctx, e.Object)
	case watch.Bookmark, watch.Error:
	}
	return true
}

// isDeleted reports whether an object was deleted by itself. The API server marks a definition before it deletes the first object of the
// kind. While it does not answer, the event waits, and so do those after it.
func (s *source) isDeleted(ctx context.Context, object runtime.Object) bool {
	var uid types.UID
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		var err error
		uid, err = s.definition(ctx)
		return err == nil, nil
	})
	key, failed := objects{}.add(object)
	if err != nil || failed != nil { // the watch ends, and the next list has what is left
		return failed != nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	count := len(s.retained)
	if last, isKnown := s.known[key]; isKnown && s.isReplaced(uid) {
		s.retained[key] = last
		delete(s.known, key)
		s.note(count)
		return false
	}
	delete(s.known, key)
	return true
}
