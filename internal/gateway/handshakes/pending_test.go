// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package handshakes

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func of(source byte) *peer {
	return &peer{source: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, source}), 32), turn: make(chan struct{}, 1)}
}

// If there are too many connections, those that are furthest from completion are closed. Whatever others send, there is place for new ones.
//
// spec: G12
func TestTooMany(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stages []stage // of the connections, in the order in which they arrive and advance
		want   []int   // those that are closed
	}{
		"none":                            {[]stage{silent, silent, partial, partial, complete, complete, silent, silent}, nil},
		"silent, the oldest":              {[]stage{silent, complete, silent, partial, silent, silent, silent, silent, silent, silent}, []int{0, 2}},
		"a part, the oldest":              {[]stage{partial, silent, partial, partial, partial}, []int{0, 2}},
		"complete, the newest":            {[]stage{complete, silent, complete, complete, complete}, []int{3, 4}},
		"none for which TLS has begun":    {[]stage{working, waiting, silent, silent, silent, silent, silent, silent, silent, silent, silent}, []int{2}},
		"complete, beside TLS with peers": {[]stage{waiting, waiting, complete, complete, complete}, []int{4}},
	} {
		p := &pending{maxPending: 8, maxBegun: 2}
		var all []*peer
		var got []int
		closes := func(todo actions) {
			for _, c := range todo.close {
				got = append(got, slices.Index(all, c))
			}
		}
		for _, s := range test.stages {
			c := of(1)
			all = append(all, c)
			closes(p.arrive(c, epoch))
			if s >= waiting {
				p.maxWorking = 2
				closes(p.advance(c, complete, epoch))
				p.maxWorking = 0
			}
			closes(p.advance(c, s, epoch))
		}
		check.Equal(t, name, test.want, got)
	}
}

// The sources are served in turn. If too many wait, the newest connection of the source with the most ones is closed.
//
// spec: G12
func TestSourcesInTurn(t *testing.T) {
	t.Parallel()
	p := &pending{maxPending: 20, maxBegun: 10}
	names := map[*peer]string{}
	of := func(sources ...byte) (closed []string) {
		for _, source := range sources {
			c := of(source)
			names[c] = fmt.Sprintf("%d of %d", len(names), source)
			p.arrive(c, epoch)
			for _, c := range p.advance(c, complete, epoch).close {
				closed = append(closed, names[c])
			}
		}
		return closed
	}
	check.Equal(t, "closed", []string(nil), of(1, 1, 1, 2, 3))
	check.Equal(t, "closed", []string{"5 of 1", "2 of 1", "7 of 2"}, of(1, 2, 2))
	p.maxWorking = 10
	var begun []string
	for _, c := range p.expire(epoch).begin {
		begun = append(begun, names[c])
	}
	check.Equal(t, "begun", []string{"0 of 1", "3 of 2", "4 of 3", "1 of 1", "6 of 2"}, begun)
}

// A peer that does not answer is closed if others wait, but not at once, and not while TLS computes or its peer has answered. One that
// sends its answer in parts is closed before others.
//
// spec: G12
func TestSlowPeers(t *testing.T) {
	t.Parallel()
	p := &pending{maxPending: 20, maxBegun: 2, maxWorking: 2}
	first, second, third, fourth := of(1), of(1), of(2), of(3)
	begin := func(c *peer, now time.Time) actions {
		p.arrive(c, now)
		return p.advance(c, complete, now)
	}
	begin(first, epoch)
	begin(second, epoch)
	p.advance(first, waiting, epoch)
	p.advance(second, waiting, epoch.Add(time.Millisecond))
	p.advance(second, resumed, epoch.Add(time.Millisecond))
	p.advance(second, waiting, epoch.Add(2*time.Millisecond))
	early := begin(third, epoch.Add(grace-1))
	check.Equal(t, "before the grace has passed: closed and begun", []int{0, 0}, []int{len(early.close), len(early.begin)})
	late := p.expire(epoch.Add(grace + time.Millisecond))
	if !slices.Equal(late.close, []*peer{second}) || !slices.Equal(late.begin, []*peer{third}) {
		t.Errorf("after it: %v closed, %v begun", late.close, late.begin)
	}
	p.advance(first, resumed, epoch.Add(2*time.Second))
	answered := begin(fourth, epoch.Add(time.Hour))
	check.Equal(t, "TLS computes: closed and begun", []int{0, 0}, []int{len(answered.close), len(answered.begin)})
	check.Equal(t, "a handshake has ended: begun", 1, len(p.advance(third, left, epoch.Add(time.Hour)).begin))
}

// At any time the bounds are kept, no connection is closed while one that is further from completion is not, and no turn is lost: if a
// connection waits for its turn, as many compute as may.
//
// spec: G12
func TestPending(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &pending{maxPending: rapid.IntRange(4, 12).Draw(t, "pending"), maxBegun: rapid.IntRange(2, 5).Draw(t, "begun"), maxWorking: rapid.IntRange(1, 2).Draw(t, "working")}
		var all []*peer
		now := epoch
		stages := map[*peer]stage{} // as the sockets know them
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 500).Draw(t, "ms")) * time.Millisecond)
			var todo actions
			if len(all) == 0 || rapid.IntRange(0, 3).Draw(t, "arrives") == 0 {
				c := of(rapid.ByteRange(1, 3).Draw(t, "source"))
				all = append(all, c)
				stages[c] = silent
				todo = p.arrive(c, now)
				for _, closed := range todo.close {
					if stages[closed] != silent {
						t.Fatalf("a connection in stage %d is closed", stages[closed])
					}
				}
			} else {
				c := rapid.SampledFrom(all).Draw(t, "connection")
				to := rapid.SampledFrom([]stage{partial, complete, waiting, resumed, left}).Draw(t, "stage")
				todo = p.advance(c, to, now)
				if to == left || stages[c] < to && to <= complete || stages[c] == working && to == waiting || stages[c] == waiting && to == resumed {
					stages[c] = to
				}
				if rapid.IntRange(0, 9).Draw(t, "expire") == 0 {
					late := p.expire(now)
					todo.close, todo.begin, todo.turns = append(todo.close, late.close...), append(todo.begin, late.begin...), append(todo.turns, late.turns...)
				}
			}
			for _, c := range todo.close {
				if stages[c] == left || stages[c] > waiting {
					t.Fatalf("a connection in stage %d is closed", stages[c])
				}
				stages[c] = left
			}
			for _, c := range todo.begin {
				check.Equal(t, "a connection whose TLS begins is in stage", complete, stages[c])
				stages[c] = working
			}
			for _, c := range todo.turns {
				check.Equal(t, "a connection whose TLS continues is in stage", resumed, stages[c])
				stages[c] = working
			}
			count := map[stage]int{}
			for _, c := range all {
				check.Equal(t, "stage", stages[c], c.stage)
				count[c.stage]++
			}
			begun := count[waiting] + count[resumed] + count[working]
			if count[silent]+count[partial]+count[complete] > p.maxPending || max(count[partial], count[complete]) > p.maxPending/4 || begun > p.maxBegun || count[working] > p.maxWorking {
				t.Fatalf("connections by stage: %v", count)
			}
			if count[working] < p.maxWorking && (count[resumed] > 0 || count[complete] > 0 && begun < p.maxBegun) {
				t.Fatalf("a turn is lost: %v", count)
			}
		}
	})
}
