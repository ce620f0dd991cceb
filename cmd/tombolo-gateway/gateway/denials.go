// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	// denialInterval is the shortest time between two Events about one object and client, and in which a cluster causes maxDenials Events
	// at most in each direction. Other clusters say which clients they have; the clients of this cluster need not share with them.
	denialInterval, maxDenials = time.Minute, 10
	// maxClusters is the number of clusters whose Events are counted. A gateway has connections to no more of them.
	maxClusters = 1000
)

// denials sends Events about the clients that rules deny (A6). A metric counts all denials.
type denials struct {
	events events.EventRecorder
	clock  clock.PassiveClock

	mu   sync.Mutex
	sent *lru.Cache // of each source: what the last Events are about, and their times
}

func newDenials(recorder events.EventRecorder, c clock.PassiveClock) *denials {
	return &denials{events: recorder, clock: c, sent: lru.New(2 * maxClusters)}
}

// source is what a bound is for: the streams of one direction with one cluster.
type source struct {
	direction string
	cluster   clusterset.ClusterID
}

// denial is a client that is denied because of an object.
type denial struct {
	object types.UID
	client string
}

// send sends an Event on an object about a client that it denies, unless there was one lately, or too many about the cluster. The object
// may be nil: then there is no Event.
func (d *denials) send(direction string, service clusterset.ServiceKey, client access.Client, verdict access.Verdict) {
	if verdict.Object == nil {
		return
	}
	identity := fmt.Sprintf("%s/%s/%s", client.Cluster, client.Namespace, client.ServiceAccount)
	if !d.isNew(source{direction, client.Cluster}, denial{verdict.Object.UID, identity}) {
		return
	}
	who, where := "an unknown client", fmt.Sprintf(" of cluster %s", client.Cluster)
	if client.Namespace != "" {
		who = fmt.Sprintf("client %s/%s", client.Namespace, client.ServiceAccount)
	}
	text := fmt.Sprintf("Service %s: %s%s is denied: %s.", service, who, where, verdict.Rule)
	if direction == "import" {
		text = fmt.Sprintf("Service %s%s: %s is denied: %s.", service, where, who, verdict.Rule)
	}
	// Events about one object that have the same related object count as one, of which only the first text is shown.
	related := &corev1.ObjectReference{APIVersion: "v1", Kind: "ServiceAccount", Name: identity}
	d.events.Eventf(verdict.Object, related, corev1.EventTypeWarning, "StreamDenied", "Connect", "%s", conditions.EventNote(text))
}

// isNew reports whether an Event is due, and counts it.
func (d *denials) isNew(from source, about denial) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, recent := d.clock.Now(), map[denial]time.Time{}
	if known, ok := d.sent.Get(from); ok {
		recent = known.(map[denial]time.Time)
	}
	for other, at := range recent {
		if now.Sub(at) >= denialInterval {
			delete(recent, other)
		}
	}
	if _, ok := recent[about]; ok || len(recent) >= maxDenials {
		return false
	}
	recent[about] = now
	d.sent.Add(from, recent)
	return true
}
