// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// latency compares how long answers take at a steady rate that no contender is busy with.
func (b *bench) latency(ctx context.Context, s *scenario, c contenders) error {
	b.say("latency at %d/s: %d rounds of %s", pacedRate, b.rounds, 2*b.duration)
	quantiles := map[*server]map[string][]float64{c.ours: {}, c.own: {}}
	for range b.rounds {
		for _, at := range []*server{c.ours, c.own} {
			l, err := paced(ctx, s, at, 2*b.duration)
			if err != nil {
				return err
			}
			quantiles[at]["p50"] = append(quantiles[at]["p50"], l.p50)
			quantiles[at]["p99"] = append(quantiles[at]["p99"], l.p99)
		}
	}
	for _, q := range []string{"p50", "p99"} {
		b.rows = append(b.rows, report.Compare(q+" of an A at 1,000/s, µs, to CoreDNS' own", quantiles[c.ours][q], quantiles[c.own][q], report.AtMost(1.1)))
	}
	return nil
}

// updateRate is how many slices change a second.
const updateRate = 100

// updates compares how long answers take while slices change with how long they take while none does. The ceiling, which
// reads no slices, is measured too: what it loses is what the API server's work costs on the same machine.
func (b *bench) updates(ctx context.Context, s *scenario, c contenders) error {
	b.say("latency under %d slice updates/s: %d rounds of %s", updateRate, b.rounds, 4*b.duration)
	quiet, busy := map[*server][]float64{}, map[*server][]float64{}
	sample := func(into map[*server][]float64) error {
		for _, at := range []*server{c.ours, c.ceiling} {
			l, err := paced(ctx, s, at, 2*b.duration)
			if err != nil {
				return err
			}
			into[at] = append(into[at], l.p99)
		}
		return nil
	}
	changed := 0
	for range b.rounds {
		if err := sample(quiet); err != nil {
			return err
		}
		stop := b.change(ctx, &changed)
		err := sample(busy)
		if err := errors.Join(err, stop()); err != nil {
			return err
		}
	}
	b.rows = append(b.rows,
		report.Compare("p99 of an A under 100 slice updates/s, µs, to the quiet p99", busy[c.ours], quiet[c.ours], report.AtMost(1.5)),
		report.Compare("the same, to the ceiling under the same updates", busy[c.ours], busy[c.ceiling], nil),
		report.Compare("p99 of the ceiling, which reads no slices, under them, to its quiet p99", busy[c.ceiling], quiet[c.ceiling], nil))
	return nil
}

// change changes slices until it is stopped.
func (b *bench) change(ctx context.Context, changed *int) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		tick := time.NewTicker(time.Second / updateRate)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				ended <- nil
				return
			case <-tick.C:
			}
			if err := b.content.flip(ctx, *changed); err != nil && ctx.Err() == nil {
				ended <- fmt.Errorf("change a slice: %w", err)
				return
			}
			*changed++
		}
	}()
	return func() error { cancel(); return <-ended }
}

// memory compares what 100,000 endpoints cost.
func (b *bench) memory(ctx context.Context, c contenders) error {
	b.say("memory at %d endpoints", crowdedEndpoints)
	if err := b.content.crowd(ctx); err != nil {
		return err
	}
	per := func(at *server) (float64, error) {
		if err := awaitCrowd(ctx, at, b.content.headless); err != nil {
			return 0, err
		}
		bytes, err := at.memory()
		return bytes, err
	}
	bare, err := c.ceiling.memory()
	if err != nil {
		return err
	}
	ours, err := per(c.ours)
	if err != nil {
		return err
	}
	own, err := per(c.own)
	if err != nil {
		return err
	}
	endpoint := func(bytes float64) []float64 { return []float64{(bytes - bare) / 1000 / crowdedEndpoints} }
	b.rows = append(b.rows,
		report.Compare("memory above bare CoreDNS, KB an endpoint, to 1", endpoint(ours), []float64{1}, report.AtMost(0.3)),
		report.Compare("memory above bare CoreDNS, KB an endpoint, to CoreDNS' own", endpoint(ours), endpoint(own), report.AtMost(0.5)))
	return nil
}

// awaitCrowd returns when a server knows all endpoints of so many headless services.
func awaitCrowd(ctx context.Context, at *server, headless int) error {
	client := &dns.Client{Net: "tcp", Timeout: 10 * time.Second}
	for i := range headless {
		m := new(dns.Msg)
		m.SetQuestion(fqdn(headlessName(i)), dns.TypeA)
		for {
			reply, _, err := client.ExchangeContext(ctx, m, at.tcp)
			if err != nil {
				return fmt.Errorf("%s: %w", at.name, err)
			}
			if len(reply.Answer) >= crowdedEndpoints/headless-headless { // some are not ready
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}
