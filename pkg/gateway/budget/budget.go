// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the memory of the streams of a gateway, by the memory limit of its container (G12).
package budget

import (
	"maps"
	"sync"
)

// Stream is what a stream takes at least, in bytes: it is acquired before the stream begins.
const Stream = 40 << 10

// Memory is the memory for the streams of both directions, in bytes. If it is used up, no new stream begins, and streams that are open
// hold no more bytes than before. A nil Memory has no bound.
type Memory struct {
	total, each int64

	mu   sync.Mutex
	used int64
	of   map[string]int64
}

// New returns a Memory of which one client or one other cluster can use half; nil, which has no bound, if the total is 0.
func New(total int64) *Memory {
	if total == 0 {
		return nil
	}
	return &Memory{total: total, each: total / 2, of: map[string]int64{}}
}

// Acquire takes bytes for a stream of a client or cluster, and reports whether it did. They must be released.
func (b *Memory) Acquire(of string, bytes int) bool {
	if b == nil {
		return true
	}
	n := int64(bytes)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.total || b.of[of]+n > b.each {
		return false
	}
	b.used += n
	b.of[of] += n
	return true
}

// Release gives bytes back that were acquired for a client or cluster.
func (b *Memory) Release(of string, bytes int) {
	if b == nil {
		return
	}
	n := int64(bytes)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.of[of] -= n; b.of[of] == 0 {
		delete(b.of, of)
	}
}

// Used returns the bytes that are acquired, in total and for each client and cluster.
func (b *Memory) Used() (int64, map[string]int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, maps.Clone(b.of)
}
