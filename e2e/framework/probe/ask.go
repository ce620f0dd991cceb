// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

func ask(ctx context.Context, args []string, w world) error {
	flags := newFlags("ask", "HOST:PORT")
	network := flags.String("network", "tcp", "tcp, tcp4, tcp6, udp, udp4 or udp6")
	count := flags.Int("count", 1, "how many requests")
	timeout := flags.Duration("timeout", 2*time.Second, "for each request, its lookup included")
	keep := flags.Bool("keep", false, "send all on one connection, which is not made anew once it has failed")
	every := flags.Duration("every", 0, "a pause after each request; then stdin's end also ends the run")
	operand, err := parse(flags, args, w)
	if err != nil {
		return err
	}
	t, err := newTarget(*network, operand, *timeout, w)
	if err != nil {
		return err
	}
	if *count < 1 {
		return usageError{fmt.Sprintf("probe: -count=%d: must be 1 or more", *count)}
	}
	if *every > 0 {
		limitedCtx, stop := limited(ctx, w)
		defer stop()
		ctx = limitedCtx
	}
	request, done := t.single, func() error { return nil }
	if *keep {
		k := &kept{target: t}
		request, done = k.request, k.close
	}
	lines := json.NewEncoder(w.out)
	for range *count {
		if ctx.Err() != nil {
			break
		}
		if err := lines.Encode(request(context.WithoutCancel(ctx))); err != nil {
			return errors.Join(err, done())
		}
		if *every > 0 {
			select {
			case <-ctx.Done():
			case <-w.after(*every):
			}
		}
	}
	return done()
}

// kept sends all requests on one connection.
type kept struct {
	target  target
	link    link
	address string
	// broken is why there is no connection any more.
	broken error
}

// request sends one request. A connection that has failed stays so for all that follow; a socket of UDP is no connection,
// and a lost datagram does not concern the next one.
func (k *kept) request(ctx context.Context) result {
	return measured(ctx, k.target.timeout, func(ctx context.Context, r *result) error {
		r.Address = k.address
		if k.broken != nil {
			return fmt.Errorf("the one connection has failed before: %w", k.broken)
		}
		if k.link.conn == nil {
			l, err := k.target.connect(ctx, r)
			k.address = r.Address
			if err != nil {
				k.broken = err
				return err
			}
			l.kept = true
			k.link = l
		}
		err := k.target.exchange(ctx, k.link, r)
		if err != nil && !k.target.overUDP() {
			k.broken = err
		}
		return err
	})
}

func (k *kept) close() error {
	if k.link.conn == nil {
		return nil
	}
	return k.link.conn.Close()
}

// lookup asks Go's own resolver, which takes search, ndots, attempts and /etc/hosts into account as any program does.
func lookup(ctx context.Context, args []string, w world) error {
	flags := newFlags("lookup", "NAME")
	timeout := flags.Duration("timeout", 10*time.Second, "for the lookup with all its tries")
	name, err := parse(flags, args, w)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	begun := time.Now()
	resolver := net.Resolver{PreferGo: true}
	found, err := resolver.LookupHost(limited, name)
	line := struct {
		Name string `json:"name"`
		// Addresses are in the order in which a program tries them.
		Addresses []string `json:"addresses"`
		MS        float64  `json:"ms"`
		Error     string   `json:"error,omitempty"`
	}{Name: name, Addresses: append([]string{}, found...), MS: milliseconds(time.Since(begun))}
	if err != nil {
		line.Error = err.Error()
	}
	return json.NewEncoder(w.out).Encode(line)
}
