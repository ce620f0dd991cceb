// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"sync"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Refusals stores the last reported refusals of each service, so that each is reported once.
type Refusals struct {
	mu       sync.Mutex
	reported map[clusterset.ServiceKey]string
}

// NewRefusals returns empty Refusals.
func NewRefusals() *Refusals { return &Refusals{reported: map[clusterset.ServiceKey]string{}} }

// isNew stores the refusals of a service, and reports whether they are new and not empty.
func (r *Refusals) isNew(key clusterset.ServiceKey, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported[key] == text {
		return false
	}
	r.reported[key] = text
	if text == "" {
		delete(r.reported, key)
	}
	return text != ""
}
