// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// MaxSRV is the maximum number of SRV records in an answer. It is more than a message can hold: a record has at least 19 octets and
// an uncompressed target (RFC 2782) that ends in ".svc.<zone>". So the cost of an answer is bounded, however many endpoints and ports
// a hostile cluster gives a service: the endpoints are sorted once (keptTargets), and their ports are never copied. Zone transfers
// have all records.
const MaxSRV = 2500

// target is the target of SRV records: a name, its addresses, and its ports as its slices list them. The lists are those of the
// slices, and must not be changed.
type target struct {
	name      string
	addresses Addresses
	ports     [][]port
}

// targets yields the targets of the service: itself, or each of its endpoints' names (spec N2, N3).
func (n *node) targets() iter.Seq[target] {
	return func(yield func(target) bool) {
		if !n.Headless() {
			yield(target{n.owner, n.ips, [][]port{n.ports}})
			return
		}
		for i := range n.clusters {
			for t := range n.targetsOf(i) {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// targetsOf yields the targets in one of the service's clusters.
func (n *node) targetsOf(i int) iter.Seq[target] {
	return func(yield func(target) bool) {
		for t := range n.clusters[i].targets() {
			t.name = n.hostName(t.name, n.clusters[i].id)
			if !yield(t) {
				return
			}
		}
	}
}

// targets yields the endpoints of a cluster by label, each label once: two endpoints may share a hostname, and an endpoint may be in
// two slices for a moment. The ports of a slice are listed once for a label.
func (c *cluster) targets() iter.Seq[target] {
	type end struct {
		label   string
		address netip.Addr
		of      int // the index of the slice in c.slices
	}
	return func(yield func(target) bool) {
		var ends []end
		for i, m := range c.slices {
			for a := range m.byIP.all() {
				ends = append(ends, end{addressLabel(a), a, i})
			}
			for _, e := range m.byName {
				ends = append(ends, end{e.hostname, e.address, i})
			}
		}
		slices.SortFunc(ends, func(a, b end) int { return cmp.Or(strings.Compare(a.label, b.label), cmp.Compare(a.of, b.of)) })
		for i := 0; i < len(ends); {
			t := target{name: ends[i].label}
			for first := i; i < len(ends) && ends[i].label == t.name; i++ {
				t.addresses.Add(ends[i].address)
				if i == first || ends[i].of != ends[i-1].of {
					t.ports = append(t.ports, c.slices[ends[i].of].ports)
				}
			}
			t.addresses.Sort()
			if !yield(t) {
				return
			}
		}
	}
}

// keptTargets yields the same as targets, and keeps those of the clusters that it reaches, because the answers for all ports use
// them.
func (n *node) keptTargets() iter.Seq[target] {
	if !n.Headless() {
		return n.targets()
	}
	return func(yield func(target) bool) {
		for i := range n.ends {
			kept := n.ends[i].get(func() *[]target {
				all := clipped(slices.Collect(n.targetsOf(i)))
				return &all
			})
			for _, t := range *kept {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// srvAnswer returns the SRV records for the selected ports of each list, one for each distinct target and port number, and the
// targets' addresses. These are omitted if there are more than a message can hold, because the section must be complete.
func (n *node) srvAnswer(owner string, wanted func([]port) []port) *Answer {
	var found, additional []dns.RR
	numbers, glue := numbers{wanted, map[*port][]uint16{}}, 0
	for t := range n.keptTargets() {
		list := numbers.of(t.ports)
		for _, number := range list[:min(len(list), MaxSRV-len(found))] {
			found = append(found, n.records.srv(owner, t.name, number))
		}
		if len(found) == MaxSRV {
			return newAnswer(found, nil)
		}
		if len(list) == 0 {
			continue
		}
		if glue += t.addresses.Size(); glue <= maxRecords {
			additional = n.both(additional, t.name, t.addresses)
		}
	}
	if glue > maxRecords {
		additional = nil
	}
	return newAnswer(found, additional)
}

// numbers returns the numbers of the selected ports. It reads each list once: all endpoints of a slice share one.
type numbers struct {
	wanted func([]port) []port
	known  map[*port][]uint16 // by the list's first port
}

// of returns the distinct numbers of the selected ports of some lists, in order.
func (n numbers) of(lists [][]port) []uint16 {
	if len(lists) == 1 {
		return n.ofList(lists[0])
	}
	var all []uint16
	for _, list := range lists {
		all = append(all, n.ofList(list)...)
	}
	return sortedNumbers(all)
}

func (n numbers) ofList(list []port) []uint16 {
	if len(list) == 0 {
		return nil
	}
	found, known := n.known[&list[0]]
	if !known {
		for _, p := range n.wanted(list) {
			found = append(found, p.number)
		}
		found = sortedNumbers(found)
		n.known[&list[0]] = found
	}
	return found
}

// sortedNumbers returns numbers in order and without duplicates.
func sortedNumbers(all []uint16) []uint16 {
	slices.Sort(all)
	return slices.Compact(all)
}
