// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestReturn: when the hub is reachable again, all services are enqueued once. They are also enqueued when the hub is found to be
// unreachable before the first list.
func TestReturn(t *testing.T) {
	t.Parallel()
	store := NewStore("own", clusterset.AddressRanges{})
	var events []Event
	var states []Reachability
	c := NewConnection(store, nil, logr.Discard(), func(r Reachability) { states = append(states, r) })
	store.Subscribe(func(e Event) { events = append(events, e) })
	for _, k := range kinds {
		c.handleResult(k, nil)
	}
	check.Equal(t, "the first list is done before any request", false, store.InitialListDone())
	noAnswer := errors.New("connection refused")
	c.handleResult(kindService, noAnswer)
	c.handleResult(kindMember, noAnswer)
	c.handleResult(kindMember, nil)
	check.Equal(t, "a hub that answers most requests counts as unreachable", false, store.InitialListDone())
	c.handleResult(kindService, noAnswer)
	check.Equal(t, "a hub that answers no request counts as unreachable", true, store.InitialListDone())
	all := Event{All: true, Backlog: true}
	check.Equal(t, "while one kind does not answer", []Event{all}, events)
	c.handleResult(kindService, nil)
	c.handleResult(kindService, nil)
	check.Equal(t, "when the hub is back", []Event{all, all}, events)
	check.Equal(t, "states", []Reachability{Reachable, Unreachable, Reachable}, states)
}

// TestUnreachable: a hub is unreachable as soon as the requests for all kinds have failed, also after the start.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	store := NewStore("own", clusterset.AddressRanges{})
	c := NewConnection(store, nil, logr.Discard(), func(Reachability) {})
	for i, k := range kinds {
		check.Equal(t, fmt.Sprintf("the hub is unreachable after %d of %d requests have failed", i, len(kinds)), false, store.InitialListDone())
		c.handleResult(k, errors.New("connection refused"))
	}
	check.Equal(t, "the hub is unreachable after all requests have failed", true, store.InitialListDone())
}

// hubStub is a client whose requests return err. It stores the options of the last list.
type hubStub struct {
	client.WithWatch
	err    error
	listed *metav1.ListOptions
}

func (h *hubStub) List(_ context.Context, _ client.ObjectList, options ...client.ListOption) error {
	h.listed = (&client.ListOptions{}).ApplyOptions(options).AsListOptions()
	return h.err
}

func (h *hubStub) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	return watch.NewFake(), h.err
}

// TestFirstList: the first list is a single response, even if earlier requests failed. Later lists are streamed.
func TestFirstList(t *testing.T) {
	t.Parallel()
	stub := &hubStub{}
	c := NewConnection(NewStore("own", clusterset.AddressRanges{}), stub, logr.Discard(), func(Reachability) {})
	source := c.source(kindService, &hubv1alpha1.PublishedServiceList{})
	stream := metav1.ListOptions{SendInitialEvents: new(true)}
	want := func(when string, streamed bool) {
		t.Helper()
		if _, err := source.WatchWithContext(t.Context(), stream); apierrors.IsMethodNotSupported(err) == streamed {
			t.Errorf("%s: a stream ends with %v", when, err)
		}
	}
	want("at first", false)
	stub.err = errors.New("connection refused")
	if _, err := source.ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, stub.err) {
		t.Fatal(err)
	}
	stub.err = nil
	want("while the hub was unreachable", false)
	_, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
	check.Must(t, err)
	_, err = source.ListWithContext(t.Context(), metav1.ListOptions{})
	check.Must(t, err)
	want("after a list", true)
}

// TestListOptions: a list has the options of the reflector. The list before a watch, which detects an earlier state, has one object.
func TestListOptions(t *testing.T) {
	t.Parallel()
	stub := &hubStub{}
	source := NewConnection(NewStore("own", clusterset.AddressRanges{}), stub, logr.Discard(), func(Reachability) {}).source(kindService, &hubv1alpha1.PublishedServiceList{})
	page := metav1.ListOptions{Limit: 500, Continue: "next"}
	_, err := source.ListWithContext(t.Context(), page)
	check.Must(t, err)
	check.Equal(t, "options of a page", &page, stub.listed)
	_, err = source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
	check.Must(t, err)
	check.Equal(t, "options of the list before a watch", &metav1.ListOptions{Limit: 1}, stub.listed)
}

// TestCheckIsNoList: the hub is not reachable because it answers the list of one object.
func TestCheckIsNoList(t *testing.T) {
	t.Parallel()
	c := NewConnection(NewStore("own", clusterset.AddressRanges{}), &hubStub{}, logr.Discard(), func(Reachability) {})
	_, err := c.source(kindService, &hubv1alpha1.PublishedServiceList{}).ListWithContext(t.Context(), metav1.ListOptions{Limit: 1})
	check.Must(t, err)
	check.Equal(t, "kinds that were read", map[kind]bool{}, c.succeeded)
}
