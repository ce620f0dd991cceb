// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// fixture is a hub with one Heartbeat, and processes with the identity of one cluster.
type fixture struct {
	now     time.Time
	version int
	uid     types.UID
	beat    *hubv1alpha1.Heartbeat
	// ended are the nonces of processes that are known to have ended.
	ended []string
}

func newFixture() *fixture { return &fixture{now: time.Unix(1e9, 0), version: 100, uid: "one"} }

// process is a process that leads in its cluster.
type process struct {
	*Claim

	f *fixture
	// leads is whether it holds the Lease of its cluster.
	leads bool
	// older is an agent that writes no nonce.
	older bool
}

func (f *fixture) start(nonce string) *process {
	return &process{Claim: NewClaim("cluster", nonce), f: f, leads: true}
}

// read has a process read the Heartbeat, and replace it at once if it must.
func (p *process) read() {
	if p.older {
		return
	}
	p.observe(p.f.beat)
	if p.contested && p.leads {
		p.write()
	}
}

// write has a process write its Heartbeat if it may, with the version that it has read, and read it.
func (p *process) write() {
	p.observe(p.f.beat)
	if p.rival != "" || p.isForeign(p.f.beat) && !p.leads {
		return
	}
	p.store()
	p.observe(p.f.beat)
}

func (p *process) store() {
	term := p.next(p.f.beat)
	p.replace(p.f.beat, p.f.now, func(nonce string) bool { return slices.Contains(p.f.ended, nonce) })
	spec := hubv1alpha1.HeartbeatSpec{ClusterUID: "cluster", Nonce: p.nonce, Term: term}
	if p.older {
		spec.Nonce, spec.Term = "", 0
	}
	p.f.put(spec)
	p.wrote(p.f.beat, term)
}

func (f *fixture) put(spec hubv1alpha1.HeartbeatSpec) {
	f.version++
	f.beat = &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{UID: f.uid, ResourceVersion: strconv.Itoa(f.version)}, Spec: spec}
}

// takeOver has a process that yields take over after the other has been silent.
func (p *process) takeOver() {
	p.store()
	p.observe(p.f.beat)
}

func (f *fixture) wants(t *testing.T, step string, mayWrite []*process, yield ...*process) {
	t.Helper()
	for _, p := range mayWrite {
		if !p.mayWrite(f.beat, f.now) {
			t.Errorf("%s: %s must not write records: it yields to %q, and the heartbeat is that of %s", step, p.nonce, p.rival, f.beat.Spec.Nonce)
		}
	}
	for _, p := range yield {
		if p.rival == "" || p.mayWrite(f.beat, f.now) {
			t.Errorf("%s: %s does not yield", step, p.nonce)
		}
	}
}

// TestHandOver: 20 processes of one cluster that follow each other are no copies, however the one before ended: none yields, and none has
// its heartbeat contested. A process of which it is not known that it has ended is given two seconds to renew its heartbeat.
//
// spec: K2
func TestHandOver(t *testing.T) {
	t.Parallel()
	f := newFixture()
	last := f.start("p0")
	last.write()
	for i := range 20 {
		next := f.start(fmt.Sprintf("p%d", i+1))
		known := i%2 == 0
		if known {
			f.ended = append(f.ended, last.nonce)
		}
		next.write()
		check.Equal(t, "may write at once", known, next.mayWrite(f.beat, f.now))
		f.now = f.now.Add(confirmation)
		last.leads = false // it was suspended, and has lost the Lease
		last.read()
		next.read()
		f.wants(t, "after a hand-over", []*process{next})
		if last.mayWrite(f.beat, f.now) || next.term != last.term+1 {
			t.Errorf("the process before writes too, or terms %d and %d do not follow each other", last.term, next.term)
		}
		next.write()
		last = next
	}
}

// TestCopies: of several clusters with one identity, the one whose process renewed the heartbeat first continues, and the others yield,
// whatever the order in which they start, restart, and read.
//
// spec: K2
func TestCopies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *fixture, *process){
		"a copy starts": func(t *testing.T, f *fixture, production *process) {
			c := f.start("copy")
			c.write()
			if c.mayWrite(f.beat, f.now) {
				t.Error("the copy writes records at once")
			}
			production.read()
			c.read()
			f.wants(t, "after the original has renewed", []*process{production}, c)
			c.write()
			f.wants(t, "at the next interval", []*process{production}, c)
		},
		"the copy's replicas follow each other": func(t *testing.T, f *fixture, production *process) {
			for i := range 20 {
				c := f.start(fmt.Sprintf("copy-%d", i))
				c.write()
				production.read()
				c.read()
				f.wants(t, "hand-over in the copy", []*process{production}, c)
			}
		},
		"two copies start at once": func(t *testing.T, f *fixture, production *process) {
			one, two := f.start("one"), f.start("two")
			one.write()
			two.write()
			production.read() // it sees only the second
			two.read()
			one.read()
			production.read()
			two.read()
			f.wants(t, "two copies", []*process{production}, one, two)
		},
		"the original restarts while a copy runs": func(t *testing.T, f *fixture, production *process) {
			c := f.start("copy")
			c.write()
			production.read()
			c.read()
			f.ended = append(f.ended, production.nonce)
			again := f.start("production-2")
			again.write()
			c.read()
			again.write()
			c.write()
			f.wants(t, "restarted", []*process{again}, c)
		},
		"a copy starts while the original is suspended": func(t *testing.T, f *fixture, production *process) {
			c := f.start("copy")
			c.write()
			f.now = f.now.Add(time.Hour)
			c.write()
			f.wants(t, "alone", []*process{c})
			next := f.start("copy-2") // its process is replaced
			next.write()
			f.now = f.now.Add(time.Hour)
			production.read()
			next.read()
			c.read()
			f.wants(t, "the original continues", []*process{production}, next)
		},
		"a copy starts while the original is down": func(t *testing.T, f *fixture, production *process) {
			c := f.start("copy")
			c.write()
			f.now = f.now.Add(time.Hour)
			c.write()
			again := f.start("production-2") // who renews now is the copy
			again.write()
			c.read()
			again.read()
			f.wants(t, "the copy continues", []*process{c}, again)
			again.takeOver() // the copy was silent
			f.now = f.now.Add(confirmation)
			f.wants(t, "the copy has ended", []*process{again})
			c.read() // it was only suspended, and was there before
			again.read()
			f.wants(t, "the copy returns", []*process{c}, again)
			_ = production
		},
		"an older copy": func(t *testing.T, f *fixture, production *process) {
			c := f.start("copy")
			c.older = true
			for range 3 {
				c.store()
				production.read()
				production.write()
				f.wants(t, "a heartbeat without a nonce proves nothing", []*process{production})
			}
		},
		"an older original": func(t *testing.T, f *fixture, production *process) {
			production.older = true
			production.store()
			c := f.start("copy")
			for range 3 {
				c.write()
				production.store()
				c.read()
			}
			c.write()
			f.wants(t, "a heartbeat without a nonce proves nothing", []*process{c})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			production := f.start("production")
			production.write()
			f.wants(t, "alone", []*process{production})
			test(t, f, production)
		})
	}
}

// TestHubChanges: what a hub shows after it was restored, wiped, or has stored a write without an answer is no renewal.
//
// spec: K2
func TestHubChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *fixture, before *hubv1alpha1.Heartbeat, p *process){
		"restored": func(f *fixture, before *hubv1alpha1.Heartbeat, _ *process) { f.beat, f.version = before, 101 },
		"rebuilt from a copy of its objects": func(f *fixture, before *hubv1alpha1.Heartbeat, _ *process) {
			f.uid, f.version = "two", 5000
			f.put(before.Spec)
		},
		"restored, and read before the own write": func(f *fixture, before *hubv1alpha1.Heartbeat, p *process) {
			p.store()
			f.beat, f.version = before, 101
		},
		"deleted": func(f *fixture, _ *hubv1alpha1.Heartbeat, _ *process) { f.beat = nil },
		"without answer": func(f *fixture, _ *hubv1alpha1.Heartbeat, p *process) {
			f.put(hubv1alpha1.HeartbeatSpec{ClusterUID: "cluster", Nonce: p.nonce, Term: p.next(f.beat)})
		},
		"of an earlier version": func(f *fixture, _ *hubv1alpha1.Heartbeat, _ *process) {
			f.put(hubv1alpha1.HeartbeatSpec{ClusterUID: "cluster"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			f.start("predecessor").write()
			before := f.beat
			p := f.start("process")
			p.write()
			f.now = f.now.Add(confirmation)
			f.wants(t, "before", []*process{p})
			change(f, before, p)
			p.read()
			p.write()
			f.wants(t, "after", []*process{p})
			if p.contested {
				t.Error("it is contested")
			}

			c := f.start("copy") // it is found afterwards, too
			c.write()
			p.read()
			c.read()
			f.wants(t, "a copy", []*process{p}, c)
		})
	}
}

// TestUnansweredTakeOver: if the answer to a process's first heartbeat is lost, it is still recognized.
//
// spec: K2
func TestUnansweredTakeOver(t *testing.T) {
	t.Parallel()
	f := newFixture()
	production := f.start("production")
	production.write()
	c := f.start("copy")
	c.observe(f.beat)
	c.replace(f.beat, f.now, func(string) bool { return false })
	f.put(hubv1alpha1.HeartbeatSpec{ClusterUID: "cluster", Nonce: c.nonce, Term: c.next(f.beat)})
	c.read()
	if c.mayWrite(f.beat, f.now) {
		t.Error("the copy writes records at once")
	}
	production.read()
	c.read()
	f.wants(t, "after the original has renewed", []*process{production}, c)
}

// TestOneProcessWrites: whatever four clusters with one identity do, at most one process may write records at a time. When all have read the
// hub and nothing changes, exactly one may, and the others yield.
//
// spec: K2
func TestOneProcessWrites(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		f := newFixture()
		var running []*process
		for i := range 4 {
			running = append(running, f.start(fmt.Sprintf("%d-0", i)))
		}
		for step := range 60 {
			f.now = f.now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
			i := random.IntN(len(running))
			switch p := running[i]; random.IntN(6) {
			case 0:
				running[i] = f.start(fmt.Sprintf("%d-%d", i, step+1))
			case 1, 2:
				p.write()
			default:
				p.read()
			}
			var writers []string
			for _, p := range running {
				if p.mayWrite(f.beat, f.now) {
					writers = append(writers, p.nonce)
				}
			}
			if len(writers) > 1 {
				t.Fatalf("seed %d, step %d: %v may write", seed, step, writers)
			}
		}
		for range 2 * len(running) { // until all have replaced the heartbeat, and read who renews
			for _, p := range running {
				p.write()
				p.read()
			}
		}
		f.now = f.now.Add(time.Minute)
		var writers []string
		for _, p := range running {
			switch may := p.mayWrite(f.beat, f.now); {
			case may:
				writers = append(writers, p.nonce)
			case p.rival == "":
				t.Errorf("seed %d: %s with term %d neither may write nor yields", seed, p.nonce, p.term)
			}
		}
		if len(writers) != 1 {
			t.Errorf("seed %d: %v may write, want exactly one", seed, writers)
		}
	}
}
