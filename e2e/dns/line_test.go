// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// timeout is how long a server that lives may take for an answer.
const timeout = 20 * time.Second

// line is a TCP connection to a server, for many questions.
type line struct{ conn *dns.Conn }

func newLine(t *testing.T, address string) line {
	t.Helper()
	conn, err := (&dns.Client{Net: "tcp", Timeout: timeout}).DialContext(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return line{conn}
}

// ask returns the replies to questions, nil where there is none. A server answers what comes over one connection in its
// order, so there is none if the reply to a later question has come.
func (l line) ask(t *testing.T, questions ...question) []*dns.Msg {
	t.Helper()
	last := question{"dns-version." + zone, dns.TypeTXT}
	for id, q := range append(slices.Clone(questions), last) {
		m := new(dns.Msg)
		m.SetQuestion(q.name, q.kind)
		m.Id, m.RecursionDesired = uint16(id), false
		if err := l.conn.WriteMsg(m); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	replies := make([]*dns.Msg, len(questions))
	for {
		if err := l.conn.SetReadDeadline(time.Now().Add(timeout)); err != nil {
			t.Fatal(err)
		}
		m, err := l.conn.ReadMsg()
		if err != nil {
			t.Fatalf("after %v: %v", questions, err)
		}
		if int(m.Id) == len(questions) {
			return replies
		}
		replies[m.Id] = m
	}
}

// question is a name, absolute and perhaps in mixed case, and a type.
type question struct {
	name string
	kind uint16
}

func (q question) String() string { return q.name + " " + dns.TypeToString[q.kind] }
