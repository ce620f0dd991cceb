// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/pprof"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/prometheus/procfs"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"

	_ "github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset"
	_ "github.com/tombolo-mcs/tombolo/e2e/bench/dns/constant"
)

// corefileVariable has the Corefile if this program should be CoreDNS, and profileVariable the file for its CPU profile, if
// there should be one.
const corefileVariable, profileVariable = "TOMBOLO_BENCH_COREFILE", "TOMBOLO_BENCH_CPUPROFILE"

// serverCore and clientCore are the cores to which servers and clients are pinned.
const serverCore, clientCore = "0", "1"

// serve runs CoreDNS until its standard input ends. It first prints its addresses, and then, for each line that it reads, its
// resident memory after a garbage collection.
func serve(corefile string) error {
	dnsserver.Quiet, caddy.Quiet = true, true
	if err := dnsserver.SetDirectives([]string{"bind", "errors", "cache", "clusterset", "kubernetes", "constant"}); err != nil {
		return err
	}
	if path := os.Getenv(profileVariable); path != "" {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	i, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(corefile), Filepath: "Corefile", ServerTypeName: "dns"})
	if err != nil {
		return err
	}
	l := i.Servers()[0]
	fmt.Println(l.LocalAddr(), l.Addr())
	self, err := procfs.Self()
	if err != nil {
		return err
	}
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		debug.FreeOSMemory()
		stat, err := self.Stat()
		if err != nil {
			return err
		}
		fmt.Println(stat.ResidentMemory())
	}
	return i.Stop()
}

// server is CoreDNS in a process of its own, on one core.
type server struct {
	name     string
	udp, tcp string
	stdin    io.WriteCloser
	stdout   *bufio.Reader
	cmd      *exec.Cmd
}

// startServer starts CoreDNS with plugins and returns when it serves. If a file is given, it writes its CPU profile to it.
func startServer(ctx context.Context, name, plugins, cpuProfile string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{name: name, cmd: exec.CommandContext(ctx, "taskset", "-c", serverCore, self)}
	s.cmd.Env = append(os.Environ(), "GOMAXPROCS=1", profileVariable+"="+cpuProfile, corefileVariable+"=.:0 {\nbind 127.0.0.1\nerrors\n"+plugins+"\n}\n")
	s.cmd.Stderr = os.Stderr
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.stdout = bufio.NewReader(stdout)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscanln(s.stdout, &s.udp, &s.tcp); err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not print its addresses: %w", name, err), s.stop())
	}
	return s, nil
}

func (s *server) cpu() (float64, error) {
	stat, err := results.StatOf(s.cmd.Process.Pid)
	return stat.CPUTime(), err
}

// memory returns the resident memory, in bytes, after a garbage collection.
func (s *server) memory() (bytes float64, err error) {
	if _, err := fmt.Fprintln(s.stdin); err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	if _, err := fmt.Fscanln(s.stdout, &bytes); err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	return bytes, nil
}

func (s *server) stop() error { return errors.Join(s.stdin.Close(), s.cmd.Wait()) }
