// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/go-logr/logr"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
)

// retainedRules counts the rules that stay although their kind was deleted. While there are any, the agent is not ready and says why.
type retainedRules struct {
	log logr.Logger

	mu     sync.Mutex
	counts map[string]int // by the name of the definition
}

// set stores and logs the number of rules of a definition that stay.
func (r *retainedRules) set(definition string, count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	if r.counts[definition] = count; count == 0 {
		delete(r.counts, definition)
		r.log.Info("all rules that were deleted with their definition exist again", "definition", definition)
		return
	}
	r.log.Info("rules stay without their definition", "reason", caches.Retained(definition, count).Error())
}

// err returns what stays and what to do, nil if nothing does.
func (r *retainedRules) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, definition := range slices.Sorted(maps.Keys(r.counts)) {
		errs = append(errs, caches.Retained(definition, r.counts[definition]))
	}
	return errors.Join(errs...)
}
