// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

func load(ctx context.Context, args []string, w world) error {
	flags := newFlags("load", "HOST:PORT")
	network := flags.String("network", "tcp", "tcp, tcp4, tcp6, udp, udp4 or udp6")
	rate := flags.Float64("rate", 50, "requests a second")
	timeout := flags.Duration("timeout", 2*time.Second, "for each request, its lookup included")
	inFlight := flags.Int("inflight", 256, "how many requests may be under way at once; one more fails")
	duration := flags.Duration("for", 0, "how long; 0 until stdin ends, which without -for is what ends the run, or SIGTERM")
	trace := flags.Bool("trace", false, "print the requests that succeed, too")
	operand, err := parse(flags, args, w)
	if err != nil {
		return err
	}
	t, err := newTarget(*network, operand, *timeout, w)
	if err != nil {
		return err
	}
	p, err := newPace(*rate, *inFlight)
	if err != nil {
		return err
	}
	show := func(r result) bool { return r.Error != "" }
	if *trace {
		show = func(result) bool { return true }
	}
	until, cancel := limited(ctx, w, *duration)
	defer cancel()
	return loaded(until, t, p, show, json.NewEncoder(w.out))
}

// loaded sends requests at the pace until ctx ends and prints those to show, and what all came to.
func loaded(ctx context.Context, t target, p pace, show func(result) bool, lines *json.Encoder) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sum := tally{begun: time.Now(), figures: figures{ByCluster: map[string]int{}, ByPod: map[string]int{}}}
	run := at(ctx, p, t.single, func() result {
		return result{Time: time.Now().UTC(), Error: tooMany(p)}
	})
	err := run.follow(cancel, lines, func(o outcome[result]) any {
		r := o.value
		sum.add(r.Time, r.MS, r.Error)
		if r.Error == "" {
			sum.figures.ByCluster[r.Cluster]++
			sum.figures.ByPod[r.Pod]++
		}
		if show(r) {
			return r
		}
		return nil
	})
	if err != nil {
		return err
	}
	return lines.Encode(sum.summary(run.skipped))
}

// tooMany says why a request was not begun.
func tooMany(p pace) string { return fmt.Sprintf("not begun: %d are under way", p.limit) }
