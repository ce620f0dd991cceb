// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
)

type question struct {
	name  string // of its figures
	kind  string // of record
	names []string
	// code and records are what each answer has: its response code, and how many records.
	code, records int
	tcp, edns     bool
	outstanding   int // questions that dnsperf has sent without an answer
	// toConstant and toKubernetes are the targets of the rates without cache, if there are any.
	toConstant, toKubernetes *results.Bound
}

// namesFor returns the names in the questions to a server: the constant plugin has one answer.
func (q *question) namesFor(s *server) []string {
	if s.name == constant {
		return q.names[:1]
	}
	return q.names
}

func (q *question) address(s *server) string {
	if q.tcp {
		return s.tcp
	}
	return s.udp
}

// check sends each question once, and fails if an answer is wrong: the rate of wrong answers would be of no use.
func (q *question) check(ctx context.Context, s *server) error {
	c := &dns.Client{Timeout: 10 * time.Second}
	if q.tcp {
		c.Net = "tcp"
	}
	for _, name := range q.namesFor(s) {
		m := new(dns.Msg)
		m.SetQuestion(name, dns.StringToType[q.kind])
		if q.edns {
			m.SetEdns0(4096, false) // as dnsperf does
		}
		reply, _, err := c.ExchangeContext(ctx, m, q.address(s))
		if err != nil {
			return fmt.Errorf("%s, %s: %s: %w", q.name, s.name, name, err)
		}
		if reply.Rcode != q.code || len(reply.Answer) != q.records || reply.Truncated {
			return fmt.Errorf("%s, %s: the answer for %s is %s with %d records (truncated: %t), not %s with %d",
				q.name, s.name, name, dns.RcodeToString[reply.Rcode], len(reply.Answer), reply.Truncated, dns.RcodeToString[q.code], q.records)
		}
	}
	return nil
}

var dnsperfOutput = regexp.MustCompile(`Queries sent:\s+(\d+)\s+Queries completed:\s+(\d+) .*\s+Queries lost:\s+(\d+)`)

// dnsperf sends questions with dnsperf from the client's core, and returns how many answers the server gives for a second of
// its CPU.
func dnsperf(ctx context.Context, q *question, s *server, duration time.Duration) (float64, error) {
	host, port, err := net.SplitHostPort(q.address(s))
	if err != nil {
		return 0, err
	}
	file, err := os.CreateTemp("", "tombolo-bench-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(strings.Join(q.namesFor(s), " "+q.kind+"\n") + " " + q.kind + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	args := []string{
		"-c", clientCore, "dnsperf", "-s", host, "-p", port, "-d", file.Name(), "-l", strconv.Itoa(int(duration.Seconds())),
		"-T", "1", "-c", "4", "-q", strconv.Itoa(q.outstanding),
	}
	if q.tcp {
		args = append(args, "-m", "tcp")
	}
	if q.edns {
		args = append(args, "-e")
	}
	before, err := s.cpu()
	if err != nil {
		return 0, err
	}
	output, err := exec.CommandContext(ctx, "taskset", args...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("dnsperf: %w\n%s", err, output)
	}
	found := dnsperfOutput.FindSubmatch(output)
	if found == nil {
		return 0, fmt.Errorf("the output of dnsperf has no numbers of questions:\n%s", output)
	}
	var sent, completed, lost float64
	if _, err := fmt.Sscan(fmt.Sprintf("%s %s %s", found[1], found[2], found[3]), &sent, &completed, &lost); err != nil {
		return 0, err
	}
	if lost > sent/100 {
		return 0, fmt.Errorf("%s: %s lost %v of %v questions", q.name, s.name, lost, sent)
	}
	after, err := s.cpu()
	return completed / (after - before), err
}

// steadyRate is how many questions per second are sent to measure latencies.
const steadyRate = 1000

// lostAfter is when an answer counts as lost, and its latency then.
const lostAfter = time.Second

// steady sends questions at a steady rate, without waiting for answers, and returns the latencies in microseconds.
func steady(ctx context.Context, q *question, s *server, duration time.Duration) ([]float64, error) {
	conn, err := net.Dial("udp", s.udp)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	count := int(duration.Seconds() * steadyRate)
	sentAt := make([]atomic.Int64, count)
	names := q.namesFor(s)
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer func() { _ = conn.SetReadDeadline(time.Now().Add(lostAfter)) }()
		for i := range count {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / steadyRate))):
			}
			m := new(dns.Msg)
			m.SetQuestion(names[i%len(names)], dns.StringToType[q.kind])
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
	latencies := make([]float64, 0, count)
	buffer := make([]byte, dns.MaxMsgSize)
	for len(latencies) < count {
		if _, err := conn.Read(buffer); err != nil {
			break // counted below
		}
		i := int(buffer[0])<<8 | int(buffer[1])
		latencies = append(latencies, float64(time.Since(began).Nanoseconds()-sentAt[i].Load())/1000)
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(latencies) < count/2 {
		return nil, fmt.Errorf("%s answered %d of %d questions %s", s.name, len(latencies), count, q.name)
	}
	for len(latencies) < count {
		latencies = append(latencies, float64(lostAfter.Microseconds()))
	}
	return latencies, nil
}
