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
)

// scenario is a kind of question.
type scenario struct {
	name  string
	kind  string // of record
	names []string
	// constant is the name that the ceiling is asked for: it has the one answer.
	constant string
	flags    []string // of dnsperf
	tcp      bool
	file     string // of dnsperf's questions, and of those for the ceiling
	fileTop  string
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
	return os.WriteFile(s.fileTop, []byte(s.constant+" "+s.kind+"\n"), 0o600)
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
	if strings.HasPrefix(at.name, ceilingName) {
		file = s.fileTop
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	args := append([]string{
		"-c", clientCore, "dnsperf", "-s", host, "-p", port, "-d", file, "-l", strconv.Itoa(int(duration.Seconds())), "-T", "1",
	}, s.flags...)
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
