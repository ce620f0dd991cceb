// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// initialEventsEnd is in the bookmark that follows the existing objects, versionKey before the version of each object, and errorEvent in the
// event of a watch whose version the API server no longer has. markLength is at least the length of each, with a version.
var (
	initialEventsEnd = []byte(`"` + metav1.InitialEventsAnnotationKey + `":"true"`)
	versionKey       = []byte(`"resourceVersion":"`)
	errorEvent       = []byte(`{"type":"ERROR"`)
)

const markLength = 64

// Receiver replaces the agent of a member as a receiver of the hub's objects: with a connection of its own, it reads all objects of each kind
// as an agent does when it connects, and then their events. It discards them without decoding. If a watch ends, it continues from the version
// that it has read, if the API server still has it, as client-go does.
type Receiver struct {
	seen    *Received
	running sync.WaitGroup
	mu      sync.Mutex
	read    map[string]bool // the kinds of which all objects were read since the watch began
}

// Received counts what receivers have read.
type Received struct{ Events, Bytes atomic.Int64 }

// watchedKinds are the kinds that an agent watches on the hub.
var watchedKinds = []string{"members", "heartbeats", "publishedservices", "publishedendpoints"}

// StartReceivers starts a receiver for each member. stop ends them, also after an error.
func StartReceivers(ctx context.Context, members []*Member, seen *Received) (all []*Receiver, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	stop = func() {
		cancel()
		for _, r := range all {
			r.running.Wait()
		}
	}
	for _, m := range members {
		r, err := startReceiver(ctx, m, seen)
		if err != nil {
			return all, stop, err
		}
		all = append(all, r)
	}
	return all, stop, nil
}

func startReceiver(ctx context.Context, m *Member, seen *Received) (*Receiver, error) {
	connection, err := m.ownClient()
	if err != nil {
		return nil, err
	}
	r := &Receiver{seen: seen, read: map[string]bool{}}
	for _, resource := range watchedKinds {
		r.running.Go(func() {
			version := ""
			for backoff := receiverBackoff(); ctx.Err() == nil; {
				before := version
				if version = r.watch(ctx, connection, resource, version); version != before {
					backoff = receiverBackoff()
				}
				_ = Pause(ctx, backoff.Step()) // the loop ends with ctx
			}
		})
	}
	return r, nil
}

// ownClient returns a client for the hub's kinds with a connection of its own.
func (m *Member) ownClient() (*rest.RESTClient, error) {
	config := OwnConnection(m.ToHub)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &hubv1alpha1.GroupVersion, "/apis", scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

// receiverBackoff returns the pauses between attempts, as those of agents with up to 100 members.
func receiverBackoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6, Cap: 2500 * time.Millisecond}
}

// watch reads the objects of a kind, or what has changed since a version, and their events until the stream ends. It returns the version up
// to which it has read everything, empty if it has not.
func (r *Receiver) watch(ctx context.Context, connection *rest.RESTClient, resource, version string) string {
	request := connection.Get().Resource(resource).Timeout(0).Param("watch", "1").Param("allowWatchBookmarks", "true")
	if version == "" {
		request.Param("sendInitialEvents", "true").Param("resourceVersionMatch", "NotOlderThan")
	} else {
		request.Param("resourceVersion", version)
	}
	stream, err := request.Stream(ctx)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return ""
	}
	if err != nil {
		return version
	}
	defer stream.Close()
	defer r.set(resource, false)
	all := version != ""
	r.set(resource, all)
	buffer, kept := make([]byte, 64<<10), 0
	for {
		n, err := stream.Read(buffer[kept:])
		seen := buffer[:kept+n]
		r.seen.Events.Add(int64(bytes.Count(seen[kept:], []byte{'\n'})))
		r.seen.Bytes.Add(int64(n))
		if !all && bytes.Contains(seen, initialEventsEnd) {
			all = true
			r.set(resource, true)
		}
		if bytes.Contains(seen, errorEvent) {
			return ""
		}
		if all {
			version = cmp.Or(lastVersion(seen), version)
		}
		if err != nil {
			return version
		}
		kept = copy(buffer, seen[max(0, len(seen)-markLength):])
	}
}

// lastVersion returns the version of the last object whose version is complete, empty if there is none.
func lastVersion(events []byte) string {
	for {
		at := bytes.LastIndex(events, versionKey)
		if at < 0 {
			return ""
		}
		if version, _, complete := bytes.Cut(events[at+len(versionKey):], []byte(`"`)); complete {
			return string(version)
		}
		events = events[:at]
	}
}

func (r *Receiver) set(resource string, read bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read[resource] = read
}

// HasState reports whether the receiver has read all kinds (Reachable), or has no watch (Unreachable).
func (r *Receiver) HasState(state hub.Reachability) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	read := 0
	for _, resource := range watchedKinds {
		if r.read[resource] {
			read++
		}
	}
	return state == hub.Reachable && read == len(watchedKinds) || state == hub.Unreachable && read == 0
}
