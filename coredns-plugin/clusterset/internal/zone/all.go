// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"iter"
	"slices"

	"github.com/miekg/dns"
)

// All yields the RRsets of the zone without its SOA record.
func (z *Zone) All() iter.Seq[[]dns.RR] {
	return func(yield func([]dns.RR) bool) {
		for _, a := range []*Answer{z.ns, z.glue4, z.glue6, z.version} {
			if !yield(a.RRset()) {
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
