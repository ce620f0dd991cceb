// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"bytes"
	"iter"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Addresses is a sorted set of IP addresses, of 4 or 16 bytes each. Callers of Sort do not change it afterwards.
type Addresses struct {
	v4 [][4]byte
	v6 [][16]byte
}

// Add adds an address. The set is not in order until Sort is called.
func (s *Addresses) Add(a netip.Addr) {
	if a.Is4() {
		s.v4 = append(s.v4, a.As4())
		return
	}
	s.v6 = append(s.v6, a.As16())
}

// merge adds the addresses of another set. The set is not in order until Sort is called.
func (s *Addresses) merge(other Addresses) {
	s.v4 = append(s.v4, other.v4...)
	s.v6 = append(s.v6, other.v6...)
}

// Sort sorts the set, removes duplicates and releases unused memory.
func (s *Addresses) Sort() {
	slices.SortFunc(s.v4, func(a, b [4]byte) int { return bytes.Compare(a[:], b[:]) })
	slices.SortFunc(s.v6, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	s.v4 = clipped(slices.Compact(s.v4))
	s.v6 = clipped(slices.Compact(s.v6))
}

func clipped[A any](s []A) []A {
	if len(s) == cap(s) {
		return s
	}
	return append(make([]A, 0, len(s)), s...)
}

// Size returns the number of addresses.
func (s *Addresses) Size() int { return len(s.v4) + len(s.v6) }

// all yields the addresses, IPv4 first.
func (s *Addresses) all() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, a := range s.v4 {
			if !yield(netip.AddrFrom4(a)) {
				return
			}
		}
		for _, a := range s.v6 {
			if !yield(netip.AddrFrom16(a)) {
				return
			}
		}
	}
}

// contains reports whether an address is in the set, which must be sorted.
func (s *Addresses) contains(a netip.Addr) bool {
	if a.Is4() {
		_, found := slices.BinarySearchFunc(s.v4, a.As4(), func(x, y [4]byte) int { return bytes.Compare(x[:], y[:]) })
		return found
	}
	_, found := slices.BinarySearchFunc(s.v6, a.As16(), func(x, y [16]byte) int { return bytes.Compare(x[:], y[:]) })
	return found
}

// parseAddress returns an address of an API object. It reports false for an invalid address, one with a scope zone, and an
// IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2), which must not be in an AAAA record.
func parseAddress(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		return netip.Addr{}, false
	}
	return a, true
}

// addressLabel returns the label of an endpoint without a hostname: its address, not expanded, with dashes for dots and
// colons. An IPv6 address that ends in "::" gets a 0, because no label may end in a dash (spec N3).
func addressLabel(a netip.Addr) string { return string(appendLabel(nil, a)) }

func appendLabel(to []byte, a netip.Addr) []byte {
	label := a.AppendTo(to)
	for i, c := range label {
		if c == '.' || c == ':' {
			label[i] = '-'
		}
	}
	if label[len(label)-1] == '-' {
		return append(label, '0')
	}
	return label
}

// maxLabel is the length of the longest addressLabel: eight groups of four digits.
const maxLabel = 8*4 + 7

// labelAddress returns the address whose addressLabel is label. It reports false if there is none. It does not allocate memory:
// most labels of endpoints are hostnames.
func labelAddress(label string) (netip.Addr, bool) {
	hyphens := strings.Count(label, "-")
	if len(label) > maxLabel || hyphens < 2 || strings.Trim(label, "0123456789abcdef-") != "" {
		return netip.Addr{}, false
	}
	for _, separator := range []byte{'.', ':'} {
		if separator == '.' && hyphens != 3 {
			continue
		}
		var text, again [maxLabel + 1]byte
		for i := range len(label) {
			text[i] = label[i]
			if label[i] == '-' {
				text[i] = separator
			}
		}
		a, err := netip.ParseAddr(string(text[:len(label)]))
		if err == nil && string(appendLabel(again[:0], a)) == label {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// ip4 and ip6 return the bytes of an address, not a copy: they must not be changed.
func ip4(a *[4]byte) net.IP  { return a[:] }
func ip6(a *[16]byte) net.IP { return a[:] }
