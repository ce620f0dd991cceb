// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

var queryTypes = []uint16{
	dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypeTXT, dns.TypePTR, dns.TypeNS, dns.TypeSOA, dns.TypeANY, dns.TypeHTTPS,
}

// queries returns queries of all types for each name with a shape, for its ancestors, and for similar names.
func (c *content) queries() []query {
	names := map[string]struct{}{strings.ToUpper(zone): {}, strings.ToUpper("ns.dns." + zone): {}}
	for _, name := range slices.Sorted(maps.Keys(c.shapes)) {
		for parent := name; dns.IsSubDomain(zone, parent); _, parent, _ = strings.Cut(parent, ".") {
			names[parent] = struct{}{}
		}
		for range 2 {
			if similar := c.similar(name); dns.IsSubDomain(zone, similar) {
				names[similar] = struct{}{}
			}
		}
	}
	var all []query
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, qtype := range queryTypes {
			all = append(all, query{name, qtype})
		}
	}
	return all
}

// similar returns a name that is similar to another one. It may exist.
func (c *content) similar(name string) string {
	path := strings.TrimSuffix(strings.TrimSuffix(name, zone), ".")
	if path == "" {
		return c.mixed(name)
	}
	labels := strings.Split(path, ".")
	i := c.rand.IntN(len(labels))
	switch c.rand.IntN(6) {
	case 0:
		labels = slices.Delete(labels, i, i+1)
	case 1:
		labels = slices.Insert(labels, i, []string{"x", "_tcp", "_http", "east", "svc", "*", "10-0-0-1"}[c.rand.IntN(7)])
	case 2:
		j := c.rand.IntN(len(labels))
		labels[i], labels[j] = labels[j], labels[i]
	case 3:
		labels[i] = []string{"x", "_udp", "_dns", "west", "pod", "unready", "db-0"}[c.rand.IntN(7)]
	default:
		return c.mixed(name)
	}
	return dns.Fqdn(strings.Join(append(labels, strings.TrimSuffix(zone, ".")), "."))
}

// mixed returns a name in mixed case (0x20).
func (c *content) mixed(name string) string {
	return strings.Map(func(r rune) rune {
		if c.rand.IntN(2) == 0 {
			return unicode.ToUpper(r)
		}
		return r
	}, name)
}

func (c *content) shape(name string) shape {
	lower := strings.ToLower(name)
	found, ok := c.shapes[lower]
	if ok && name != lower && (found == "the zone" || found == "ns.dns") {
		return found + ", in mixed case"
	}
	if ok {
		return found
	}
	for above, below := lower, 0; below < 2 && dns.CountLabel(above) > 1; below++ {
		_, above, _ = strings.Cut(above, ".")
		if c.shapes[above] == pod {
			return "below " + pod
		}
	}
	return unknown
}

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
	lab.Eventually(t, waitLimit, func(ctx context.Context) (err error) {
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
