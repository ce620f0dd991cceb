// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Limits bound the streams of a gateway in one direction (G12).
//
// Streams to other clusters are also bounded for each of them, so that one that does not answer does not use up all: the last quarter of the
// streams, and of the memory, is for clusters with less than an eighth.
type Limits struct {
	// Total is the largest number of streams, and Each that of one client address or one cluster that opens them.
	Total, Each int
	// Memory is the budget of which each takes a number of bytes; nil for none.
	Memory *Memory
	Bytes  int

	mu    sync.Mutex
	total int
	each  map[string]int
	to    map[clusterset.ClusterID]int
}

var errMemory = errors.New("the streams of the gateway, or those of one client or cluster, use the memory that they may have")

// Acquire counts a stream of a client or cluster until the result is called, or returns which limit is reached. With to, it is a stream to
// these clusters.
func (l *Limits) Acquire(of string, to ...clusterset.ClusterID) (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.reached(of, to); err != nil {
		return nil, err
	}
	if !l.Memory.Acquire(of, l.Bytes) {
		return nil, errMemory
	}
	if l.each == nil {
		l.each, l.to = map[string]int{}, map[clusterset.ClusterID]int{}
	}
	l.total++
	add(l.each, of, 1)
	for _, cluster := range to {
		add(l.to, cluster, 1)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.total--
		add(l.each, of, -1)
		for _, cluster := range to {
			add(l.to, cluster, -1)
		}
		l.Memory.Release(of, l.Bytes)
	}, nil
}

// Streams returns the number of streams.
func (l *Limits) Streams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// reached returns which limit one more stream would exceed; nil if none. The caller holds the lock.
func (l *Limits) reached(of string, to []clusterset.ClusterID) error {
	switch {
	case l.total >= l.Total:
		return fmt.Errorf("the gateway has %d streams, as many as it may have", l.total)
	case l.each[of] >= l.Each:
		return fmt.Errorf("%s has %d streams at this gateway, as many as it may have", of, l.each[of])
	}
	for _, cluster := range to {
		if l.total >= l.Total-l.Total/4 && l.to[cluster] >= l.Total/8 {
			return fmt.Errorf("the gateway has %d streams, %d of them to cluster %s: the rest is for other clusters", l.total, l.to[cluster], cluster)
		}
		if l.Memory.IsScarce() && l.to[cluster]*l.Bytes >= l.Memory.Few() {
			return fmt.Errorf("the streams of the gateway use three quarters of the memory that they may have, %d of them to cluster %s: the rest is for other clusters", l.to[cluster], cluster)
		}
	}
	return nil
}

// add adds to a number of a map, which has no zeros.
func add[K comparable](numbers map[K]int, key K, n int) {
	if numbers[key] += n; numbers[key] == 0 {
		delete(numbers, key)
	}
}
