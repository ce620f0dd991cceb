// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// crowdOfWatchers stand in for the agents of other members: each has a connection of its own and watches what an agent
// watches on the hub. What comes is counted and thrown away.
type crowdOfWatchers struct {
	events, bytes, cutOff atomic.Int64
	cancel                context.CancelFunc
	done                  sync.WaitGroup
	mu                    sync.Mutex
	failed                error
}

// watched are the kinds that an agent watches on the hub.
func watched() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"members": &hubv1alpha1.MemberList{}, "heartbeats": &hubv1alpha1.HeartbeatList{},
		"publishedservices": &hubv1alpha1.PublishedServiceList{}, "publishedendpoints": &hubv1alpha1.PublishedEndpointsList{},
	}
}

// openCrowd returns when all watches have begun.
func openCrowd(ctx context.Context, members []*member) (*crowdOfWatchers, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &crowdOfWatchers{cancel: cancel}
	err := each(ctx, setupWidth, members, func(_ context.Context, m *member) error {
		connection, err := rest.HTTPClientFor(apart(m.toHub))
		if err != nil {
			return err
		}
		for resource, list := range watched() {
			// Not the group's context: the watch outlives its opening.
			stream, err := openRaw(ctx, connection, m, resource, list)
			if err != nil {
				return err
			}
			w.done.Go(func() { w.follow(ctx, connection, m, resource, stream) })
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

// openRaw begins a watch of what comes from now on.
func openRaw(ctx context.Context, connection *http.Client, m *member, resource string, list client.ObjectList) (io.ReadCloser, error) {
	if err := m.remote.List(ctx, list, client.Limit(1)); err != nil {
		return nil, err
	}
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {list.GetResourceVersion()}}
	at := fmt.Sprintf("%s/apis/%s/%s?%s", m.toHub.Host, hubv1alpha1.GroupVersion, resource, query.Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := connection.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("watch %s: %s", resource, response.Status)
	}
	return response.Body, nil
}

// follow reads a watch until ctx ends, and opens it again where the API server cuts it off.
func (w *crowdOfWatchers) follow(ctx context.Context, connection *http.Client, m *member, resource string, stream io.ReadCloser) {
	for {
		w.read(stream)
		_ = stream.Close()
		if ctx.Err() != nil {
			return
		}
		w.cutOff.Add(1)
		var err error
		if stream, err = openRaw(ctx, connection, m, resource, watched()[resource]); err != nil {
			w.fail(fmt.Errorf("open a watch of %s for %s again: %w", resource, m.id, err))
			return
		}
	}
}

// read counts events, each of which is a line, until the stream ends.
func (w *crowdOfWatchers) read(stream io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := stream.Read(buffer)
		w.events.Add(int64(bytes.Count(buffer[:n], []byte{'\n'})))
		w.bytes.Add(int64(n))
		if err != nil {
			return
		}
	}
}

func (w *crowdOfWatchers) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = errors.Join(w.failed, err)
}

// stop ends the watches and returns what has gone wrong before.
func (w *crowdOfWatchers) stop() error {
	w.mu.Lock()
	failed := w.failed
	w.mu.Unlock()
	w.cancel()
	w.done.Wait()
	return failed
}

// flow is what the watchers have received.
type flow struct {
	at            time.Time
	events, bytes int64
}

func (w *crowdOfWatchers) flow() flow { return flow{time.Now(), w.events.Load(), w.bytes.Load()} }

// since returns the events and megabytes a second since an earlier count.
func (f flow) since(earlier flow) (events, megabytes float64) {
	seconds := f.at.Sub(earlier.at).Seconds()
	return float64(f.events-earlier.events) / seconds, float64(f.bytes-earlier.bytes) / seconds / 1e6
}
