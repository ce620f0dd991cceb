// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"sync"

	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Permissions say which streams are allowed, and end those that no longer are (A4).
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
