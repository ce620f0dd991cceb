// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"
	"sync"
)

// Limits bound the streams of a gateway in one direction (G12).
type Limits struct {
	// Total is the largest number of streams, and Each that of one client address or one cluster.
	Total, Each int

	mu    sync.Mutex
	total int
	each  map[string]int
}

// acquire counts a stream of a client or cluster until the result is called, or returns which limit is reached.
func (l *Limits) acquire(of string) (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.total >= l.Total:
		return nil, fmt.Errorf("the gateway has %d streams, as many as it may have", l.total)
	case l.each[of] >= l.Each:
		return nil, fmt.Errorf("%s has %d streams at this gateway, as many as it may have", of, l.each[of])
	}
	if l.each == nil {
		l.each = map[string]int{}
	}
	l.total++
	l.each[of]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.total--
		l.each[of]--
		if l.each[of] == 0 {
			delete(l.each, of)
		}
	}, nil
}
