// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package publication is the state of this member's publication, in memory. The controller publish writes it; presence and
// exportstatus read it.
package publication

import (
	"sync"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

// Progress tells whether everything that this cluster exports has been published since the hub was last listed. Only
// then may a heartbeat say Complete, which makes the absence of a record a deletion (design decision 7).
type Progress struct {
	mu sync.Mutex
	// listing is the list of the hub since which this counts; 0 before the first.
	listing int
	pending map[clusterset.ServiceKey]struct{}
	// versions are the highest of the records that were found right or made so since then.
	versions hub.Versions
	complete chan struct{}
}

// NewProgress returns a Progress of which nothing is done.
func NewProgress() *Progress { return &Progress{complete: make(chan struct{}, 1)} }

// Begin starts over, unless it has done so since that list of the hub was taken in: the publication is complete again
// when each of these services is done.
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
	p.announce()
}

// Lost notes that a record of a service has gone from the hub: the publication is not complete until the service has been looked
// at again, as its record may have to be published again.
func (p *Progress) Lost(key clusterset.ServiceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listing != 0 {
		p.pending[key] = struct{}{}
	}
}

// Done notes that the hub holds what is exported of a service, in records of which these versions are the highest, as it was
// looked at after that list. What was looked at before another list was taken over is looked at again because of it.
func (p *Progress) Done(key clusterset.ServiceKey, listing int, versions hub.Versions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if listing != p.listing {
		return
	}
	p.versions = p.versions.Latest(versions)
	if _, ok := p.pending[key]; ok {
		delete(p.pending, key)
		p.announce()
	}
}

// Publication is how far the publication has come.
type Publication struct {
	State hubv1alpha1.Publication
	// Listing is the list of the hub since which it counts.
	Listing int
	// Versions are the highest versions that the records have, if it is complete.
	Versions hub.Versions
}

// Publication returns how far the publication has come.
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

func (p *Progress) announce() {
	if len(p.pending) > 0 {
		return
	}
	select {
	case p.complete <- struct{}{}:
	default: // not yet taken notice of the last time
	}
}
