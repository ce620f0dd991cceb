// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

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
