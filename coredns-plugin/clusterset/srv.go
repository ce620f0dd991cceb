// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// maxSRV is the number of SRV records after which an answer is cut off. It is more than a message can hold: a record
// has at least 19 octets and an uncompressed target (RFC 2782) that ends in ".svc.<zone>". A service of 1,000 endpoints
// that a hostile cluster gave 1,000 ports thus costs no more than any other; zone transfers still have all records.
const maxSRV = 2500

// target is what SRV records point at: a name, its addresses, and its ports.
type target struct {
	name      string
	addresses addresses
	ports     []port
}

// targets yields the targets of the service: itself, or each of its endpoints' names (spec N2, N3).
func (n *node) targets() iter.Seq[target] {
	return func(yield func(target) bool) {
		if !n.headless() {
			yield(target{n.owner, n.ips, n.service.ports})
			return
		}
		for _, c := range n.clusters {
			for t := range c.targets() {
				t.name = n.hostName(t.name, c.id)
				if !yield(t) {
					return
				}
			}
		}
	}
}

// targets yields the endpoints of a cluster by their label, each label once: two endpoints may share a hostname, and an
// endpoint may be in two slices for a moment.
func (c *cluster) targets() iter.Seq[target] {
	type end struct {
		label   string
		address netip.Addr
		of      *mirrored
	}
	return func(yield func(target) bool) {
		var ends []end
		for _, m := range c.slices {
			for a := range m.byIP.all() {
				ends = append(ends, end{addressLabel(a), a, m})
			}
			for _, e := range m.byName {
				ends = append(ends, end{e.hostname, e.address, m})
			}
		}
		slices.SortFunc(ends, func(a, b end) int {
			return cmp.Or(strings.Compare(a.label, b.label), a.address.Compare(b.address), strings.Compare(a.of.object.name, b.of.object.name))
		})
		for i := 0; i < len(ends); {
			t := target{name: ends[i].label, ports: ends[i].of.ports}
			first := i
			for ; i < len(ends) && ends[i].label == t.name; i++ {
				t.addresses.add(ends[i].address)
				if ends[i].of != ends[first].of {
					t.ports = append(slices.Clip(t.ports), ends[i].of.ports...)
				}
			}
			t.addresses.sort()
			if !yield(t) {
				return
			}
		}
	}
}

// srvAnswer returns the SRV records for the ports that are wanted, one for each distinct target and port number, and
// the targets' addresses.
func (n *node) srvAnswer(owner string, wanted func(port) bool) *answer {
	var found, additional []dns.RR
	numbers := map[*port][]uint16{} // of each list of ports, which all endpoints of a slice share
	for t := range n.targets() {
		if len(t.ports) == 0 {
			continue
		}
		list, known := numbers[&t.ports[0]]
		if !known {
			list = numbersOf(t.ports, wanted)
			numbers[&t.ports[0]] = list
		}
		before := len(found)
		for _, number := range list {
			if len(found) == maxSRV {
				return newAnswer(found, n.both(additional, t.name, t.addresses))
			}
			found = append(found, n.records.srv(owner, t.name, number))
		}
		if len(found) > before {
			additional = n.both(additional, t.name, t.addresses)
		}
	}
	return newAnswer(found, additional)
}

// numbersOf returns the distinct numbers of the ports that are wanted, in order.
func numbersOf(ports []port, wanted func(port) bool) []uint16 {
	var numbers []uint16
	for _, p := range ports {
		if wanted(p) {
			numbers = append(numbers, p.number)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
