// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// testClients: what people look names up with finds them.
//
// spec: N2, N3, N4, N6
func (w world) testClients(t *testing.T) {
	many := endpoints("many-east-1")
	many.Labels[v1beta1.LabelServiceName] = "many"
	for i := range 100 {
		many.Endpoints = append(many.Endpoints, endpoints("", fmt.Sprintf("10.2.0.%d", i)).Endpoints...)
	}
	w.create(t,
		imported("web", v1beta1.ClusterSetIP, "10.96.0.1", "fd00::9"), imported("db", v1beta1.Headless),
		endpoints("db-east-1", "10.1.0.1", "10.1.0.2"), imported("many", v1beta1.Headless), many)
	p := startProgram(t, fmt.Sprintf(ours, w.cluster.Kubeconfig()))
	await(t, p, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1 10.1.0.2")
	await(t, p, "_http._tcp.web.default.svc.clusterset.local. SRV", "NOERROR 0 100 80 web.default.svc.clusterset.local.")
	t.Run("Go", p.lookUpInGo)
	t.Run("search list", p.search)
	t.Run("dig", p.dig)
}

// lookUpInGo uses the resolver of Go's library, without the host's configuration.
func (p *program) lookUpInGo(t *testing.T) {
	r := &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.udp)
	}}
	for host, want := range map[string][]string{
		"web.default.svc.clusterset.local.":              {"10.96.0.1", "fd00::9"},
		"db.default.svc.clusterset.local.":               {"10.1.0.1", "10.1.0.2"},
		"10-1-0-2.east.db.default.svc.clusterset.local.": {"10.1.0.2"},
		"WEB.Default.svc.clusterset.local.":              {"10.96.0.1", "fd00::9"},
		"none.default.svc.clusterset.local.":             nil,
		"east.db.default.svc.clusterset.local.":          nil,
	} {
		got, err := insist(t.Context(), host, r.LookupHost)
		if (err != nil) != (want == nil) {
			t.Errorf("%s: %v", host, err)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", host, diff)
		}
	}
	if got, err := insist(t.Context(), "many.default.svc.clusterset.local.", r.LookupHost); err != nil || len(got) != 100 {
		t.Errorf("of 100 addresses, %d: %v", len(got), err)
	}
	srv, err := insist(t.Context(), "db.default.svc.clusterset.local.", func(ctx context.Context, host string) ([]*net.SRV, error) {
		_, srv, err := r.LookupSRV(ctx, "http", "tcp", host)
		return srv, err
	})
	if err != nil || len(srv) != 2 {
		t.Fatalf("SRV records %v, %v", srv, err)
	}
	for _, s := range srv {
		if addresses, err := insist(t.Context(), s.Target, r.LookupHost); err != nil || len(addresses) != 1 || s.Port != 80 {
			t.Errorf("target %s:%d: %v, %v", s.Target, s.Port, addresses, err)
		}
	}
}

// insist looks a name up until somebody answers, whatever that says: Go's resolver gives up where a pod would ask again.
func insist[T any](ctx context.Context, host string, look func(context.Context, string) (T, error)) (found T, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		found, err = look(ctx, host)
		var failure *net.DNSError
		return !errors.As(err, &failure) || !failure.IsTimeout && !failure.IsTemporary, nil
	})
	return found, err
}

// search looks names up as pods do: with the namespace's search list, and all of it before the name itself where that has
// fewer than five dots.
func (p *program) search(t *testing.T) {
	config, err := dns.ClientConfigFromReader(strings.NewReader(
		"search default.svc.clusterset.local svc.clusterset.local clusterset.local\noptions ndots:5\nnameserver 127.0.0.1\n"))
	if err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string]string{
		"web A":                              "web.default.svc.clusterset.local. NOERROR 10.96.0.1",
		"web.default AAAA":                   "web.default.svc.clusterset.local. NOERROR fd00::9",
		"web.default.svc A":                  "web.default.svc.clusterset.local. NOERROR 10.96.0.1",
		"web.default.svc.clusterset.local A": "web.default.svc.clusterset.local. NOERROR 10.96.0.1",
		"10-1-0-1.east.db A":                 "10-1-0-1.east.db.default.svc.clusterset.local. NOERROR 10.1.0.1",
		"10-1-0-1.east.db.default.svc A":     "10-1-0-1.east.db.default.svc.clusterset.local. NOERROR 10.1.0.1",
		"_http._tcp.web SRV":                 "_http._tcp.web.default.svc.clusterset.local. NOERROR 0 100 80 web.default.svc.clusterset.local.",
		"_http._tcp.web.default SRV":         "_http._tcp.web.default.svc.clusterset.local. NOERROR 0 100 80 web.default.svc.clusterset.local.",
		"none.default A":                     "not found",
		"east.db A":                          "not found", // it exists, without an address
	} {
		name, typ, _ := strings.Cut(question, " ")
		got := "not found"
		for _, candidate := range config.NameList(name) {
			text, reply := p.ask(candidate+" "+typ, "udp")
			if len(reply.Answer) > 0 {
				got = candidate + " " + text
				break
			}
			if !reply.Response || (reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError) {
				t.Errorf("%s, as %s: %s", question, candidate, text) // a client gives up here
				break
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", question, got, want)
		}
	}
}

// dig asks with dig, which sends EDNS cookies, and comes again over TCP where an answer is truncated.
func (p *program) dig(t *testing.T) {
	if _, err := exec.LookPath("dig"); err != nil {
		t.Skip("dig is not installed: it is in Debian's package bind9-dnsutils")
	}
	host, port, err := net.SplitHostPort(p.udp)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string][]string{
		"+short web.default.svc.clusterset.local A":                                       {"10.96.0.1"},
		"+short +tcp web.default.svc.clusterset.local AAAA":                               {"fd00::9"},
		"+short +search +ndots=5 +domain=default.svc.clusterset.local web A":              {"10.96.0.1"},
		"+short +search +ndots=5 +domain=clusterset.local 10-1-0-1.east.db.default.svc A": {"10.1.0.1"},
		"+short +noedns db.default.svc.clusterset.local A":                                {"10.1.0.1", "10.1.0.2"},
		"+short +dnssec +bufsize=4096 db.default.svc.clusterset.local A":                  {"10.1.0.1", "10.1.0.2"},
		"+short _http._tcp.web.default.svc.clusterset.local SRV":                          {"0 100 80 web.default.svc.clusterset.local."},
		"+short clusterset.local NS":                                                      {"ns.dns.clusterset.local."},
		"+short ns.dns.clusterset.local A":                                                {"127.0.0.1"},
		"+short dns-version.clusterset.local TXT":                                         {`"1.0.0"`},
	} {
		if diff := cmp.Diff(want, runDig(t, append([]string{"@" + host, "-p", port}, strings.Fields(args)...)...)); diff != "" {
			t.Errorf("dig %s (-want +got):\n%s", args, diff)
		}
	}
	for args, want := range map[string]int{
		"+short +noedns many.default.svc.clusterset.local A":                   100, // by TCP in the end
		"+short +bufsize=512 _http._tcp.many.default.svc.clusterset.local SRV": 100,
	} {
		if got := runDig(t, append([]string{"@" + host, "-p", port}, strings.Fields(args)...)...); len(got) != want {
			t.Errorf("dig %s: %d lines, want %d", args, len(got), want)
		}
	}
}

// runDig returns the lines that dig prints, in order, without its remarks.
func runDig(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "dig", append([]string{"-r", "+tries=20"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("dig %v: %v\n%s", args, err, out)
	}
	lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, ";")
	})
	slices.Sort(lines)
	return lines
}
