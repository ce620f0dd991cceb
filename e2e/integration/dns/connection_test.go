// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// query is a name, absolute and perhaps in mixed case, and a type.
type query struct {
	name  string
	qtype uint16
}

func (q query) String() string { return q.name + " " + dns.TypeToString[q.qtype] }

// connection is a TCP connection for many queries. It is opened again if the server closes it, as it does after a few seconds
// without a query.
type connection struct {
	address string
	conn    *dns.Conn // nil if there is none
}

func newConnection(t *testing.T, server *coreDNS) *connection {
	t.Helper()
	c := &connection{address: server.tcp}
	t.Cleanup(c.close)
	return c
}

func (c *connection) close() {
	if c.conn != nil {
		_ = c.conn.Close() // the server may have closed it
		c.conn = nil
	}
}

// ask returns the replies to queries, nil for a query without a reply.
func (c *connection) ask(t *testing.T, queries ...query) []*dns.Msg {
	t.Helper()
	var replies []*dns.Msg
	lab.Eventually(t, patience, func(ctx context.Context) (err error) {
		if replies, err = c.askOnce(ctx, queries); err != nil {
			c.close()
		}
		return err
	})
	return replies
}

// askOnce is ask on one connection. A server replies in the order of the queries, so there is no reply to a query if the reply to
// a later one has arrived.
func (c *connection) askOnce(ctx context.Context, queries []query) ([]*dns.Msg, error) {
	const timeout = 20 * time.Second
	if c.conn == nil {
		conn, err := (&dns.Client{Net: "tcp", Timeout: timeout}).DialContext(ctx, c.address)
		if err != nil {
			return nil, err
		}
		c.conn = conn
	}
	if err := c.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	for id, q := range append(slices.Clone(queries), query{"dns-version." + zone, dns.TypeTXT}) {
		m := new(dns.Msg).SetQuestion(q.name, q.qtype)
		m.Id, m.RecursionDesired = uint16(id), false
		if err := c.conn.WriteMsg(m); err != nil {
			return nil, err
		}
	}
	replies := make([]*dns.Msg, len(queries))
	for {
		m, err := c.conn.ReadMsg()
		if err != nil {
			return nil, err
		}
		if int(m.Id) == len(queries) {
			return replies, nil
		}
		replies[m.Id] = m
	}
}
