// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
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
	lab.Equal(t, "asked", []string{"udp web.test. A", "udp last.test. A"}, n.questions(), cmpopts.SortSlices(strings.Compare))
}

// At a rate, only changes and errors are printed.
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
