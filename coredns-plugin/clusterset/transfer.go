// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/transfer"
	"github.com/miekg/dns"
)

// errUnsynced makes plugin transfer answer SERVFAIL.
var errUnsynced = errors.New("not all objects have been read from the API server yet")

// Transfer sends all records of a zone, service by service. A secondary with the current serial number gets only the SOA record,
// others the whole zone (RFC 1995, section 4). The error is transfer.ErrNotAuthoritative for other zones, and errUnsynced before the
// first publication. It implements the interface of the transfer plugin.
func (c *Clusterset) Transfer(name string, known uint32) (<-chan []dns.RR, error) {
	i := slices.IndexFunc(c.zones, func(z *zone) bool { return strings.EqualFold(z.name, name) })
	if i < 0 {
		return nil, transfer.ErrNotAuthoritative
	}
	if !c.publisher.synced.Load() {
		return nil, errUnsynced
	}
	z := c.zones[i]
	// Read the SOA first: a change during the transfer then has a later serial number, so the next transfer has it.
	soa := z.soa().rotated()
	out := make(chan []dns.RR)
	go func() {
		defer close(out)
		out <- soa
		if serial := soa[0].(*dns.SOA).Serial; known != 0 && !newer(serial, known) {
			return
		}
		for records := range z.all() {
			out <- records
		}
		out <- soa
	}()
	return out, nil
}

// all yields the RRsets of the zone without its SOA record.
func (z *zone) all() iter.Seq[[]dns.RR] {
	return func(yield func([]dns.RR) bool) {
		for _, a := range []*answer{z.ns, z.glue4, z.glue6, z.version} {
			if !yield(a.records[:a.count:a.count]) {
				return
			}
		}
		for n := range z.services.all() {
			for records := range n.all() {
				if !yield(records) {
					return
				}
			}
		}
	}
}

// all yields the records of a service in batches, which are not kept.
func (n *node) all() iter.Seq[[]dns.RR] {
	return func(yield func([]dns.RR) bool) {
		if !yield(n.both(nil, n.owner, n.addresses())) {
			return
		}
		all := numbers{everyPort, map[*port][]uint16{}}
		for t := range n.targets() {
			var batch []dns.RR
			if t.name != n.owner {
				batch = n.both(batch, t.name, t.addresses)
			}
			if !yield(n.srvOf(batch, t, all)) {
				return
			}
		}
	}
}

// srvOf appends the SRV records that point at a target: at the service's name, and at the names of ports.
func (n *node) srvOf(to []dns.RR, t target, all numbers) []dns.RR {
	for _, number := range all.of(t.ports) {
		to = append(to, n.records.srv(n.owner, t.name, number))
	}
	for _, p := range sortedPorts(slices.Concat(t.ports...)) {
		if p.name != "" {
			to = append(to, n.records.srv("_"+p.name+"._"+p.protocol+"."+n.owner, t.name, p.number))
		}
	}
	return to
}
