// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/wait"
)

// timeout is how long a server that lives may take for an answer.
const timeout = 20 * time.Second

// line is a TCP connection to a server, for many questions: another one where the server has ended it, as it does when none has come for a
// few seconds.
type line struct {
	address string
	conn    *dns.Conn // nil where there is none
}

func newLine(t *testing.T, address string) *line {
	t.Helper()
	l := &line{address: address}
	t.Cleanup(l.hangUp)
	return l
}

func (l *line) hangUp() {
	if l.conn != nil {
		_ = l.conn.Close() // either side may have ended it
		l.conn = nil
	}
}

// ask returns the replies to questions, nil where there is none.
func (l *line) ask(t *testing.T, questions ...question) []*dns.Msg {
	t.Helper()
	var replies []*dns.Msg
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if replies, last = l.askOnce(ctx, questions); last != nil {
			l.hangUp()
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("after %v: %v", questions, last)
	}
	return replies
}

// askOnce returns the replies to questions, nil where there is none. A server answers what comes over one connection in its order, so
// there is none if the reply to a later question has come.
func (l *line) askOnce(ctx context.Context, questions []question) ([]*dns.Msg, error) {
	if l.conn == nil {
		conn, err := (&dns.Client{Net: "tcp", Timeout: timeout}).DialContext(ctx, l.address)
		if err != nil {
			return nil, err
		}
		l.conn = conn
	}
	if err := l.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	last := question{"dns-version." + zone, dns.TypeTXT}
	for id, q := range append(slices.Clone(questions), last) {
		m := new(dns.Msg)
		m.SetQuestion(q.name, q.kind)
		m.Id, m.RecursionDesired = uint16(id), false
		if err := l.conn.WriteMsg(m); err != nil {
			return nil, fmt.Errorf("%s: %w", q, err)
		}
	}
	replies := make([]*dns.Msg, len(questions))
	for {
		m, err := l.conn.ReadMsg()
		if err != nil {
			return nil, err
		}
		if int(m.Id) == len(questions) {
			return replies, nil
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
