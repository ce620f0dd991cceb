// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dns_test runs CoreDNS with the plugin clusterset against a real API server, and queries it over the network.
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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/autopath"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/dns64"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/metadata"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/rewrite"
	_ "github.com/coredns/coredns/plugin/template"
	_ "github.com/coredns/coredns/plugin/transfer"
	_ "github.com/coredns/coredns/plugin/view"
	_ "github.com/coredns/coredns/plugin/whoami"
	"github.com/miekg/dns"

	_ "github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// waitLimit bounds every wait.
const waitLimit = 60 * time.Second

// directives are the plugins that these tests use, in the order of cmd/coredns.
var directives = []string{
	"metadata", "bind", "ready", "prometheus", "errors", "log", "dns64", "loadbalance", "rewrite", "autopath", "cache", "template",
	"transfer", "clusterset", "kubernetes", "whoami", "view",
}

// corefileVariable is set if this test binary is to run as CoreDNS. It has the Corefile.
const corefileVariable = "TOMBOLO_TEST_COREFILE"

// freePort is replaced in a Corefile by a free port of 127.0.0.1, another one at each place.
const freePort = "{free port}"

func TestMain(m *testing.M) {
	corefile, isCoreDNS := os.LookupEnv(corefileVariable)
	if !isCoreDNS {
		os.Exit(m.Run())
	}
	if err := serve(corefile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Commands to serve.
const (
	reload     = "reload"
	goroutines = "goroutines"
)

// serve runs CoreDNS until its standard input ends, as it does with the test. It prints its two addresses and the ports that
// replace freePort, and then one line for each command.
func serve(corefile string) error {
	i, ports, err := startOnOnePort(corefile)
	if err != nil {
		return err
	}
	l := i.Servers()[0]
	fmt.Println(l.LocalAddr(), l.Addr(), strings.Join(ports, " "))
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		if commands.Text() == goroutines {
			fmt.Println(runtime.NumGoroutine())
			continue
		}
		if i, err = i.Restart(i.Caddyfile()); err != nil { // as the plugin reload does
			return err
		}
		fmt.Println("reloaded")
	}
	return i.Stop()
}

// startOnOnePort starts CoreDNS on a port that is the same for UDP and TCP, as clients expect. (The kernel would pick two.)
func startOnOnePort(corefile string) (*caddy.Instance, []string, error) {
	dnsserver.Quiet, caddy.Quiet = true, true
	if err := dnsserver.SetDirectives(directives); err != nil {
		return nil, nil, err
	}
	var failures []error
	for range 10 { // another process may take a port first
		text := strings.Replace(corefile, ":0 {", ":"+freePort+" {", 1)
		var ports []string
		for strings.Contains(text, freePort) {
			port, err := lab.FreePort()
			if err != nil {
				return nil, nil, err
			}
			ports = append(ports, strconv.Itoa(port))
			text = strings.Replace(text, freePort, strconv.Itoa(port), 1)
		}
		text = strings.ReplaceAll(text, ":0 {", ":"+ports[0]+" {")
		i, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(text), Filepath: "Corefile", ServerTypeName: "dns"})
		if err == nil {
			return i, ports[1:], nil
		}
		failures = append(failures, err)
	}
	return nil, nil, errors.Join(failures...)
}

// coreDNS is a CoreDNS in its own process: the plugin kubernetes sets a logger for the whole process, so two must not share one.
type coreDNS struct {
	udp, tcp string
	ports    []string     // that replace freePort
	log      bytes.Buffer // complete after stop
	stop     func()

	input  io.WriteCloser
	output *bufio.Reader
}

// startCoreDNS starts CoreDNS with one server block for all zones, and returns when it serves.
func startCoreDNS(t *testing.T, plugins string) *coreDNS {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]) // it ends with its input, after the test
	cmd.Env = append(os.Environ(), corefileVariable+"=.:0 {\nbind 127.0.0.1\nerrors\n"+plugins+"\nwhoami\n}\n")
	c := new(coreDNS)
	cmd.Stderr = io.MultiWriter(t.Output(), &c.log)
	input, err := cmd.StdinPipe()
	lab.Must(t, err)
	output, err := cmd.StdoutPipe()
	lab.Must(t, err)
	lab.Must(t, cmd.Start())
	c.input, c.output = input, bufio.NewReader(output)
	c.stop = sync.OnceFunc(func() {
		closed := c.input.Close()
		_, err := io.Copy(t.Output(), c.output)
		if err := errors.Join(closed, err, cmd.Wait()); err != nil {
			t.Errorf("CoreDNS: %v", err)
		}
	})
	t.Cleanup(c.stop)
	fields := strings.Fields(c.readLine(t))
	if len(fields) < 2 {
		t.Fatalf("CoreDNS prints %q, not its addresses", fields)
	}
	c.udp, c.tcp, c.ports = fields[0], fields[1], fields[2:]
	return c
}

func (c *coreDNS) readLine(t *testing.T) string {
	t.Helper()
	line, err := c.output.ReadString('\n')
	lab.Must(t, err)
	return strings.TrimSpace(line)
}

func (c *coreDNS) command(t *testing.T, command string) string {
	t.Helper()
	_, err := fmt.Fprintln(c.input, command)
	lab.Must(t, err)
	return c.readLine(t)
}

func (c *coreDNS) goroutines(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(c.command(t, goroutines))
	lab.Must(t, err)
	return n
}

// ask sends a query, "<name> <type>", until there is a reply, because packets get lost on a busy machine. It returns the reply as
// text, which is the response code and the data of the answer in order, and the reply itself.
func (c *coreDNS) ask(t *testing.T, query, network string) (text string, reply *dns.Msg) {
	t.Helper()
	lab.Eventually(t, waitLimit, func(context.Context) (err error) {
		text, reply, err = c.askOnce(query, network)
		return err
	})
	return text, reply
}

// askOnce is ask without repetition. The error is that of the network.
func (c *coreDNS) askOnce(query, network string) (string, *dns.Msg, error) {
	name, qtype, _ := strings.Cut(query, " ")
	address := c.udp
	if network == "tcp" {
		address = c.tcp
	}
	m := new(dns.Msg).SetQuestion(name, dns.StringToType[qtype])
	reply, _, err := (&dns.Client{Net: network, Timeout: time.Second}).Exchange(m, address)
	if err != nil {
		return "", nil, err
	}
	lines := make([]string, 0, len(reply.Answer))
	for _, r := range reply.Answer {
		lines = append(lines, strings.TrimPrefix(r.String(), r.Header().String()))
	}
	slices.Sort(lines)
	return strings.Join(append([]string{dns.RcodeToString[reply.Rcode]}, lines...), " "), reply, nil
}

// await sends a query until the reply is as wanted, over UDP and TCP.
func (c *coreDNS) await(t *testing.T, query, want string) {
	t.Helper()
	for _, network := range []string{"udp", "tcp"} {
		lab.Eventually(t, waitLimit, func(context.Context) error {
			got, _, err := c.askOnce(query, network)
			if err == nil && got != want {
				err = fmt.Errorf("%s over %s: %s, want %s", query, network, got, want)
			}
			return err
		})
	}
}
