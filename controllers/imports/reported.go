// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"sync"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reported stores the last reported state of each service for each reason of an Event, so that each state is reported once.
type Reported struct {
	mu   sync.Mutex
	last map[reported]string
}

type reported struct {
	service clusterset.ServiceKey
	reason  string
}

// NewReported returns an empty Reported.
func NewReported() *Reported { return &Reported{last: map[reported]string{}} }

// isNew stores the state of a service, and reports whether it is new and not empty.
func (r *Reported) isNew(service clusterset.ServiceKey, reason, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := reported{service, reason}
	if r.last[key] == text {
		return false
	}
	r.last[key] = text
	if text == "" {
		delete(r.last, key)
	}
	return text != ""
}
