// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// corefileVariable has the Corefile where this test binary is to be CoreDNS.
const corefileVariable = "TOMBOLO_TEST_COREFILE"

// TestMain runs the tests, or CoreDNS.
func TestMain(m *testing.M) {
	corefile, isProgram := os.LookupEnv(corefileVariable)
	if !isProgram {
		os.Exit(m.Run())
	}
	if err := serve(corefile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// anotherPort stands in a Corefile for a port of 127.0.0.1 that is free, at each place for another one.
const anotherPort = "{another port}"

// serve runs CoreDNS until its standard input ends, as it does when the test ends, however it ends. Its first line tells
// where it listens, and what has been put for anotherPort.
func serve(corefile string) error {
	i, others, err := startOnOnePort(corefile)
	if err != nil {
		return err
	}
	l := i.Servers()[0]
	if _, err := fmt.Println(l.LocalAddr(), l.Addr(), strings.Join(others, " ")); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return i.Stop()
}

// startOnOnePort starts CoreDNS on a port that is the same for UDP and TCP: dig and unbound know no other. Where the kernel
// picks the ports, it picks two. It returns what it has put for anotherPort.
func startOnOnePort(corefile string) (*caddy.Instance, []string, error) {
	var refusals []error
	for range 10 {
		port, err := lab.FreePort()
		if err != nil {
			return nil, nil, err
		}
		text := strings.ReplaceAll(corefile, ":0 {", fmt.Sprintf(":%d {", port))
		var others []string // picked as late as can be: CoreDNS goes on without a port that it cannot have
		for strings.Contains(text, anotherPort) {
			other, err := lab.FreePort()
			if err != nil {
				return nil, nil, err
			}
			others = append(others, strconv.Itoa(other))
			text = strings.Replace(text, anotherPort, strconv.Itoa(other), 1)
		}
		i, err := caddyStart(text)
		if err == nil {
			return i, others, nil
		}
		refusals = append(refusals, err) // somebody may be quicker
	}
	return nil, nil, errors.Join(refusals...)
}

// directives are the plugins that these tests use, in the order of cmd/coredns.
var directives = []string{
	"metadata", "bind", "ready", "prometheus", "errors", "log", "dns64", "loadbalance", "rewrite", "autopath", "cache", "template",
	"transfer", "clusterset", "kubernetes", "whoami", "view",
}

// caddyStart starts the server in this process.
func caddyStart(corefile string) (*caddy.Instance, error) {
	dnsserver.Quiet, caddy.Quiet = true, true
	if err := dnsserver.SetDirectives(directives); err != nil {
		return nil, err
	}
	return caddy.Start(caddy.CaddyfileInput{Contents: []byte(corefile), Filepath: "Corefile", ServerTypeName: "dns"})
}

// program is a CoreDNS in a process of its own. CoreDNS' own plugin sets a logger for the whole process, so two of it must
// not run in one.
type program struct {
	udp, tcp string
	others   []string     // what stands for anotherPort
	stop     func()       // ends it, once
	logged   bytes.Buffer // once it has ended
}

// startProgram starts CoreDNS with a server block for all zones, on a port that is free, and returns when it serves.
func startProgram(t *testing.T, plugins string) *program {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // it ends with its input, after the test
	cmd.Env = append(os.Environ(), corefileVariable+"="+serverBlock(plugins))
	p := new(program)
	cmd.Stderr = io.MultiWriter(t.Output(), &p.logged)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rest := bufio.NewReader(stdout)
	p.stop = sync.OnceFunc(func() {
		_ = stdin.Close() // it is a pipe: the program ends with it
		if _, err := io.Copy(t.Output(), rest); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("CoreDNS: %v", err)
		}
	})
	t.Cleanup(p.stop)
	line, err := rest.ReadString('\n')
	said := strings.Fields(line)
	if err != nil || len(said) < 2 {
		t.Fatalf("CoreDNS does not tell where it listens, but %q: %v", line, err)
	}
	p.udp, p.tcp, p.others = said[0], said[1], said[2:]
	return p
}

func (p *program) ask(question, network string) (string, *dns.Msg) {
	if network == "udp" {
		return persist(question, network, p.udp)
	}
	return persist(question, network, p.tcp)
}
