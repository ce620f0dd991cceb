// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/miekg/dns"
)

// asked are the types that are asked for at each name.
var asked = []uint16{
	dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypeTXT, dns.TypePTR, dns.TypeNS, dns.TypeSOA, dns.TypeANY, dns.TypeHTTPS,
}

// questions returns all names that have a shape and their ancestors, each for all types, and mutations of them.
func (c *content) questions() []question {
	names := map[string]struct{}{strings.ToUpper(zone): {}, strings.ToUpper("ns.dns." + zone): {}}
	for _, name := range slices.Sorted(maps.Keys(c.shapes)) {
		for parent := name; dns.IsSubDomain(zone, parent); _, parent, _ = strings.Cut(parent, ".") {
			names[parent] = struct{}{}
		}
		for range 2 {
			if mutant := c.mutant(name); dns.IsSubDomain(zone, mutant) {
				names[mutant] = struct{}{}
			}
		}
	}
	var all []question
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, kind := range asked {
			all = append(all, question{name, kind})
		}
	}
	return all
}

// mutant returns a name that is near to another one, and may well exist.
func (c *content) mutant(name string) string {
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
		labels[i] = []string{"x", "_udp", "_dns", "west", "pod", "lost", "db-0"}[c.rand.IntN(7)]
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

// shape returns what a name is.
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
		if c.shapes[above] == "<address>.<namespace>.pod" {
			return "below <address>.<namespace>.pod"
		}
	}
	return noSuchName
}
