// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package retain_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/retain"
)

// server is an API server with one kind, whose watch is that of a test.
type server struct {
	uid      types.UID
	isDown   atomic.Bool // the definition cannot be read
	objects  []string
	events   *watch.RaceFreeFakeWatcher
	retained int
	source   *cache.ListWatch
}

func newServer(objects ...string) *server {
	s := &server{uid: "first", objects: objects, events: watch.NewRaceFreeFake()}
	s.source = retain.Source(&cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.ConfigMapList{}
			names := s.objects
			if o.Limit == 2 && o.Continue == "" && len(names) > 2 { // the first part
				list.Continue, names = "next", names[:2]
			}
			if o.Continue != "" {
				names = names[2:]
			}
			for _, name := range names {
				list.Items = append(list.Items, *object(name))
			}
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return s.events, nil },
	}, s.definition, func(n int) { s.retained = n })
	return s
}

func (s *server) definition(context.Context) (types.UID, error) {
	if s.isDown.Load() {
		return "", errors.New("down")
	}
	return s.uid, nil
}

func object(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
}

// list returns the names of a list, or its error.
func (s *server) list(t *testing.T) (names []string, err error) {
	t.Helper()
	found, err := s.source.ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, item := range found.(*corev1.ConfigMapList).Items {
		names = append(names, item.Name)
	}
	return names, nil
}

// passed returns the events that a watch passes on.
func (s *server) passed(t *testing.T, send func()) (events []string) {
	t.Helper()
	watching, err := s.source.WatchWithContext(t.Context(), metav1.ListOptions{})
	check.Must(t, err)
	send()
	s.events.Stop()
	for e := range watching.ResultChan() {
		events = append(events, string(e.Type)+" "+e.Object.(*corev1.ConfigMap).Name)
	}
	s.events = watch.NewRaceFreeFake()
	return events
}

// TestDeletedByUser: what a user deletes is deleted.
func TestDeletedByUser(t *testing.T) {
	t.Parallel()
	s := newServer("x", "y")
	check.Equal(t, "listed", []string{"x", "y"}, must(s.list(t)))
	check.Equal(t, "events", []string{"MODIFIED x", "DELETED x", "ADDED z"}, s.passed(t, func() {
		s.events.Modify(object("x"))
		s.events.Delete(object("x"))
		s.events.Add(object("z"))
	}))
	s.objects = []string{"y"} // z was deleted while there was no watch
	check.Equal(t, "listed", []string{"y"}, must(s.list(t)))
	check.Equal(t, "retained", 0, s.retained)
}

// TestDefinitionDeleted: what is deleted with its definition stays, until an object of the name is created again; also if the definition is
// created again without them, and if no watch has seen the deletion.
//
// spec: A7
func TestDefinitionDeleted(t *testing.T) {
	t.Parallel()
	for name, uid := range map[string]types.UID{"while it is deleted": "", "after another one was created": "second"} {
		s := newServer("x", "y", "z")
		must(s.list(t))
		check.Equal(t, name+": events", []string(nil), s.passed(t, func() {
			s.uid = uid
			s.events.Delete(object("x"))
			s.events.Delete(object("y"))
		}))
		check.Equal(t, name+": retained", 2, s.retained)
		s.objects, s.uid = nil, ""
		if _, err := s.list(t); err == nil {
			t.Errorf("%s: a list of a kind that is being deleted succeeds", name)
		}
		s.uid = "second"
		check.Equal(t, name+": listed", []string{"x", "y", "z"}, must(s.list(t)))
		check.Equal(t, name+": retained", 3, s.retained)
		check.Equal(t, name+": events", []string{"ADDED x", "DELETED x"}, s.passed(t, func() {
			s.events.Add(object("x"))
			s.events.Delete(object("x"))
		}))
		s.objects = []string{"y"} // restored while there was no watch
		check.Equal(t, name+": listed", []string{"y", "z"}, must(s.list(t)))
		check.Equal(t, name+": retained", 1, s.retained)
	}
}

// TestDefinitionForbidden: if the definition may not be read, or only later, a deletion is that of a user; but not of a kind that is deleted.
func TestDefinitionForbidden(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		before, after types.UID
		retained      int
	}{
		{retain.Unknown, retain.Unknown, 0},
		{retain.Unknown, "first", 0},
		{"first", retain.Unknown, 0},
		{retain.Unknown, "", 1},
	} {
		s := newServer("x", "y")
		s.uid = tc.before
		must(s.list(t))
		events := s.passed(t, func() {
			s.uid = tc.after
			s.events.Delete(object("x"))
		})
		check.Equal(t, string(tc.before+" then "+tc.after+": events"), 1-tc.retained, len(events))
		check.Equal(t, string(tc.before+" then "+tc.after+": retained"), tc.retained, s.retained)
		if s.objects = []string{"y"}; tc.after != "" {
			check.Equal(t, string(tc.before+" then "+tc.after+": listed"), []string{"y"}, must(s.list(t)))
		}
	}
}

// TestDefinitionUnanswered: while the definition cannot be read, a deletion waits; and so do later events.
func TestDefinitionUnanswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer("x")
		must(s.list(t))
		watching, err := s.source.WatchWithContext(t.Context(), metav1.ListOptions{})
		check.Must(t, err)
		s.isDown.Store(true)
		s.events.Delete(object("x"))
		s.events.Add(object("y"))
		synctest.Wait()
		select {
		case e := <-watching.ResultChan():
			t.Errorf("%v is passed on", e)
		default:
		}
		s.isDown.Store(false)
		if e := <-watching.ResultChan(); e.Type != watch.Deleted {
			t.Errorf("%v is passed on", e)
		}
		if e := <-watching.ResultChan(); e.Type != watch.Added {
			t.Errorf("%v is passed on", e)
		}
		watching.Stop()
	})
}

// TestParts: a list in parts has the retained objects once.
func TestParts(t *testing.T) {
	t.Parallel()
	s := newServer("w", "x", "y")
	must(s.list(t))
	s.uid, s.objects = "second", []string{"a", "b", "x"}
	var names []string
	for next := "first"; next != ""; {
		options := metav1.ListOptions{Limit: 2}
		if next != "first" {
			options.Continue = next
		}
		part, err := s.source.ListWithContext(t.Context(), options)
		check.Must(t, err)
		for _, item := range part.(*corev1.ConfigMapList).Items {
			names = append(names, item.Name)
		}
		next = part.(*corev1.ConfigMapList).Continue
	}
	slices.Sort(names)
	check.Equal(t, "listed", []string{"a", "b", "w", "x", "y"}, names)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
