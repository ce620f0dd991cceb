// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

var errDial, errFull = errors.New("refused"), errors.New("full")

// world runs a Remote against gateways that a test describes, at a time of its own.
type world struct {
	*testing.T
	remote    Remote
	addresses []string
	now       time.Time
	wake      time.Time
	dials     []Dial // that have not ended
	began     []string
	failed    []Waiter
}

func newWorld(t *testing.T, addresses ...string) *world {
	t.Helper()
	return &world{T: t, remote: Remote{Jitter: func() float64 { return 0 }}, addresses: addresses, now: time.Unix(1_000_000, 0)}
}

// plan returns the addresses of the dials that begin now.
func (w *world) plan() []string {
	w.Helper()
	p := w.remote.Plan(w.addresses, w.now)
	w.wake = p.Wake
	w.failed = append(w.failed, p.Fail...)
	var began []string
	for _, d := range p.Dial {
		began = append(began, d.Address)
	}
	w.dials = append(w.dials, p.Dial...)
	w.began = append(w.began, began...)
	if len(p.Fail) > 0 && p.Err == nil {
		w.Fatal("clients fail without an error")
	}
	if again := w.remote.Plan(w.addresses, w.now); len(again.Dial) > 0 || len(again.Fail) > 0 {
		w.Fatalf("a second plan at the same time: %+v", again)
	}
	return began
}

// after plans after a time, and each time that is asked for until then. It returns the addresses of the dials.
func (w *world) after(d time.Duration) []string {
	w.Helper()
	end, before := w.now.Add(d), len(w.began)
	for w.plan(); !w.wake.IsZero() && !w.wake.After(end); w.plan() {
		if !w.wake.After(w.now) {
			w.Fatal("the wake-up is not later than now")
		}
		w.now = w.wake
	}
	w.now = end
	return slices.Clone(w.began[before:])
}

// pop removes the oldest dial to an address.
func (w *world) pop(address string) Dial {
	w.Helper()
	i := slices.IndexFunc(w.dials, func(d Dial) bool { return d.Address == address })
	if i < 0 {
		w.Fatalf("no dial to %s, of %v", address, w.dials)
	}
	d := w.dials[i]
	w.dials = slices.Delete(w.dials, i, i+1)
	return d
}

// connect completes the oldest dial to an address, gives the connection to a client, and returns both.
func (w *world) connect(address string) (Dial, Waiter) {
	w.Helper()
	d := w.pop(address)
	w.remote.Connected(d, w.now)
	waiter, _ := w.remote.Next(address)
	return d, waiter
}

func (w *world) fail(address string) {
	w.Helper()
	w.remote.Failed(w.pop(address), errDial, w.now)
}

// The dials for one client: the next address is tried after a short time, or at once after a failure; one answer is enough.
//
// spec: G6
func TestNextAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b", "c")
	client := w.remote.Wait("")
	check.Equal(t, "at once", []string{"a"}, w.plan())
	check.Equal(t, "within a short time", []string{}, w.after(slowAfter-1))
	check.Equal(t, "after a short time", []string{"b"}, w.after(1))
	w.fail("b")
	check.Equal(t, "after a failure", []string{"c"}, w.plan())
	_, served := w.connect("c")
	check.Equal(t, "client", client, served)
	w.remote.Wait("")
	check.Equal(t, "the next client: neither the silent address nor the one that has failed", "c", w.plan()[0])
	check.Equal(t, "clients that failed", 0, len(w.failed))
}

// A client fails when each address has failed since it waits, and not before.
//
// spec: G6
func TestAllAddressesFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	first := w.remote.Wait("")
	w.after(slowAfter)
	w.fail("a")
	w.plan()
	check.Equal(t, "failed while another address may answer", []Waiter(nil), w.failed)
	w.fail("b")
	w.plan()
	check.Equal(t, "failed", []Waiter{first}, w.failed)

	second := w.remote.Wait("")
	check.Equal(t, "dials directly after a failure", []string(nil), w.plan())
	check.Equal(t, "dials after a pause", []string{"a", "b"}, w.after(firstPause))
	w.fail("b")
	w.fail("a")
	w.plan()
	check.Equal(t, "failed", []Waiter{first, second}, w.failed)

	w.addresses = nil
	third := w.remote.Wait("")
	w.plan()
	check.Equal(t, "failed without an address", []Waiter{first, second, third}, w.failed)
}

// A gateway that accepts connections and closes them is not dialed again at once, with and without clients, and is not reachable. When it
// works again, it is used within a second, and all clients that wait get connections.
//
// spec: G6, G8, G12
func TestPauses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		clients bool
		most    time.Duration
	}{"with clients": {true, maxPause}, "without clients": {false, maxIdlePause}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a")
			w.remote.Wanted, w.remote.Missing = true, 2
			w.plan()
			check.Equal(t, "the first dial is verified, because no client waits for it", true, w.dials[0].Verify)
			for range 2 {
				d, _ := w.connectUnverified("a")
				w.remote.Lost(d, errDial, w.now)
			}
			var pauses []time.Duration
			for end, last := w.now.Add(time.Minute), w.now; w.now.Before(end); {
				w.plan()
				if len(w.dials) > 0 {
					if !w.dials[0].Verify {
						t.Fatal("a dial after a failure is not verified")
					}
					pauses, last = append(pauses, w.now.Sub(last)), w.now
					w.fail("a")
					w.plan()
				}
				if test.clients && w.remote.Waiting() == 0 {
					w.remote.Wait("")
					w.plan()
				}
				w.now = w.wake
			}
			check.Equal(t, "first pauses", []time.Duration{firstPause, 2 * firstPause, 4 * firstPause}, pauses[:3])
			check.Equal(t, "longest pause", test.most, slices.Max(pauses))
			if known, why := w.remote.Reachable(w.addresses); !known || !errors.Is(why, errDial) {
				t.Errorf("reachable: %v, %t", why, known)
			}
			for range 100 {
				w.remote.Wait("")
			}
			w.after(maxPause)
			w.connect("a")
			if known, why := w.remote.Reachable(w.addresses); !known || why != nil {
				t.Errorf("reachable after an answer: %v, %t", why, known)
			}
			for range 20 {
				w.plan()
				for range len(w.dials) {
					w.connect("a")
				}
			}
			check.Equal(t, "clients that wait", 0, w.remote.Waiting())
		})
	}
}

// connectUnverified completes a dial as one that was planned while a client waits.
func (w *world) connectUnverified(address string) (Dial, Waiter) {
	w.Helper()
	i := slices.IndexFunc(w.dials, func(d Dial) bool { return d.Address == address })
	w.dials[i].Verify = false
	return w.connect(address)
}

// Gateways at their limit are dialed once in a second while clients wait, and not at all otherwise: they are reachable. A client fails when
// both have refused a stream since it waits. All others are served as soon as one stream is opened.
//
// spec: G6, G8, G12
func TestLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	w.remote.Wanted = true
	for range 200 {
		w.remote.Wait("")
	}
	const roundTrip = 10 * time.Millisecond
	dials := 0
	for end := w.now.Add(10 * time.Second); w.now.Before(end); w.after(roundTrip) {
		for len(w.dials) > 0 {
			dials++
			d, _ := w.connect(w.dials[0].Address)
			w.now = w.now.Add(roundTrip)
			w.remote.Refused(d, errFull, w.now)
			w.remote.Wait(d.Address)
		}
	}
	if dials > 40 {
		t.Errorf("%d dials in ten seconds to two gateways at their limit", dials)
	}
	if n := w.remote.Waiting(); n == 0 || n > 4 {
		t.Errorf("%d clients wait, want those that wait since the last refusal of one gateway", n)
	}
	known, why := w.remote.Reachable(w.addresses)
	check.Equal(t, "is known to be reachable", true, known && why == nil)

	for range 200 {
		w.remote.Wait("")
	}
	w.after(2 * maxPause)
	failed := len(w.failed)
	d, _ := w.connect("a")
	w.remote.Opened(d)
	for range 12 {
		w.plan()
		for len(w.dials) > 0 {
			w.connect(w.dials[0].Address)
		}
	}
	check.Equal(t, "clients that wait or fail after a stream was opened", 0, w.remote.Waiting()+len(w.failed)-failed)

	w.remote.Refused(d, errFull, w.now)
	check.Equal(t, "dials while no client waits", []string{}, w.after(time.Minute))
	w.remote.Wait("")
	check.Equal(t, "dials for the next client: to the gateway that has a pause behind it, and to the other one", []string{"a", "b"}, w.plan())
}

// The first dial to a cluster that was fine does not wait for a pause, and pauses start from the shortest one after a stream, or after a time
// without a failure.
//
// spec: G6
func TestNoPauseWithoutFailure(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		carried bool
		fine    time.Duration
	}{"a stream": {true, time.Second}, "a PONG, and a time": {false, time.Minute}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "a")
			for range 10 {
				w.remote.Wait("")
				for w.after(maxPause); len(w.dials) > 0; {
					w.fail("a")
				}
				w.plan()
			}
			w.remote.Wait("")
			w.after(maxPause)
			d, _ := w.connect("a")
			if test.carried {
				w.remote.Opened(d)
			}
			w.after(test.fine)
			w.remote.Wait("")
			check.Equal(t, "dials at once", []string{"a"}, w.plan())
			w.fail("a")
			w.plan()
			w.remote.Wait("")
			check.Equal(t, "dials after a failure", []string(nil), w.plan())
			check.Equal(t, "dials after the shortest pause", []string{"a"}, w.after(firstPause))
		})
	}
}

// An address at which dials get no answer any more is tried once in a second, and used as before after one answer.
//
// spec: G6, G12
func TestSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	for range 3 * firstDials {
		w.remote.Wait("")
	}
	check.Equal(t, "dials", firstDials, len(w.plan()))
	check.Equal(t, "dials while none is answered", []string{"a", "a", "a"}, w.after(3*maxSlowAfter))
	for len(w.dials) > 1 {
		w.dials = w.dials[1:] // without an answer
	}
	w.connect("a")
	check.Equal(t, "dials after an answer", firstDials+1, len(w.plan()))
}

// 3,000 clients at once: the dials are bounded, and their number grows with the answers.
//
// spec: G12
func TestManyClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	for range 3000 {
		w.remote.Wait("")
	}
	check.Equal(t, "first dials", firstDials, len(w.plan()))
	most, rounds, last := 0, 0, Waiter(0)
	for ; w.remote.Waiting() > 0; rounds++ {
		for range len(w.dials) {
			_, served := w.connect("a")
			if served != 0 && served != last+1 {
				t.Fatalf("client %d is served after %d", served, last)
			}
			last = max(last, served)
		}
		w.plan()
		most = max(most, len(w.dials))
	}
	check.Equal(t, "most dials", maxDials, most)
	if rounds > 3000/maxDials+6 {
		t.Errorf("%d rounds", rounds)
	}
}

// A client that was refused at an address gets a connection to another one, if another client takes the first.
//
// spec: G7
func TestAvoid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a", "b")
	w.remote.Wait("a")
	check.Equal(t, "dials", []string{"b"}, w.plan())
	second := w.remote.Wait("")
	got, _ := w.remote.Next("a")
	check.Equal(t, "client of a connection to the address that the first one avoids", second, got)
	got, _ = w.remote.Next("a")
	check.Equal(t, "client if each avoids it", Waiter(1), got)
}
