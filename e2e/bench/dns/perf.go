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
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// scenario is a kind of question.
type scenario struct {
	name  string
	kind  string // of record
	names []string
	// code and records are what each answer has: its response code, and how many records.
	code, records int
	tcp, edns     bool
	underway      int // questions that dnsperf asks at a time
	// toCeiling and toOwn are the targets of the rates without cache, nil where there is none.
	toCeiling, toOwn *report.Target

	file    string // of dnsperf's questions, and of those for the ceiling
	fileTop string
}

// constant is the name that the ceiling is asked for: it has the one answer.
func (s *scenario) constant() string { return s.names[0] }

// namesFor returns what a server is asked for.
func (s *scenario) namesFor(at *server) []string {
	if at.isCeiling() {
		return []string{s.constant()}
	}
	return s.names
}

// flags returns those of dnsperf.
func (s *scenario) flags() []string {
	result := []string{"-c", "4", "-q", strconv.Itoa(s.underway)}
	if s.tcp {
		result = append(result, "-m", "tcp")
	}
	if s.edns {
		result = append(result, "-e")
	}
	return result
}

// warmUp asks a server for each name once, and fails where an answer is not what it should be: to measure how fast wrong
// answers come would tell nothing.
func (s *scenario) warmUp(ctx context.Context, at *server) error {
	c, address := &dns.Client{Timeout: 10 * time.Second}, at.udp
	if s.tcp {
		c.Net, address = "tcp", at.tcp
	}
	for _, name := range s.namesFor(at) {
		m := new(dns.Msg)
		m.SetQuestion(name, dns.StringToType[s.kind])
		if s.edns {
			m.SetEdns0(4096, false) // as dnsperf does
		}
		reply, _, err := c.ExchangeContext(ctx, m, address)
		if err != nil {
			return fmt.Errorf("%s, %s: %s: %w", s.name, at.name, name, err)
		}
		if reply.Rcode != s.code || len(reply.Answer) != s.records || reply.Truncated {
			return fmt.Errorf("%s, %s: %s is answered with %s and %d records (truncated: %t), not with %s and %d",
				s.name, at.name, name, dns.RcodeToString[reply.Rcode], len(reply.Answer), reply.Truncated, dns.RcodeToString[s.code], s.records)
		}
	}
	return nil
}

// write writes the files of questions that dnsperf reads.
func (s *scenario) write(folder string) error {
	s.file = filepath.Join(folder, strings.ReplaceAll(s.name, " ", "-"))
	s.fileTop = s.file + ".ceiling"
	var text strings.Builder
	for _, name := range s.names {
		fmt.Fprintf(&text, "%s %s\n", name, s.kind)
	}
	if err := os.WriteFile(s.file, []byte(text.String()), 0o600); err != nil {
		return err
	}
	return os.WriteFile(s.fileTop, []byte(s.constant()+" "+s.kind+"\n"), 0o600)
}

var (
	completed = regexp.MustCompile(`Queries completed:\s+(\d+)`)
	lost      = regexp.MustCompile(`Queries lost:\s+(\d+)`)
	sent      = regexp.MustCompile(`Queries sent:\s+(\d+)`)
)

// measure has dnsperf ask from one core, and returns how many answers there are for a second of the server's CPU.
func measure(ctx context.Context, s *scenario, at *server, duration time.Duration) (float64, error) {
	address, file := at.udp, s.file
	if s.tcp {
		address = at.tcp
	}
	if at.isCeiling() {
		file = s.fileTop
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	args := append([]string{
		"-c", clientCore, "dnsperf", "-s", host, "-p", port, "-d", file, "-l", strconv.Itoa(int(duration.Seconds())), "-T", "1",
	}, s.flags()...)
	before, err := at.cpu()
	if err != nil {
		return 0, err
	}
	output, err := exec.CommandContext(ctx, "taskset", args...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("dnsperf: %w\n%s", err, output)
	}
	figures := make(map[string]float64)
	for name, pattern := range map[string]*regexp.Regexp{"completed": completed, "lost": lost, "sent": sent} {
		found := pattern.FindSubmatch(output)
		if found == nil {
			return 0, fmt.Errorf("dnsperf says nothing of %s:\n%s", name, output)
		}
		if figures[name], err = strconv.ParseFloat(string(found[1]), 64); err != nil {
			return 0, err
		}
	}
	if figures["lost"] > figures["sent"]/100 {
		return 0, fmt.Errorf("%s lost %v of %v questions %q", at.name, figures["lost"], figures["sent"], s.name)
	}
	after, err := at.cpu()
	return figures["completed"] / (after - before), err
}

// needPrograms fails where a program is missing, after root on Debian has had it installed.
func needPrograms(ctx context.Context) error {
	for program, pkg := range map[string]string{"dnsperf": "dnsperf", "taskset": "util-linux"} {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if _, err := os.Stat("/etc/debian_version"); err != nil || os.Geteuid() != 0 {
			return fmt.Errorf("%s is missing: install it (Debian: apt-get install %s)", program, pkg)
		}
		fmt.Printf("install %s, which this machine lacks\n", pkg)
		install := exec.CommandContext(ctx, "apt-get", "-q", "install", "-y", "--no-install-recommends", pkg)
		install.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := install.CombinedOutput(); err != nil {
			return errors.Join(fmt.Errorf("%s is missing, and cannot be installed: %w", program, err), errors.New(string(output)))
		}
	}
	return nil
}
