// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"strings"
	"sync/atomic"

	"github.com/miekg/dns"
)

const (
	dnsVersion    = "1.0.0" // of the Multi-Cluster DNS specification (spec N1)
	dnsVersionTTL = 28800
)

// zone has the answers for one zone: its own records, and the services in it.
type zone struct {
	name      string // absolute, lower case
	ttl       uint32
	services  *directory
	serial    *serial
	authority atomic.Pointer[authority]

	ns, glue4, glue6, version *answer
}

// authority is the SOA record at a serial number.
type authority struct {
	serial uint32
	answer *answer
}

// newZone returns the zone without services. The addresses are those of this server.
func newZone(name string, ttl uint32, local addresses) *zone {
	z := &zone{name: name, ttl: ttl, services: newDirectory(), serial: serialOf(name)}
	r := records{ttl}
	server := "ns.dns." + name
	z.ns = newAnswer([]dns.RR{&dns.NS{Hdr: r.header(name, dns.TypeNS), Ns: server}}, r.both(nil, server, local))
	z.glue4 = newAnswer(r.a(nil, server, local), nil)
	z.glue6 = newAnswer(r.aaaa(nil, server, local), nil)
	z.version = newAnswer([]dns.RR{&dns.TXT{
		Hdr: records{dnsVersionTTL}.header("dns-version."+name, dns.TypeTXT), Txt: []string{dnsVersion},
	}}, nil)
	return z
}

// contains reports whether a name, in lower case, is the zone's or below it.
func (z *zone) contains(name string) bool {
	below, ok := strings.CutSuffix(name, z.name)
	if !ok || below == "" {
		return ok
	}
	if below[len(below)-1] != '.' {
		return false
	}
	// A dot behind an odd number of backslashes is part of a label (RFC 1035, section 5.1).
	label := strings.TrimRight(below[:len(below)-1], `\`)
	return (len(below)-1-len(label))%2 == 0
}

// find returns the answer for a name that the zone contains, in lower case, and nil for NODATA. It reports false if the name does not
// exist.
func (z *zone) find(name string, qtype uint16) (*answer, bool) {
	path := strings.TrimSuffix(name[:len(name)-len(z.name)], ".")
	switch path {
	case "":
		return z.apex(qtype), true
	case "svc", "dns":
		return nil, true
	case "ns.dns":
		return ofType(qtype, z.glue4, z.glue6), true
	case "dns-version":
		return ofType(qtype, z.version), true
	}
	path, ok := strings.CutSuffix(path, ".svc")
	if !ok {
		return nil, false
	}
	below, key := lastTwo(path)
	if !strings.Contains(string(key), ".") {
		return nil, z.services.hasNamespace(string(key))
	}
	n := z.services.node(key)
	if n == nil {
		return nil, false
	}
	return n.find(name, below, qtype)
}

// lastTwo cuts a name before its last two labels.
func lastTwo(path string) (before string, labels serviceKey) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", serviceKey(path)
	}
	i = strings.LastIndexByte(path[:i], '.')
	return path[:i+1], serviceKey(path[i+1:])
}

// apex returns the answer for the zone's own name.
func (z *zone) apex(qtype uint16) *answer {
	switch qtype {
	case dns.TypeSOA, dns.TypeANY: // one RRset is sufficient (RFC 8482, section 4.1)
		return z.soa()
	case dns.TypeNS:
		return z.ns
	}
	return nil
}

// ofType returns the first answer with records of this type, nil if there is none.
func ofType(qtype uint16, answers ...*answer) *answer {
	for _, a := range answers {
		if a.count > 0 && (qtype == dns.TypeANY || qtype == a.records[0].Header().Rrtype) {
			return a
		}
	}
	return nil
}

// soa returns the SOA record at the current serial number.
func (z *zone) soa() *answer {
	current := z.serial.load()
	if known := z.authority.Load(); known != nil && known.serial == current {
		return known.answer
	}
	made := newAnswer([]dns.RR{&dns.SOA{
		Hdr: records{z.ttl}.header(z.name, dns.TypeSOA), Ns: "ns.dns." + z.name, Mbox: "hostmaster." + z.name, Serial: current,
		Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: z.ttl,
	}}, nil)
	z.authority.Store(&authority{current, made})
	return made
}
