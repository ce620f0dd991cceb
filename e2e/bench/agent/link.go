// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

// manner is how something is read.
type manner string

const (
	listing      manner = "list"
	watchListing manner = "watch that begins with a list"
	resuming     manner = "watch from where it was"
)

// asked is a request that the hub has answered.
type asked struct {
	manner manner
	began  time.Time
}

// link is a member's connection to the hub, which notes what it asks for.
type link struct {
	client.WithWatch
	ended chan struct{} // closed when it has come to its end

	mu       sync.Mutex
	requests []asked
	state    hub.Reachability
	since    time.Time
}

// openLink starts a connection, which lasts as long as ctx.
func openLink(ctx context.Context, m *member) (*link, error) {
	c, err := hub.Client(apart(m.toHub))
	if err != nil {
		return nil, err
	}
	l := &link{WithWatch: c, ended: make(chan struct{}), state: hub.Unreachable}
	connection := hub.NewConnection(hub.NewStore(m.id, clusterset.AddressRanges{}), l, logr.Discard(), l.changed)
	go func() {
		defer close(l.ended)
		_ = connection.Start(ctx) // never fails, as it says
	}()
	return l, nil
}

// List notes the request.
func (l *link) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	began := time.Now()
	err := l.WithWatch.List(ctx, list, options...)
	l.note(listing, began, err)
	return err
}

// Watch notes the request.
func (l *link) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	began, all := time.Now(), &client.ListOptions{}
	watcher, err := l.WithWatch.Watch(ctx, list, options...)
	how := resuming
	all.ApplyOptions(options)
	if all.Raw != nil && all.Raw.SendInitialEvents != nil && *all.Raw.SendInitialEvents {
		how = watchListing
	}
	l.note(how, began, err)
	return watcher, err
}

func (l *link) note(how manner, began time.Time, err error) {
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, asked{how, began})
}

func (l *link) changed(r hub.Reachability) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.since = r, time.Now()
}

// forget forgets the requests.
func (l *link) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = nil
}

// answered returns the requests.
func (l *link) answered() []asked {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// isIn reports whether the connection says this of the hub.
func (l *link) isIn(state hub.Reachability) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == state
}

// lastChange returns since when the connection says what it says.
func (l *link) lastChange() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

// awaitLinks returns when all can read everything, or when all have noticed that they cannot.
func awaitLinks(ctx context.Context, links []*link, state hub.Reachability) error {
	missing := 0
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
		missing = 0
		for _, l := range links {
			if !l.isIn(state) {
				missing++
			}
		}
		return missing == 0, nil
	})
	if err != nil {
		return fmt.Errorf("to %d of %d connections the hub is not %s: %w", missing, len(links), state, err)
	}
	return nil
}

// load is the most that an API server had to do at a time, by its own metrics.
type load struct{ inFlight, waiting, refused float64 }

// loadInterval is how often an API server is asked: it tells the most of each second.
const loadInterval = 500 * time.Millisecond

// watch looks until ctx ends. An API server that does not answer yet has nothing to do.
func (l *load) watch(ctx context.Context, c *lab.Cluster) error {
	connection, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		return err
	}
	defer connection.CloseIdleConnections()
	for pause(ctx, loadInterval) == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Config().Host+"/metrics", http.NoBody)
		if err != nil {
			return err
		}
		response, err := connection.Do(request)
		if err != nil {
			continue
		}
		err = l.read(response)
		_ = response.Body.Close()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("metrics of %s: %w", c.Name, err)
		}
	}
	return nil
}

// read takes over what is more than before.
func (l *load) read(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return nil
	}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		most   *float64
		name   string
		having []string
	}{
		{&l.inFlight, "apiserver_current_inflight_requests", []string{`request_kind="readOnly"`}},
		{&l.waiting, "apiserver_flowcontrol_current_inqueue_requests", nil},
		{&l.refused, "apiserver_flowcontrol_rejected_requests_total", nil},
	} {
		now, err := addUp(bytes.NewReader(content), one.name, one.having...)
		if err != nil {
			return err
		}
		*one.most = max(*one.most, now)
	}
	return nil
}
