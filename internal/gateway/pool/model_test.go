// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// kind is how a gateway of the model behaves.
type kind int

const (
	works  kind = iota
	slow        // it works, and answers only when dials to other addresses have begun
	closes      // after HELLO
	refuses
	silent
	full // it accepts connections, and refuses streams
	kinds
)

// The times of the model: of a handshake, of one that is slow, and after which a dial fails without an answer.
const (
	handshake   = 20 * time.Millisecond
	slowly      = 900 * time.Millisecond
	dialTimeout = 5 * time.Second
	// clientTimeout is how long a client waits.
	clientTimeout = 20 * time.Second
)

// model is a world with gateways that change, and clients that arrive at random.
type model struct {
	*world
	random   *rand.Rand
	gateways map[string]kind
	events   []event // by time
	// waiting are the clients, with when they arrived. served is the last one.
	waiting map[Waiter]time.Time
	served  Waiter
	// failedAt is when each address has failed last, of dials that are not older, and answered is set if it has answered since. since is
	// when each gateway that works began to, and worked the first of them.
	failedAt map[string]time.Time
	answered map[string]bool
	// refusedAt is when each address has refused a stream last on a connection that is not older, zero if one has opened a stream since.
	refusedAt map[string]time.Time
	since     map[string]time.Time
	worked    time.Time
	counts    map[string]int
}

type event struct {
	at time.Time
	do func()
}

func (m *model) at(d time.Duration, do func()) {
	e := event{m.now.Add(d), do}
	i, _ := slices.BinarySearchFunc(m.events, e.at, func(x event, at time.Time) int {
		if x.at.After(at) {
			return 1
		}
		return -1
	})
	m.events = slices.Insert(m.events, i, e)
}

// run handles the events until a time.
func (m *model) run(end time.Time) {
	for {
		m.step()
		next := end
		if len(m.events) > 0 && m.events[0].at.Before(next) {
			next = m.events[0].at
		}
		if !m.wake.IsZero() && m.wake.Before(next) {
			next = m.wake
		}
		m.now = next
		if next.Equal(end) {
			return
		}
		for len(m.events) > 0 && !m.events[0].at.After(m.now) {
			do := m.events[0].do
			m.events = m.events[1:]
			do()
		}
	}
}

// step plans, starts the dials, and checks the bounds.
func (m *model) step() {
	m.Helper()
	m.dials = m.dials[:0]
	m.plan()
	for _, d := range m.dials {
		if at := m.failedAt[d.Address]; !m.answered[d.Address] && m.now.Sub(at) < firstPause/2 {
			m.Fatalf("a dial to %s %s after it has failed", d.Address, m.now.Sub(at))
		}
		if since := m.now.Sub(m.refusedAt[d.Address]); since < firstPause/2 {
			m.Fatalf("a dial to %s %s after it has refused a stream", d.Address, since)
		}
		m.begin(d)
	}
	fresh := 0
	for address, g := range m.remote.gateways {
		if len(g.dials) > maxDials+maxDials/2+firstDials {
			m.Fatalf("%d dials to %s", len(g.dials), address)
		}
		for _, d := range g.dials {
			if g.isGood() && d.Began.After(g.failedAt) && m.now.Sub(d.Began) < slowAfter {
				fresh++
			}
		}
	}
	if fresh > maxDials+firstDials*len(m.addresses) { // those that began before a gateway was good count too
		m.Fatalf("%d dials that are not slow", fresh)
	}
	for _, w := range m.failed {
		if !m.worked.IsZero() && m.now.Sub(m.worked) > dialTimeout {
			m.Fatalf("client %d fails while a gateway works since %s", w, m.now.Sub(m.worked))
		}
		delete(m.waiting, w)
		m.counts["failed"]++
	}
	m.failed = nil
	m.overdue()
}

// overdue checks that a client is served soon after a gateway works, and has an answer within its time.
func (m *model) overdue() {
	for w, since := range m.waiting {
		if m.worked.After(since) {
			since = m.worked
		}
		if m.now.Sub(m.waiting[w]) > clientTimeout {
			m.Fatalf("client %d waits for %s", w, m.now.Sub(m.waiting[w]))
		}
		if !m.worked.IsZero() && m.now.Sub(since) > 3*time.Second {
			m.Fatalf("client %d waits for %s, and a gateway works since %s", w, m.now.Sub(m.waiting[w]), m.now.Sub(m.worked))
		}
	}
}

// begin decides how a dial ends.
func (m *model) begin(d Dial) {
	m.counts["dials"]++
	lost := func() { m.lose(d); m.remote.Lost(d, errDial, m.now) }
	fail := func() { m.lose(d); m.remote.Failed(d, errDial, m.now) }
	connected := func() {
		m.remote.Connected(d, m.now)
		if d.Verify {
			m.answer(d)
		}
		m.free(d, true)
	}
	switch k := m.gateways[d.Address]; {
	case k == works:
		m.at(handshake, connected)
	case k == slow:
		m.at(slowly, connected)
	case k == refuses:
		m.at(time.Millisecond, fail)
	case k == silent:
		m.at(dialTimeout, fail)
	case d.Verify:
		m.at(handshake, fail)
	default:
		m.at(handshake, connected)
		m.at(handshake+time.Millisecond, lost)
	}
}

func (m *model) lose(d Dial) {
	if d.Began.After(m.failedAt[d.Address]) {
		m.failedAt[d.Address], m.answered[d.Address] = m.now, false
	}
}

func (m *model) answer(d Dial) {
	if d.Began.After(m.failedAt[d.Address]) {
		m.answered[d.Address] = true
	}
}

// free gives a connection to the next client, and carries its stream: the first one of the connection, or a later one.
func (m *model) free(d Dial, isFirst bool) {
	w, ok := m.remote.Next(d.Address)
	if !ok {
		return
	}
	if w < m.served {
		m.Fatalf("client %d is served after %d", w, m.served)
	}
	if _, waits := m.waiting[w]; !waits {
		m.Fatalf("client %d does not wait", w)
	}
	m.served = w
	delete(m.waiting, w)
	m.counts["served"]++
	switch k := m.gateways[d.Address]; k {
	case full:
		m.at(5*time.Millisecond, func() { m.refuse(d) })
	case works, slow:
		m.at(time.Duration(m.random.IntN(50))*time.Millisecond, func() {
			if isFirst {
				m.remote.Opened(d)
				m.answer(d)
				if d.Began.After(m.refusedAt[d.Address]) {
					delete(m.refusedAt, d.Address)
				}
			}
			if m.random.IntN(2) == 0 { // the connection is used again
				m.free(d, false)
			}
		})
	default: // it answers nothing
	}
}

// refuse has a full gateway refuse a stream, whose client waits again. Half of the connections are used again.
func (m *model) refuse(d Dial) {
	m.counts["refused"]++
	if m.refusedAt[d.Address].IsZero() || d.Began.After(m.refusedAt[d.Address]) {
		m.refusedAt[d.Address], m.failedAt[d.Address], m.answered[d.Address] = m.now, m.now, true
	}
	m.remote.Refused(d, errDial, m.now)
	m.arrive(1)
	if m.random.IntN(2) == 0 {
		m.free(d, false)
	}
}

// arrive adds clients.
func (m *model) arrive(n int) {
	for range n {
		w := m.remote.Wait("")
		m.waiting[w] = m.now
		m.at(clientTimeout, func() {
			if m.remote.Leave(w) {
				delete(m.waiting, w)
				m.counts["late"]++
			}
		})
		if m.random.IntN(20) == 0 {
			m.at(time.Duration(m.random.IntN(500))*time.Millisecond, func() {
				if m.remote.Leave(w) {
					delete(m.waiting, w)
					m.counts["left"]++
				}
			})
		}
	}
}

// change changes how a gateway behaves. Half of the time, one works.
func (m *model) change() {
	m.worked = time.Time{}
	for _, address := range m.addresses {
		if m.random.IntN(2) == 0 {
			m.gateways[address] = kind(m.random.IntN(int(kinds)))
		}
		if m.gateways[address] != works {
			delete(m.since, address)
			continue
		}
		if m.since[address].IsZero() {
			m.since[address] = m.now
		}
		if m.worked.IsZero() || m.since[address].Before(m.worked) {
			m.worked = m.since[address]
		}
	}
}

// Gateways that work, are slow, silent, at their limit, refuse, or close connections, and change; clients that arrive in crowds. The dials
// stay within their bounds, none follows a failure or a refusal because of a limit without a pause, clients are served in their order, soon if a
// gateway works, and none fails then.
//
// spec: G6, G12
func TestModel(t *testing.T) {
	t.Parallel()
	total := map[string]int{}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 47)) //nolint:gosec // a test
		var addresses []string
		for n := range 1 + random.IntN(4) {
			addresses = append(addresses, fmt.Sprint("gateway ", n))
		}
		m := &model{
			world: newWorld(t, addresses...), random: random, gateways: map[string]kind{}, waiting: map[Waiter]time.Time{},
			failedAt: map[string]time.Time{}, answered: map[string]bool{}, refusedAt: map[string]time.Time{}, since: map[string]time.Time{}, counts: total,
		}
		m.remote.Jitter = random.Float64
		m.remote.Wanted = random.IntN(2) == 0
		for range 20 {
			m.change()
			if random.IntN(2) == 0 {
				m.arrive(random.IntN(300))
			}
			m.run(m.now.Add(time.Duration(random.IntN(8000)) * time.Millisecond))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		m.run(m.now.Add(clientTimeout + time.Second))
		if n := m.remote.Waiting(); n > 0 || len(m.waiting) > 0 {
			t.Fatalf("seed %d: %d clients wait, %d have no answer", seed, n, len(m.waiting))
		}
	}
	t.Log(total)
	for _, what := range []string{"served", "failed", "left", "refused"} {
		if total[what] == 0 {
			t.Errorf("no client is counted as %s", what)
		}
	}
}
