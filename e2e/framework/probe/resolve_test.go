// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// A question without an answer is not asked again, nor is another nameserver.
func TestResolveNeverTwice(t *testing.T) {
	t.Parallel()
	n := startNameserver(t)
	n.fail(nil, "web.test.")
	got := runLines[reply](t, n.world(t), "resolve", "-timeout", "5s", "web.test")
	if len(got) != 1 || !strings.Contains(got[0].Error, "i/o timeout") || got[0].Rcode != "" {
		t.Errorf("got %+v", got)
	}
	// The nameserver takes datagrams in order: had there been a second, it would be there.
	runLines[reply](t, n.world(t), "resolve", "-timeout", waitLimit.String(), "last.test")
	lab.Equal(t, "asked", []string{"web.test. A", "last.test. A"}, n.questions(), cmpopts.SortSlices(strings.Compare))
}

// At a rate, only changes and errors are printed.
func TestResolveRate(t *testing.T) {
	t.Parallel()
	n := startNameserver(t, "web.test. 5 IN A 10.0.0.1", "web.test. 5 IN A 10.0.0.2")
	l := startLoad(t, n.world(t), "resolve", "-rate", "100", "-timeout", waitLimit.String(), "web.test")
	lab.Holds(t, waitLimit, "five questions", func() bool { return len(n.questions()) >= 5 })
	// The same in another order, with another TTL: no change.
	n.set(t, "web.test. 4 IN A 10.0.0.2", "web.test. 4 IN A 10.0.0.1")
	before := len(n.questions())
	lab.Holds(t, waitLimit, "five more", func() bool { return len(n.questions()) >= before+5 })
	n.set(t, "web.test. 5 IN A 10.0.0.2")
	lab.Holds(t, waitLimit, "the change", func() bool { return strings.Contains(l.out.String(), `"answers":["10.0.0.2"]`) })
	n.set(t)
	lab.Holds(t, waitLimit, "the end of the name", func() bool { return strings.Contains(l.out.String(), "NXDOMAIN") })
	output := l.finish(t)
	lines := decoded[struct {
		reply
		started
		Summary *figures `json:"summary"`
	}](t, strings.NewReader(output))
	if len(lines) != 5 || !lines[1].Started || lines[4].Summary == nil {
		t.Fatal(output)
	}
	last := lines[4].Summary
	total := len(n.questions())
	if last.Requests != total || last.Failed != 0 || last.Changes != 2 || last.ByRcode["NOERROR"]+last.ByRcode["NXDOMAIN"] != total || last.P99MS <= 0 {
		t.Errorf("%d questions, %s", total, output)
	}
}

// nameserver is one under test, which notes each question that it gets.
type nameserver struct {
	address string // IP:PORT

	mu      sync.Mutex
	asked   []string // as in "a.test. A"
	records []dns.RR
	rcodes  map[string]int // of names; without one, a name that has no record does not exist
	silent  string         // a name
}

func startNameserver(t *testing.T, records ...string) *nameserver {
	t.Helper()
	n := &nameserver{}
	n.set(t, records...)
	server := dnstest.NewMultipleServer(n.ServeDNS)
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Addr)
	lab.Must(t, err)
	n.address = net.JoinHostPort("127.0.0.1", port)
	return n
}

func (n *nameserver) set(t *testing.T, records ...string) {
	t.Helper()
	var parsed []dns.RR
	for _, text := range records {
		record, err := dns.NewRR(text)
		lab.Must(t, err)
		parsed = append(parsed, record)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.records = parsed
}

// fail has names answered with these codes, and one not at all.
func (n *nameserver) fail(rcodes map[string]int, silent string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rcodes, n.silent = rcodes, silent
}

func (n *nameserver) questions() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

func (n *nameserver) ServeDNS(w dns.ResponseWriter, request *dns.Msg) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := request.Question[0]
	n.asked = append(n.asked, q.Name+" "+dns.TypeToString[q.Qtype])
	if n.silent == q.Name {
		return
	}
	answer := new(dns.Msg).SetRcode(request, n.rcodes[q.Name])
	exists := false
	for _, record := range n.records {
		header := record.Header()
		if header.Name == q.Name && (header.Rrtype == q.Qtype || header.Rrtype == dns.TypeCNAME) {
			answer.Answer = append(answer.Answer, record)
		}
		exists = exists || header.Name == q.Name
	}
	if !exists && answer.Rcode == dns.RcodeSuccess {
		answer.Rcode = dns.RcodeNameError
	}
	w.WriteMsg(answer)
}

// world returns a world whose resolv.conf names the nameserver first.
func (n *nameserver) world(t *testing.T, lines ...string) world {
	t.Helper()
	w := here(t)
	// Were the second one asked, nothing would answer.
	text := "nameserver " + n.address + "\nnameserver 127.0.0.1:1\noptions attempts:5 timeout:1\n" + strings.Join(lines, "\n") + "\n"
	lab.Must(t, os.WriteFile(w.resolvConf, []byte(text), 0o600))
	return w
}

// Which questions a lookup sends, each once, and what it makes of the answers.
func TestLookup(t *testing.T) {
	t.Parallel()
	const search = "search one.test two.test ."
	for name, test := range map[string]struct {
		network, host string
		options       string
		records       []string
		rcodes        map[string]int
		silent        string
		asked         []string
		address       string
		err           string
	}{
		"address": {network: "tcp", host: "127.0.0.1", address: "127.0.0.1"},
		"in a search domain": {
			network: "tcp", host: "web", options: search,
			records: []string{"web.two.test. 5 IN A 127.0.0.1"},
			asked:   []string{"web.one.test. A", "web.one.test. AAAA", "web.two.test. A"},
			address: "127.0.0.1",
		},
		"the first of several, behind an alias": {
			network: "tcp4", host: "web.",
			records: []string{"web. 5 IN CNAME other.", "web. 5 IN A 127.0.0.1", "web. 5 IN A 192.0.2.1"},
			asked:   []string{"web. A"},
			address: "127.0.0.1",
		},
		"IPv6 alone is wanted": {
			network: "udp6", host: "web.",
			records: []string{"web. 5 IN AAAA ::1", "web. 5 IN A 127.0.0.1"},
			asked:   []string{"web. AAAA"},
			address: "::1",
		},
		"a failure ends it": {
			network: "tcp", host: "web", options: search,
			rcodes: map[string]int{"web.one.test.": dns.RcodeServerFailure},
			asked:  []string{"web.one.test. A"},
			err:    "lookup web.one.test. A: SERVFAIL",
		},
		"silence ends it": {
			network: "tcp", host: "web", options: search, silent: "web.one.test.",
			asked: []string{"web.one.test. A"},
			err:   "lookup web.one.test. A: read udp",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNameserver(t, test.records...)
			n.fail(test.rcodes, test.silent)
			r := resolver{resolvConf: n.world(t, test.options).resolvConf, timeout: waitLimit}
			if test.silent != "" {
				r.timeout = 5 * time.Second // all of it is waited for
			}
			got, err := r.lookup(t.Context(), test.host, networks[test.network])
			if err != nil && (test.err == "" || !strings.HasPrefix(err.Error(), test.err)) || err == nil && got.String() != test.address {
				t.Errorf("got %s, %v; want address %q, error %q", got, err, test.address, test.err)
			}
			lab.Equal(t, "asked", test.asked, n.questions())
		})
	}
}
