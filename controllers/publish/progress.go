// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"sync"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Progress tracks whether everything that this cluster exports has been published since the last list of the hub. Only then may the
// heartbeat be Complete, because missing records then count as deleted (decision 2).
type Progress struct {
	mu sync.Mutex
	// listing is the number of the list of the hub for which Progress has begun; 0 before the first.
	listing int
	pending map[clusterset.ServiceKey]struct{}
	// versions are the highest versions of the records that were found or written since then.
	versions hub.Versions
	complete chan struct{}
}

// NewProgress returns a Progress that has not begun.
func NewProgress() *Progress { return &Progress{complete: make(chan struct{}, 1)} }

// Begin starts again, unless it has begun for this list of the hub. The publication is complete when each of these services is
// done.
func (p *Progress) Begin(listing int, keys []clusterset.ServiceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if listing == p.listing {
		return
	}
	p.listing, p.versions = listing, hub.Versions{}
	p.pending = make(map[clusterset.ServiceKey]struct{}, len(keys))
	for _, key := range keys {
		p.pending[key] = struct{}{}
	}
	p.signalIfComplete()
}

// RecordDeleted makes a service pending after the hub has deleted a record of it, because the record may have to be published
// again.
func (p *Progress) RecordDeleted(key clusterset.ServiceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listing != 0 {
		p.pending[key] = struct{}{}
	}
}

// Done marks a service as published, with the highest versions of its records. It does nothing if the service was reconciled before
// the last list: that list enqueues the service again.
func (p *Progress) Done(key clusterset.ServiceKey, listing int, versions hub.Versions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if listing != p.listing {
		return
	}
	p.versions = p.versions.Latest(versions)
	if _, ok := p.pending[key]; ok {
		delete(p.pending, key)
		p.signalIfComplete()
	}
}

// Publication is the state of a publication.
type Publication struct {
	State hubv1alpha1.Publication
	// Listing is the number of the list of the hub for which it began.
	Listing int
	// Versions are the highest versions of the records, if the publication is complete.
	Versions hub.Versions
}

// Publication returns the state of the publication.
func (p *Progress) Publication() Publication {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listing == 0 || len(p.pending) > 0 {
		return Publication{State: hubv1alpha1.PublicationPartial, Listing: p.listing}
	}
	return Publication{hubv1alpha1.PublicationComplete, p.listing, p.versions}
}

// Completed returns a channel that receives whenever the publication has become complete.
func (p *Progress) Completed() <-chan struct{} { return p.complete }

func (p *Progress) signalIfComplete() {
	if len(p.pending) > 0 {
		return
	}
	select {
	case p.complete <- struct{}{}:
	default: // signalled already
	}
}
