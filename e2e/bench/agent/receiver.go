// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

// initialEventsEnd is in the bookmark that follows the existing objects.
var initialEventsEnd = []byte(`"` + metav1.InitialEventsAnnotationKey + `":"true"`)

// receiver replaces the agent of a member as a receiver of the hub's objects: with a connection of its own, it reads all objects of each kind
// as an agent does when it connects again, and then their events. It discards them without decoding.
type receiver struct {
	running sync.WaitGroup
	mu      sync.Mutex
	read    map[string]bool // the kinds of which all objects were read since the watch began
}

// startReceiver starts a receiver that ends with ctx.
func startReceiver(ctx context.Context, m *member) (*receiver, error) {
	connection, err := m.ownClient()
	if err != nil {
		return nil, err
	}
	r := &receiver{read: map[string]bool{}}
	for resource := range watchedKinds() {
		r.running.Go(func() {
			for backoff := receiverBackoff(); ctx.Err() == nil; {
				if r.watch(ctx, connection, resource) {
					backoff = receiverBackoff()
				}
				_ = pause(ctx, backoff.Step()) // the loop ends with ctx
			}
		})
	}
	return r, nil
}

// receiverBackoff returns the pauses between attempts, as those of agents with up to 100 members.
func receiverBackoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6, Cap: 2500 * time.Millisecond}
}

// watch reads the objects of a kind, and their events until the stream ends. It reports whether it has read all objects.
func (r *receiver) watch(ctx context.Context, connection *rest.RESTClient, resource string) (all bool) {
	stream, err := connection.Get().Resource(resource).Timeout(0).Param("watch", "1").Param("allowWatchBookmarks", "true").
		Param("sendInitialEvents", "true").Param("resourceVersionMatch", "NotOlderThan").Stream(ctx)
	if err != nil {
		return false
	}
	defer stream.Close()
	defer r.set(resource, false)
	buffer, kept := make([]byte, 64<<10), 0
	for {
		n, err := stream.Read(buffer[kept:])
		if !all {
			seen := buffer[:kept+n]
			if all = bytes.Contains(seen, initialEventsEnd); all {
				r.set(resource, true)
			}
			kept = copy(buffer, seen[max(0, len(seen)-len(initialEventsEnd)):])
		}
		if err != nil {
			return all
		}
	}
}

func (r *receiver) set(resource string, read bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[resource] = read
}

func (r *receiver) hasState(state hub.Reachability) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	read := 0
	for resource := range watchedKinds() {
		if r.read[resource] {
			read++
		}
	}
	return state == hub.Reachable && read == len(watchedKinds()) || state == hub.Unreachable && read == 0
}
