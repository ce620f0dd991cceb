// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"slices"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// remote is what the pool has of one cluster. The pool's lock guards it.
type remote struct {
	cluster clusterset.ClusterID
	idle    []*link // the last one was used last
	links   map[*link]struct{}
	waiting []chan result
	dialing int
	next    int // the address to try next
	wanted  bool
	tried   bool // a connection was made, or an attempt has failed
	// err is why the last attempt to connect has failed; nil if it has not. retry is when a warm connection may be tried again.
	err   error
	retry *time.Timer
}

type result struct {
	link *link
	err  error
}

// take removes the idle connection that was used last, and prefers addresses other than avoid; nil if there is none.
func (r *remote) take(avoid string) *link {
	i := len(r.idle) - 1
	for j, l := range r.idle {
		if l.address != avoid {
			i = j
		}
	}
	if i < 0 {
		return nil
	}
	l := r.idle[i]
	r.idle = slices.Delete(r.idle, i, i+1)
	return l
}

// errLost says that the other gateway has closed a connection directly after the handshake, for example because it has too many.
var errLost = errors.New("the other gateway has closed the connection")

// fail tells the first client that waits that there is no connection. The caller holds the pool's lock.
func (r *remote) fail(err error) {
	r.waiting[0] <- result{err: err}
	r.waiting = r.waiting[1:]
}
