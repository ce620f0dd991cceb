// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Permissions say which streams are allowed, and end streams that are no longer allowed (A4).
type Permissions struct {
	// Denied returns why a stream to or from a cluster is not allowed; nil if it is.
	Denied func(cluster clusterset.ClusterID, request wire.Open) *wire.Refusal

	mu      sync.Mutex
	streams map[*admission]struct{}
}

// admission is a stream that was allowed.
type admission struct {
	cluster clusterset.ClusterID
	request wire.Open
	end     func(*wire.Refusal)
}

// admit counts a stream until the result is called, or returns why it is not allowed. end is called if it no longer is, perhaps after the
// end of the stream. It must not block. The result may be called again.
func (p *Permissions) admit(cluster clusterset.ClusterID, request wire.Open, end func(*wire.Refusal)) (func(), *wire.Refusal) {
	if p == nil {
		return func() {}, nil
	}
	stream := &admission{cluster: cluster, request: request, end: end}
	p.mu.Lock()
	if p.streams == nil {
		p.streams = map[*admission]struct{}{}
	}
	p.streams[stream] = struct{}{} // before the decision, so that no change of the rules is missed
	p.mu.Unlock()
	release := func() {
		p.mu.Lock()
		delete(p.streams, stream)
		p.mu.Unlock()
	}
	if refusal := p.Denied(cluster, request); refusal != nil {
		release()
		return nil, refusal
	}
	return release, nil
}

// Recheck ends the streams that are no longer allowed. It is called when the rules have changed.
func (p *Permissions) Recheck() {
	p.mu.Lock()
	streams := make([]*admission, 0, len(p.streams))
	for stream := range p.streams {
		streams = append(streams, stream)
	}
	p.mu.Unlock()
	for _, stream := range streams {
		if refusal := p.Denied(stream.cluster, stream.request); refusal != nil {
			stream.end(refusal)
		}
	}
}

// The time for which, and the number of the kinds of streams for which the importing gateway remembers that another cluster denies them.
const (
	denialLife = time.Second
	maxDenials = 4096
)

// denials are the kinds of streams that other clusters have denied: clients that repeat what they have no right to cost no handshakes. The
// zero value is ready for use. Other refusals are not remembered, and a rule that changes applies after denialLife.
type denials struct {
	mu      sync.Mutex
	entries map[streamKind]denial
	order   []streamKind // the oldest first
}

type denial struct {
	refusal *wire.Refusal
	until   time.Time
}

// streamKind is what decides whether another cluster denies a stream.
type streamKind struct {
	cluster                               clusterset.ClusterID
	namespace, service, hostname          string
	port                                  uint16
	clientNamespace, clientServiceAccount string
}

func kindOf(cluster clusterset.ClusterID, request wire.Open) streamKind {
	return streamKind{
		cluster, request.Namespace, request.Service, request.Hostname, request.Port, request.ClientNamespace, request.ServiceAccount,
	}
}

// add remembers a refusal of another cluster, if it is a denial that does not depend on who the client is found to be.
func (d *denials) add(cluster clusterset.ClusterID, request wire.Open, refusal *wire.Refusal, now time.Time) {
	if refusal == nil || refusal.Code != wire.CodeDenied || request.Unidentified {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire(now)
	kind := kindOf(cluster, request)
	if _, there := d.entries[kind]; there || len(d.order) >= maxDenials {
		return
	}
	if d.entries == nil {
		d.entries = map[streamKind]denial{}
	}
	d.entries[kind] = denial{refusal, now.Add(denialLife)}
	d.order = append(d.order, kind)
}

// find returns the refusal of a stream that another cluster has denied a short time ago; nil if there is none.
func (d *denials) find(cluster clusterset.ClusterID, request wire.Open, now time.Time) *wire.Refusal {
	if request.Unidentified {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expire(now)
	return d.entries[kindOf(cluster, request)].refusal
}

// expire removes the denials that are too old. The caller holds the lock.
func (d *denials) expire(now time.Time) {
	n := 0
	for ; n < len(d.order) && !now.Before(d.entries[d.order[n]].until); n++ {
		delete(d.entries, d.order[n])
	}
	d.order = d.order[n:]
}
