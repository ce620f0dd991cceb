// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"
)

func TestResolve(t *testing.T) { //nolint:tparallel // each case looks at what it adds to the questions of all
	t.Parallel()
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("many.test. 9 IN A 10.0.0.%d", i))
	}
	n := startNameserver(t, append(many,
		"web.test. 5 IN A 10.0.0.2", "web.test. 3 IN A 10.0.0.1", "web.test. 5 IN AAAA fd00::1",
		"_http._tcp.web.test. 7 IN SRV 0 50 80 a.web.test.", "_http._tcp.web.test. 7 IN SRV 0 50 443 a.web.test.",
		"2.0.0.10.in-addr.arpa. 5 IN PTR b.web.test.", "b.web.test. 5 IN PTR c.",
		`text.test. 5 IN TXT "1.1.0" " of all"`,
		"alias.test. 30 IN CNAME web.test.", "alias.test. 5 IN A 10.0.0.2",
		"test. 60 IN SOA ns.test. host.test. 1 2 3 4 5",
	)...)
	n.fail(map[string]int{"refused.test.": dns.RcodeRefused}, "")
	for name, test := range map[string]struct {
		args  []string
		asked string
		want  reply
		extra int // how many, where they are too many to list
	}{
		"A":           {[]string{"web.test"}, "udp web.test. A", reply{Answers: []string{"10.0.0.1", "10.0.0.2"}, TTL: 3}, 0},
		"AAAA":        {[]string{"-type", "AAAA", "web.test."}, "udp web.test. AAAA", reply{Answers: []string{"fd00::1"}, TTL: 5}, 0},
		"over TCP":    {[]string{"-tcp", "web.test"}, "tcp web.test. A", reply{Answers: []string{"10.0.0.1", "10.0.0.2"}, TTL: 3}, 0},
		"PTR":         {[]string{"-type", "PTR", "b.web.test"}, "udp b.web.test. PTR", reply{Answers: []string{"c."}, TTL: 5}, 0},
		"an address":  {[]string{"-type", "PTR", "10.0.0.2"}, "udp 2.0.0.10.in-addr.arpa. PTR", reply{Answers: []string{"b.web.test."}, TTL: 5}, 0},
		"TXT":         {[]string{"-type", "TXT", "text.test"}, "udp text.test. TXT", reply{Answers: []string{"1.1.0 of all"}, TTL: 5}, 0},
		"CNAME":       {[]string{"alias.test"}, "udp alias.test. A", reply{Answers: []string{"10.0.0.2", "CNAME web.test."}, TTL: 5}, 0},
		"no such":     {[]string{"none.test"}, "udp none.test. A", reply{Rcode: "NXDOMAIN", TTL: 5}, 0},
		"no data":     {[]string{"text.test"}, "udp text.test. A", reply{TTL: 5}, 0},
		"refused":     {[]string{"refused.test"}, "udp refused.test. A", reply{Rcode: "REFUSED", TTL: 5}, 0},
		"SRV":         {[]string{"-type", "SRV", "-tcp", "_http._tcp.web.test"}, "tcp _http._tcp.web.test. SRV", reply{Answers: []string{"0 50 443 a.web.test.", "0 50 80 a.web.test."}, TTL: 7}, 203},
		"no search":   {[]string{"web"}, "udp web. A", reply{Rcode: "NXDOMAIN", TTL: 5}, 0},
		"upper case":  {[]string{"WEB.test"}, "udp WEB.test. A", reply{Rcode: "NXDOMAIN", TTL: 5}, 0},
		"two at once": {[]string{"-count", "2", "web.test"}, "udp web.test. A", reply{Answers: []string{"10.0.0.1", "10.0.0.2"}, TTL: 3}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"resolve", "-timeout", patience.String()}, test.args...)
			before := len(n.questions())
			got := said[reply](t, n.world(t, "search test", "options ndots:5"), args...)
			asked := n.questions()[before:]
			if len(got) != len(asked) || asked[0] != test.asked {
				t.Fatalf("%d lines; asked %q, want %q", len(got), asked, test.asked)
			}
			_, test.want.Name, test.want.Type = fields(test.asked)
			if test.want.Rcode == "" {
				test.want.Rcode = "NOERROR"
			}
			r := got[len(got)-1]
			if r.Time.IsZero() || r.MS <= 0 || len(r.Extra) != test.extra || r.Answers == nil || r.Extra == nil {
				t.Errorf("got %+v", r)
			}
			if test.extra > 0 && r.Extra[0] != "alias.test. A 10.0.0.2" {
				t.Errorf("extra begins with %q", r.Extra[0])
			}
			if diff := cmp.Diff(test.want, r, cmpopts.IgnoreFields(reply{}, "Time", "MS", "Extra"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("truncated", func(t *testing.T) {
		got := said[reply](t, n.world(t), "resolve", "-timeout", patience.String(), "many.test")[0]
		if !got.Truncated || len(got.Answers) == 0 || len(got.Answers) >= 200 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("another server", func(t *testing.T) {
		other := startNameserver(t, "web.test. 5 IN A 192.0.2.1")
		got := said[reply](t, n.world(t), "resolve", "-timeout", patience.String(), "-server", other.address, "web.test")[0]
		if !slices.Equal(got.Answers, []string{"192.0.2.1"}) {
			t.Errorf("got %+v", got)
		}
	})
}

// fields returns the transport, name and type of a question that a nameserver noted.
func fields(asked string) (string, string, string) {
	all := strings.Fields(asked)
	return all[0], all[1], all[2]
}

// A question without an answer is not asked again, nor is another nameserver.
func TestResolveNeverTwice(t *testing.T) {
	t.Parallel()
	n := startNameserver(t)
	n.fail(nil, "web.test.")
	got := said[reply](t, n.world(t), "resolve", "-timeout", "5s", "web.test")
	if len(got) != 1 || !strings.Contains(got[0].Error, "i/o timeout") || got[0].Rcode != "" {
		t.Errorf("got %+v", got)
	}
	// The nameserver takes datagrams in order: had there been a second, it would be there.
	said[reply](t, n.world(t), "resolve", "-timeout", patience.String(), "last.test")
	if diff := cmp.Diff([]string{"udp web.test. A", "udp last.test. A"}, n.questions(), cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// At a rate, only what is new is told, and errors.
func TestResolveRate(t *testing.T) {
	t.Parallel()
	n := startNameserver(t, "web.test. 5 IN A 10.0.0.1", "web.test. 5 IN A 10.0.0.2")
	l := startLoad(t, n.world(t), "resolve", "-rate", "100", "-timeout", patience.String(), "web.test")
	eventually(t, "five questions", func() bool { return len(n.questions()) >= 5 })
	// The same in another order, with another TTL: no change.
	n.set(t, "web.test. 4 IN A 10.0.0.2", "web.test. 4 IN A 10.0.0.1")
	before := len(n.questions())
	eventually(t, "five more", func() bool { return len(n.questions()) >= before+5 })
	n.set(t, "web.test. 5 IN A 10.0.0.2")
	eventually(t, "the change", func() bool { return strings.Contains(l.out.String(), `"answers":["10.0.0.2"]`) })
	n.set(t)
	eventually(t, "the end of the name", func() bool { return strings.Contains(l.out.String(), "NXDOMAIN") })
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

// Replies may come in another order than their questions were sent; what is old is no change.
func TestLatest(t *testing.T) {
	t.Parallel()
	var seen latest
	for i, step := range []struct {
		number int
		reply  reply
		want   news
	}{
		{1, reply{Rcode: "NOERROR", Answers: []string{"a"}, TTL: 5}, first},
		{2, reply{Rcode: "NOERROR", Answers: []string{"a"}, TTL: 4}, none},
		{4, reply{Rcode: "NOERROR", Answers: []string{"b"}}, changed},
		{3, reply{Rcode: "NOERROR", Answers: []string{"a"}}, none},
		{5, reply{Rcode: "NOERROR", Answers: []string{"b"}}, none},
		{6, reply{Rcode: "SERVFAIL", Answers: []string{"b"}}, changed},
		{7, reply{Rcode: "SERVFAIL", Answers: []string{"b"}, Extra: []string{"x"}}, changed},
	} {
		if got := seen.take(outcome[reply]{step.number, step.reply}); got != step.want {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
}

// Errors are told each time, and are no answers.
func TestResolveRateErrors(t *testing.T) {
	t.Parallel()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	l := startLoad(t, here(t), "resolve", "-rate", "50", "-timeout", (100 * time.Millisecond).String(), "-server", conn.LocalAddr().String(), "web.test")
	eventually(t, "three errors", func() bool { return strings.Count(l.out.String(), `i/o timeout"`) >= 3 })
	output := l.finish(t)
	if failed := strings.Count(output, `"error"`); !strings.Contains(output, fmt.Sprintf(`{"summary":{"requests":%d,"failed":%d,`, failed, failed)) {
		t.Error(output)
	}
}
