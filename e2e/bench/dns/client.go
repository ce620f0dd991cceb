// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// pacedRate is how many questions a second the latencies are measured at.
const pacedRate = 1000

// lostAfter is when an answer that has not come counts as lost, and how long it counts as having taken.
const lostAfter = time.Second

// latencies are of one round, in microseconds.
type latencies struct{ p50, p99 float64 }

// paced asks at a steady rate for a while, whether answers come or not, and returns how long they took.
func paced(ctx context.Context, s *scenario, at *server, duration time.Duration) (latencies, error) {
	conn, err := net.Dial("udp", at.udp)
	if err != nil {
		return latencies{}, err
	}
	defer conn.Close()
	count := int(duration.Seconds() * pacedRate)
	sentAt := make([]atomic.Int64, count)
	names := s.namesFor(at)
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer func() { _ = conn.SetReadDeadline(time.Now().Add(lostAfter)) }()
		for i := range count {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / pacedRate))):
			}
			m := new(dns.Msg)
			m.SetQuestion(names[i%len(names)], dns.StringToType[s.kind])
			m.Id = uint16(i)
			packet, err := m.Pack()
			if err != nil {
				return err
			}
			sentAt[i].Store(time.Since(began).Nanoseconds())
			if _, err := conn.Write(packet); err != nil {
				return err
			}
		}
		return nil
	})
	took := make([]float64, 0, count)
	buffer := make([]byte, dns.MaxMsgSize)
	for len(took) < count {
		if _, err := conn.Read(buffer); err != nil {
			break // told below
		}
		i := int(buffer[0])<<8 | int(buffer[1])
		took = append(took, float64(time.Since(began).Nanoseconds()-sentAt[i].Load())/1000)
	}
	if err := group.Wait(); err != nil {
		return latencies{}, err
	}
	if len(took) < count/2 {
		return latencies{}, fmt.Errorf("%s answered %d of %d questions %q", at.name, len(took), count, s.name)
	}
	for len(took) < count {
		took = append(took, float64(lostAfter.Microseconds()))
	}
	slices.Sort(took)
	return latencies{report.Quantile(took, 0.5), report.Quantile(took, 0.99)}, nil
}

// connections are those of pipelined.
const connections = 8

// pipelined asks over TCP, each time when the answer before has come, and returns how many answers there are for a second
// of the server's CPU. dnsperf loses answers as large as these.
func pipelined(ctx context.Context, s *scenario, at *server, duration time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var answers atomic.Int64
	before, err := at.cpu()
	if err != nil {
		return 0, err
	}
	names := s.namesFor(at)
	group, ctx := errgroup.WithContext(ctx)
	for c := range connections {
		group.Go(func() error {
			conn, err := (&dns.Client{Net: "tcp"}).DialContext(ctx, at.tcp)
			if err != nil {
				return err
			}
			defer conn.Close()
			for i := c; ctx.Err() == nil; i++ {
				m := new(dns.Msg)
				m.SetQuestion(names[i%len(names)], dns.StringToType[s.kind])
				packet, err := m.Pack()
				if err != nil {
					return err
				}
				if _, err := conn.Write(packet); err != nil {
					return err
				}
				// Read as bytes: to unpack 16 KB would be what is measured.
				if _, err := conn.ReadMsgHeader(nil); err != nil {
					return err
				}
				answers.Add(1)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return 0, fmt.Errorf("%s, %s: %w", at.name, s.name, err)
	}
	after, err := at.cpu()
	return float64(answers.Load()) / (after - before), err
}
