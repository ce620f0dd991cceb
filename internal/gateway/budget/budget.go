// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the streams of a gateway: their number, and their memory by the memory limit of the container (G12).
package budget

import (
	"maps"
	"sync"
)

// What is acquired before a connection between gateways or a stream begins, in bytes: all that it holds when its peers do not read, but
// buffers that are limited as a whole (tunnel.Buffers). So an open stream needs nothing more, and moves its bytes when the memory is used up.
const (
	// Connection is for a connection that carries no stream: the state of TLS (10 KiB), which keeps a buffer for one record. Go makes that 18 KiB,
	// or up to 40 KiB if records become longer step by step, and 25 KiB were measured for a mean.
	Connection = 32 << 10
	// Stream is for a stream with its connection: beside that, three tiny buffers, which keep what its peers do not take (14 KiB).
	Stream = Connection + 16<<10
)

// Memory is the memory for the connections and streams of both directions, in bytes. If it is used up, no new stream begins. A nil Memory has
// no bound.
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

// IsScarce reports whether three quarters are acquired: the rest is for streams of clusters that have few.
func (b *Memory) IsScarce() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used >= b.total/4*3
}

// Few returns the bytes of the streams to a cluster up to which it gets more if the memory is scarce: an eighth.
func (b *Memory) Few() int { return int(b.total / 8) }

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
