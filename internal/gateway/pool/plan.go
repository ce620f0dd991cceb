// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Plan returns what to do now, given the addresses of the gateways. The caller calls it after each other event.
func (r *Remote) Plan(addresses []string, now time.Time) Plan {
	r.removeUnlisted(addresses)
	var p Plan
	p.Fail, p.Err = r.failed(addresses)
	r.probe(&p, addresses, now)
	r.dial(&p, addresses, now)
	if len(addresses) == 0 && r.Wanted {
		p.wake(now.Add(maxPause)) // addresses are not an event
	}
	return p
}

func (p *Plan) wake(at time.Time) {
	if p.Wake.IsZero() || at.Before(p.Wake) {
		p.Wake = at
	}
}

// removeUnlisted removes addresses that are no longer listed.
func (r *Remote) removeUnlisted(addresses []string) {
	for address, g := range r.gateways {
		if len(g.dials) == 0 && !slices.Contains(addresses, address) {
			delete(r.gateways, address)
		}
	}
}

// failed removes the clients for which no address is left: since they wait, each has failed.
func (r *Remote) failed(addresses []string) ([]Waiter, error) {
	if len(r.queue) == 0 {
		return nil, nil
	}
	n, errs := len(r.queue), []error(nil)
	for _, address := range addresses {
		g := r.gateway(address)
		if g.isGood() {
			return nil, nil
		}
		errs = append(errs, g.err)
		if i, _ := slices.BinarySearchFunc(r.queue, g.exhausted+1, waiting.compare); i < n {
			n = i
		}
	}
	var result []Waiter
	for _, w := range r.queue[:n] {
		result = append(result, w.waiter)
	}
	r.queue = slices.Delete(r.queue, 0, n)
	if len(addresses) == 0 {
		return result, ErrNoAddress
	}
	return result, errors.Join(errs...) //nolint:wrapcheck // each names its address
}

// probe starts a dial to each address that is not good and whose pause is over. A client that waits does not depend on it while another address
// is good.
func (r *Remote) probe(p *Plan, addresses []string, now time.Time) {
	most := maxIdlePause
	switch {
	case len(r.queue) > 0:
		most = maxPause
	case !r.Wanted:
		return
	}
	for _, address := range addresses {
		g := r.gateway(address)
		if g.isGood() || !g.suspect && len(r.queue) == 0 && r.Missing == 0 {
			continue
		}
		switch at, ok := g.probe(most); {
		case !ok:
		case now.Before(at):
			p.wake(at)
		default:
			r.start(p, address, true, now)
			p.wake(now.Add(most))
		}
	}
}

// dial starts the dials to good addresses that clients and missing warm connections need.
func (r *Remote) dial(p *Plan, addresses []string, now time.Time) {
	var good []string
	need, supply, total := len(r.queue)+r.Missing, 0, 0
	for _, address := range addresses {
		g := r.gateway(address)
		if !g.isGood() {
			continue
		}
		good = append(good, address)
		l := g.load(now)
		if need > 0 && !l.wake.IsZero() {
			p.wake(l.wake)
		}
		supply += l.fresh
		total += len(g.dials)
	}
	for ; supply < min(need, maxDials); supply, total = supply+1, total+1 {
		avoid := ""
		if supply < len(r.queue) {
			avoid = r.queue[supply].avoid
		}
		address, ok := r.choose(good, avoid, need-total, now)
		if !ok {
			return
		}
		r.start(p, address, len(r.queue) == 0 && !r.gateway(address).proven, now)
		p.wake(now.Add(r.gateway(address).patience()))
	}
}

// choose returns the address for the next dial: not the one to avoid, not one with a slow dial, one with few dials, the one that was dialed
// first. needed is the number of dials that are missing if slow ones count.
func (r *Remote) choose(good []string, avoid string, needed int, now time.Time) (string, bool) {
	type candidate struct {
		address string
		rank    [3]int
		number  uint64
	}
	var all []candidate
	for _, address := range good {
		g := r.gateway(address)
		l := g.load(now)
		c := candidate{address, [3]int{0, min(l.slow, 1), len(g.dials)}, g.number}
		if address == avoid {
			c.rank[0] = 1
		}
		if g.accepts(l, needed) {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return "", false
	}
	best := slices.MinFunc(all, func(x, y candidate) int {
		return cmp.Or(slices.Compare(x.rank[:], y.rank[:]), cmp.Compare(x.number, y.number))
	})
	return best.address, true
}

func (r *Remote) start(p *Plan, address string, verify bool, now time.Time) {
	r.dials++
	d := Dial{Address: address, Verify: verify, Began: now, number: r.dials, last: r.last}
	g := r.gateway(address)
	g.dials, g.number, g.began = append(g.dials, d), r.dials, now
	p.Dial = append(p.Dial, d)
}
