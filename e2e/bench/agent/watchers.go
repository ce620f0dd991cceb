// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// watchers replace the agents of other members as receivers: each has a connection of its own and an agent's watches on the
// hub. It counts the events and discards them without decoding.
type watchers struct {
	events, bytes atomic.Int64
}

// watchedKinds are the kinds that an agent watches on the hub.
func watchedKinds() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"members": &hubv1alpha1.MemberList{}, "heartbeats": &hubv1alpha1.HeartbeatList{},
		"publishedservices": &hubv1alpha1.PublishedServiceList{}, "publishedendpoints": &hubv1alpha1.PublishedEndpointsList{},
	}
}

// openWatchers returns when all watches are open. stop ends them and returns their error.
func openWatchers(ctx context.Context, members []*member) (w *watchers, stop func() error, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w = &watchers{}
	var running sync.WaitGroup
	stop = func() error {
		cancel(nil)
		running.Wait()
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			return cause
		}
		return nil
	}
	err = each(ctx, setupWidth, members, func(_ context.Context, m *member) error {
		connection, err := m.ownClient()
		if err != nil {
			return err
		}
		for resource, list := range watchedKinds() {
			// The context is not the group's, because the watch continues.
			stream, err := openWatch(ctx, connection, m, resource, list, nil)
			if err != nil {
				return err
			}
			running.Go(func() {
				for w.count(stream); ctx.Err() == nil; w.count(stream) { // the API server closes watches that are too slow
					if stream, err = openWatch(ctx, connection, m, resource, list, nil); err != nil {
						cancel(fmt.Errorf("reopen a watch of %s for %s: %w", resource, m.id, err))
					}
				}
			})
		}
		return nil
	})
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return w, stop, nil
}

// ownClient returns a client for the hub's kinds with a connection of its own.
func (m *member) ownClient() (*rest.RESTClient, error) {
	config := ownConnection(m.toHub)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &hubv1alpha1.GroupVersion, "/apis", scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

// openWatch begins a watch of future events, of the objects that the selector selects.
func openWatch(
	ctx context.Context, connection *rest.RESTClient, m *member, resource string, list client.ObjectList, selector url.Values,
) (io.ReadCloser, error) {
	if err := m.remote.List(ctx, list, client.Limit(1)); err != nil {
		return nil, err
	}
	request := connection.Get().Resource(resource).Timeout(0).Param("watch", "1").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", list.GetResourceVersion())
	for name := range selector {
		request.Param(name, selector.Get(name))
	}
	return request.Stream(ctx)
}

// count counts events, each of which is a line, until the stream ends.
func (w *watchers) count(stream io.ReadCloser) {
	if stream == nil {
		return
	}
	defer stream.Close()
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

// heartbeatInterval is the agents' default.
const heartbeatInterval = 10 * time.Second

// sendHeartbeats writes the heartbeats of members that have no agent, one after the other, each once in an interval, until stop, which
// returns its error.
func sendHeartbeats(ctx context.Context, members []*member, interval time.Duration) (stop func() error, err error) {
	if len(members) == 0 {
		return func() error { return nil }, nil
	}
	heartbeats := make([]*hubv1alpha1.Heartbeat, len(members))
	for i, m := range members {
		heartbeats[i] = &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: m.id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}}
		heartbeats[i].Spec = hubv1alpha1.HeartbeatSpec{
			RenewTime: metav1.NowMicro(), ClusterUID: "bench-" + string(m.id), Publication: hubv1alpha1.PublicationComplete,
			IntervalSeconds: int32(interval.Seconds()),
		}
		if err := m.remote.Create(ctx, heartbeats[i]); err != nil {
			return nil, fmt.Errorf("heartbeat of %s: %w", m.id, err)
		}
	}
	stopChanges := startChanges(ctx, float64(len(members))/interval.Seconds(), func(ctx context.Context, i int) error {
		i %= len(members)
		heartbeats[i].Spec.RenewTime = metav1.NowMicro()
		if err := members[i].remote.Update(ctx, heartbeats[i]); err != nil {
			return fmt.Errorf("heartbeat of %s: %w", members[i].id, err)
		}
		return nil
	})
	return func() error {
		_, err := stopChanges()
		return err
	}, nil
}
