// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// servicesEach is how many services the hub has for each member; downTime is long enough for all connections to reach
// their longest backoff; and at most mostPercent of the lists may begin within listWindow.
const (
	servicesEach = 5
	downTime     = 15 * time.Second
	listWindow   = 250 * time.Millisecond
	mostPercent  = 25
)

// reconnect measures how the agents of many members spread their lists after a restart of the hub. Each agent is a
// connection to the hub of the agents' own code, with the store that it fills, in this process.
func reconnect(ctx context.Context, b *bench, w *world.World) error {
	b.log("the hub admits %d members", b.size)
	publishers, err := w.Admit(ctx, b.size)
	if err != nil {
		return err
	}
	services := newScaleServices(publishers)
	services.add(servicesEach * b.size)
	b.log("publish %d services with %d endpoints", len(services.all), services.endpoints())
	if err := publishAll(ctx, services.all); err != nil {
		return err
	}
	for range b.rounds {
		if err := b.restartHub(ctx, w, publishers); err != nil {
			return err
		}
	}
	b.Limit("Reconnect", "percent-of-lists-within-"+listWindow.String(), agent, results.AtMost(mostPercent))
	b.Limit("Reconnect", "rejected-requests", agent, results.AtMost(0))
	return nil
}

// restartHub restarts the hub once, with connections that are open only for it.
func (b *bench) restartHub(ctx context.Context, w *world.World, publishers []*world.Member) (err error) {
	connecting, cancel := context.WithCancel(ctx)
	defer cancel()
	connections := make([]*connection, len(publishers))
	for i, m := range publishers {
		if connections[i], err = openConnection(connecting, m); err != nil {
			return err
		}
	}
	defer func() {
		cancel()
		for _, c := range connections {
			<-c.ended
		}
	}()
	if err := awaitConnections(ctx, connections, hub.Reachable); err != nil {
		return err
	}
	down := min(downTime, downTime*time.Duration(b.size)/50)
	b.log("%d connections to the hub are open; its API server stops for %s", len(connections), down)
	if err := errors.Join(w.Hub.APIServer.Stop(ctx), world.Pause(ctx, down)); err != nil {
		return err
	}
	if err := awaitConnections(ctx, connections, hub.Unreachable); err != nil {
		return err
	}
	stopped := time.Now()
	most, ready, err := startHub(ctx, w.Hub, func(ctx context.Context, state hub.Reachability) error {
		return awaitConnections(ctx, connections, state)
	})
	if err != nil {
		return err
	}
	for name, value := range most {
		b.Add("Reconnect", agent, name, value)
	}
	b.addReads(connections, stopped, ready)
	return nil
}

// startHub starts the hub, and returns the most requests that it had at any time until all were connected again, by the
// name of the figure, and when it was ready.
func startHub(ctx context.Context, c *lab.Cluster, await func(context.Context, hub.Reachability) error) (most map[string]float64, ready time.Time, err error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	most = map[string]float64{}
	var group errgroup.Group
	group.Go(func() error { return watchLoad(watching, c, most) })
	if err := c.APIServer.Start(ctx); err != nil {
		return nil, time.Time{}, err
	}
	ready = time.Now()
	err = await(ctx, hub.Reachable)
	stop()
	return most, ready, errors.Join(err, group.Wait())
}

// loadInterval is how often an API server's metrics are read: its gauge is the most of each second.
const loadInterval = 500 * time.Millisecond

// watchLoad reads an API server's metrics until ctx ends. An API server that does not answer yet has no load.
func watchLoad(ctx context.Context, c *lab.Cluster, most map[string]float64) error {
	connection, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		return err
	}
	defer connection.CloseIdleConnections()
	read := false
	for world.Pause(ctx, loadInterval) == nil {
		m, readErr := world.ReadMetrics(ctx, connection, c.Config().Host+"/metrics")
		if err = readErr; err != nil {
			continue
		}
		read = true
		for name, value := range map[string]float64{
			"requests-in-flight": m.Sum("apiserver_current_inflight_requests", "request_kind", "readOnly"),
			"waiting-requests":   m.Sum("apiserver_flowcontrol_current_inqueue_requests"),
			"rejected-requests":  m.Sum("apiserver_flowcontrol_rejected_requests_total"),
		} {
			most[name] = max(most[name], value)
		}
	}
	if !read {
		return fmt.Errorf("metrics of %s cannot be read: %w", c.Name, err)
	}
	return nil
}

// addReads adds the reads of the connections since the hub was stopped. The hub may have answered some before it was ready.
func (b *bench) addReads(connections []*connection, stopped, ready time.Time) {
	var all, lists, firsts []float64
	kinds := map[readKind]float64{}
	for _, c := range connections {
		first := math.Inf(1)
		for _, r := range c.since(stopped) {
			kinds[r.kind]++
			began := r.began.Sub(ready).Seconds()
			if all = append(all, began); r.kind != resumedWatch {
				lists, first = append(lists, began), min(first, began)
			}
		}
		if !math.IsInf(first, 1) {
			firsts = append(firsts, first)
		}
	}
	earliest := min(0, results.Quantile(all, 0))
	b.Add("Reconnect", agent, "percent-of-lists-within-"+listWindow.String(), 100*mostWithin(lists, listWindow.Seconds()))
	for _, kind := range []readKind{plainList, streamedList, resumedWatch} {
		b.Add("Reconnect", agent, string(kind), kinds[kind])
	}
	b.Add("Reconnect", agent, "first-list-p50-s", results.Quantile(firsts, 0.5)-earliest)
	b.Add("Reconnect", agent, "first-list-p99-s", results.Quantile(firsts, 0.99)-earliest)
}

// mostWithin returns the largest share of the values that are in an interval of a width; 0 of none.
func mostWithin(values []float64, width float64) float64 {
	values = slices.Sorted(slices.Values(values))
	most, first := 0, 0
	for i, value := range values {
		for value-values[first] > width {
			first++
		}
		most = max(most, i-first+1)
	}
	return float64(most) / float64(max(1, len(values)))
}

// readKind is how objects are read, as the name of a figure.
type readKind string

const (
	plainList    readKind = "plain-lists"
	streamedList readKind = "streamed-lists" // a watch that begins with the existing objects
	resumedWatch readKind = "resumed-watches"
)

// read is a request that the hub has answered.
type read struct {
	kind  readKind
	began time.Time
}

// connection is a member's connection to the hub, which records its reads.
type connection struct {
	client.WithWatch
	store *hub.Store
	ended chan struct{} // closed when it has ended

	mu    sync.Mutex
	reads []read
	state hub.Reachability
}

// openConnection starts a connection that ends with ctx.
func openConnection(ctx context.Context, m *world.Member) (*connection, error) {
	remote, err := hub.Client(world.OwnConnection(m.ToHub))
	if err != nil {
		return nil, err
	}
	c := &connection{WithWatch: remote, store: hub.NewStore(m.ID, clusterset.AddressRanges{}), ended: make(chan struct{}), state: hub.Unreachable}
	h := hub.NewConnection(c.store, c, logr.Discard(), c.changed)
	go func() {
		defer close(c.ended)
		_ = h.Start(ctx) // always nil
	}()
	return c, nil
}

// List records the request.
func (c *connection) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	began := time.Now()
	err := c.WithWatch.List(ctx, list, options...)
	c.record(plainList, began, err)
	return err
}

// Watch records the request.
func (c *connection) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	began, all := time.Now(), &client.ListOptions{}
	watcher, err := c.WithWatch.Watch(ctx, list, options...)
	kind := resumedWatch
	all.ApplyOptions(options)
	if all.Raw != nil && all.Raw.SendInitialEvents != nil && *all.Raw.SendInitialEvents {
		kind = streamedList
	}
	c.record(kind, began, err)
	return watcher, err
}

func (c *connection) record(kind readKind, began time.Time, err error) {
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = append(c.reads, read{kind, began})
}

func (c *connection) changed(state hub.Reachability) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = state
}

func (c *connection) since(at time.Time) []read {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.reads), func(r read) bool { return r.began.Before(at) })
}

func (c *connection) HasState(state hub.Reachability) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == state
}

// awaitConnections returns when all have read everything, or when all have found the hub unreachable.
func awaitConnections[C interface{ HasState(hub.Reachability) bool }](ctx context.Context, all []C, state hub.Reachability) error {
	return lab.Await(ctx, 50*time.Millisecond, world.RoundTimeout, func(context.Context) error {
		missing := slices.DeleteFunc(slices.Clone(all), func(c C) bool { return c.HasState(state) })
		if len(missing) > 0 {
			return fmt.Errorf("for %d of %d connections the hub is not %s", len(missing), len(all), state)
		}
		return nil
	})
}
