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
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"

	_ "github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset"
	_ "github.com/tombolo-mcs/tombolo/e2e/bench/dns/ceiling"
)

// corefileVariable has the Corefile where this program is to be CoreDNS.
const corefileVariable = "TOMBOLO_BENCH_COREFILE"

// The cores that the two ends are pinned to.
const serverCore, clientCore = "0", "1"

// serve runs CoreDNS until its standard input ends. Its first line tells where it listens; each line that it is sent is a
// command, which is answered by a line.
func serve(corefile string) error {
	dnsserver.Quiet, caddy.Quiet = true, true
	if err := dnsserver.SetDirectives([]string{"bind", "errors", "cache", "clusterset", "kubernetes", "ceiling"}); err != nil {
		return err
	}
	i, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(corefile), Filepath: "Corefile", ServerTypeName: "dns"})
	if err != nil {
		return err
	}
	l := i.Servers()[0]
	fmt.Println(l.LocalAddr(), l.Addr())
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		answer, err := obey(commands.Text())
		if err != nil {
			return err
		}
		fmt.Println(answer)
	}
	return i.Stop()
}

// The commands: how much memory the server needs; to write a profile of its CPU to a file; to end that.
const memoryCommand, profileCommand, endCommand = "memory", "profile", "end"

func obey(command string) (int, error) {
	verb, path, _ := strings.Cut(command, " ")
	switch verb {
	case memoryCommand:
		return residentBytes()
	case profileCommand:
		file, err := os.Create(path)
		if err != nil {
			return 0, err
		}
		return 0, pprof.StartCPUProfile(file) // the process ends before the file matters
	case endCommand:
		pprof.StopCPUProfile()
		return 0, nil
	}
	return 0, fmt.Errorf("unknown command %q", command)
}

// residentBytes returns the resident memory after a garbage collection.
func residentBytes() (int, error) {
	runtime.GC()
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	pages := 0
	if _, err := fmt.Sscan(strings.Fields(string(statm))[1], &pages); err != nil {
		return 0, err
	}
	return pages * os.Getpagesize(), nil
}

// server is a CoreDNS in a process of its own, on one core.
type server struct {
	name     string
	udp, tcp string
	stdin    io.WriteCloser
	stdout   *bufio.Reader
	cmd      *exec.Cmd
}

// start starts CoreDNS with the plugins and returns when it serves.
func start(ctx context.Context, name, plugins string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{name: name, cmd: exec.CommandContext(ctx, "taskset", "-c", serverCore, self)}
	s.cmd.Env = append(os.Environ(), "GOMAXPROCS=1", corefileVariable+"=.:0 {\nbind 127.0.0.1\nerrors\n"+plugins+"\n}\n")
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
		return nil, errors.Join(fmt.Errorf("%s does not tell where it listens: %w", name, err), s.stop())
	}
	return s, nil
}

// ticks is how many units of CPU time Linux counts a second.
const ticks = 100

// cpu returns how many seconds of CPU the server has used. Answers are counted for each second of it: on a machine that
// others use too, a second on the clock says little.
func (s *server) cpu() (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses that may hold anything. utime and stime are the 14th and the 15th.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	var user, system float64
	if _, err := fmt.Sscan(strings.Join(fields[11:13], " "), &user, &system); err != nil {
		return 0, fmt.Errorf("/proc/%d/stat: %w", s.cmd.Process.Pid, err)
	}
	return (user + system) / ticks, nil
}

// order sends a command and returns the answer.
func (s *server) order(command string) (float64, error) {
	if _, err := io.WriteString(s.stdin, command+"\n"); err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	var answer float64
	if _, err := fmt.Fscanln(s.stdout, &answer); err != nil {
		return 0, fmt.Errorf("%s: %w", s.name, err)
	}
	return answer, nil
}

// memory returns the resident memory, in bytes, after a garbage collection.
func (s *server) memory() (float64, error) { return s.order(memoryCommand) }

func (s *server) stop() error {
	return errors.Join(s.stdin.Close(), s.cmd.Wait())
}
