// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// kinds are the types that may be asked for.
var kinds = map[string]uint16{
	"A": dns.TypeA, "AAAA": dns.TypeAAAA, "SRV": dns.TypeSRV, "PTR": dns.TypePTR, "TXT": dns.TypeTXT,
}

// question is what resolve asks, each time anew and once.
type question struct {
	name    string
	kind    uint16
	server  string // empty for the first of resolv.conf
	client  *dns.Client
	timeout time.Duration
	world   world
}

func resolve(ctx context.Context, args []string, w world) error {
	flags := newFlags("resolve", "NAME")
	kind := flags.String("type", "A", strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	server := flags.String("server", "", "the nameserver's `IP:PORT`; the first of /etc/resolv.conf if empty")
	count := flags.Int("count", 1, "how many times to ask, where -rate is 0")
	rate := flags.Float64("rate", 0, "ask so often a second until stdin ends, and print errors and changes only")
	timeout := flags.Duration("timeout", 2*time.Second, "for each question")
	name, err := parse(flags, args, w)
	if err != nil {
		return err
	}
	q, err := newQuestion(name, *kind, *server, *timeout, w)
	if err != nil {
		return err
	}
	if *count < 1 {
		return usageError{fmt.Sprintf("probe: -count=%d: must be 1 or more", *count)}
	}
	lines := json.NewEncoder(w.out)
	if *rate == 0 {
		return q.repeated(ctx, *count, lines)
	}
	p, err := newPace(*rate, maxInFlight)
	if err != nil {
		return err
	}
	until, cancel := limited(ctx, w)
	defer cancel()
	return q.watched(until, p, lines)
}

// newQuestion returns what the arguments ask, over UDP, or a usageError. The name of a PTR may be an address.
func newQuestion(name, kind, server string, timeout time.Duration, w world) (question, error) {
	if kinds[kind] == 0 {
		return question{}, usageError{fmt.Sprintf("probe: -type=%s: must be one of %s", kind, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))}
	}
	if _, err := netip.ParseAddrPort(server); err != nil && server != "" {
		return question{}, usageError{fmt.Sprintf("probe: -server=%s: must be IP:PORT, as in 10.96.0.10:53", server)}
	}
	if timeout <= 0 {
		return question{}, usageError{fmt.Sprintf("probe: -timeout=%s: must be positive", timeout)}
	}
	full := dns.Fqdn(name)
	if _, err := netip.ParseAddr(name); err == nil && kind == "PTR" {
		if full, err = dns.ReverseAddr(name); err != nil {
			return question{}, err
		}
	}
	if _, ok := dns.IsDomainName(full); !ok {
		return question{}, usageError{fmt.Sprintf("probe: %q is no name", name)}
	}
	client := &dns.Client{Net: "udp", Timeout: timeout}
	return question{name: full, kind: kinds[kind], server: server, client: client, timeout: timeout, world: w}, nil
}

// repeated asks count times, one after the other, or until ctx ends.
func (q question) repeated(ctx context.Context, count int, lines *json.Encoder) error {
	for asked := 0; asked < count && ctx.Err() == nil; asked++ {
		if err := lines.Encode(q.ask(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// watched asks at the pace until ctx ends and prints errors and changes, and what all came to.
func (q question) watched(ctx context.Context, p pace, lines *json.Encoder) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sum := tally{begun: time.Now(), figures: figures{ByRcode: map[string]int{}}}
	run := at(ctx, p, q.ask, func() reply {
		r := q.empty()
		r.Error = tooMany(p)
		return r
	})
	var latest *outcome[reply] // to the latest of the questions that were answered
	err := run.follow(cancel, lines, func(o outcome[reply]) any {
		r := o.value
		sum.add(r.Time, r.MS, r.Error)
		if r.Error != "" {
			return r
		}
		sum.figures.ByRcode[r.Rcode]++
		before := latest
		if before != nil && o.number < before.number {
			return nil // a later question has overtaken it
		}
		latest = &o
		if before == nil {
			return r
		}
		if same(r, before.value) {
			return nil
		}
		sum.figures.Changes++
		return r
	})
	if err != nil {
		return err
	}
	return lines.Encode(sum.summary(run.skipped))
}

func (q question) empty() reply {
	return reply{Time: time.Now().UTC(), Name: q.name, Type: dns.TypeToString[q.kind], Answers: []string{}, Extra: []string{}}
}

// same reports whether two replies are equal; their TTLs go down by themselves.
func same(a, b reply) bool {
	return a.Rcode == b.Rcode && slices.Equal(a.Answers, b.Answers) && slices.Equal(a.Extra, b.Extra)
}

func (q question) ask(ctx context.Context) reply {
	r := q.empty()
	message, err := q.exchange(ctx)
	r.MS = milliseconds(time.Since(r.Time))
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Rcode, r.Truncated = dns.RcodeToString[message.Rcode], message.Truncated
	for _, record := range message.Answer {
		text := data(record)
		if record.Header().Rrtype != q.kind {
			text = dns.Type(record.Header().Rrtype).String() + " " + text
		}
		r.Answers = append(r.Answers, text)
	}
	for _, record := range message.Extra {
		if header := record.Header(); header.Rrtype != dns.TypeOPT {
			r.Extra = append(r.Extra, header.Name+" "+dns.Type(header.Rrtype).String()+" "+data(record))
		}
	}
	slices.Sort(r.Answers)
	slices.Sort(r.Extra)
	r.TTL = lifetime(message)
	return r
}

func (q question) exchange(ctx context.Context) (*dns.Msg, error) {
	limited, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	server := q.server
	if server == "" {
		config, err := configOf(q.world.resolvConf)
		if err != nil {
			return nil, err
		}
		server = serverOf(config)
	}
	return exchange(limited, q.client, server, q.name, q.kind)
}

// data returns what a record says, without owner, type and TTL: "10.0.0.1" of an A, "0 50 80 host." of an SRV.
func data(record dns.RR) string {
	switch r := record.(type) {
	case *dns.TXT:
		return strings.Join(r.Txt, "")
	case *dns.SRV:
		return fmt.Sprintf("%d %d %d %s", r.Priority, r.Weight, r.Port, r.Target)
	default:
		return strings.TrimPrefix(record.String(), record.Header().String())
	}
}

// lifetime returns the TTL of a message in seconds, 0 where it has none.
func lifetime(message *dns.Msg) uint32 {
	var all []uint32
	for _, record := range message.Answer {
		all = append(all, record.Header().Ttl)
	}
	for _, record := range message.Ns {
		if soa, ok := record.(*dns.SOA); ok && len(message.Answer) == 0 {
			all = append(all, soa.Header().Ttl, soa.Minttl)
		}
	}
	if len(all) == 0 {
		return 0
	}
	return slices.Min(all)
}
