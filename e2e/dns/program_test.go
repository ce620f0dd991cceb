// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/miekg/dns"
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

// serve runs CoreDNS until its standard input ends, as it does when the test ends, however it ends. Its first line tells
// where it listens.
func serve(corefile string) error {
	i, err := caddyStart(corefile)
	if err != nil {
		return err
	}
	l := i.Servers()[0]
	if _, err := fmt.Println(l.LocalAddr(), l.Addr()); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return i.Stop()
}

// caddyStart starts the server in this process.
func caddyStart(corefile string) (*caddy.Instance, error) {
	dnsserver.Quiet, caddy.Quiet = true, true
	if err := dnsserver.SetDirectives([]string{"bind", "errors", "transfer", "clusterset", "kubernetes", "whoami"}); err != nil {
		return nil, err
	}
	return caddy.Start(caddy.CaddyfileInput{Contents: []byte(corefile), Filepath: "Corefile", ServerTypeName: "dns"})
}

// program is a CoreDNS in a process of its own. CoreDNS' own plugin sets a logger for the whole process, so two of it must
// not run in one.
type program struct{ udp, tcp string }

// startProgram starts CoreDNS with a server block for all zones, on a port that is free, and returns when it serves.
func startProgram(t *testing.T, plugins string) *program {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // it ends with its input, after the test
	cmd.Env = append(os.Environ(), corefileVariable+"="+serverBlock(plugins))
	cmd.Stderr = t.Output()
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
	p, rest := new(program), bufio.NewReader(stdout)
	t.Cleanup(func() {
		_ = stdin.Close() // it is a pipe: the program ends with it
		if _, err := io.Copy(t.Output(), rest); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("CoreDNS: %v", err)
		}
	})
	if _, err := fmt.Fscanln(rest, &p.udp, &p.tcp); err != nil {
		t.Fatalf("CoreDNS does not tell where it listens: %v", err)
	}
	return p
}

func (p *program) ask(question, network string) (string, *dns.Msg) {
	if network == "udp" {
		return exchange(question, network, p.udp)
	}
	return exchange(question, network, p.tcp)
}
