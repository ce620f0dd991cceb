// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package zone is the DNS plugin without its connections: API objects are decoded to records, records are merged to services, and a zone
// has the answers for its services.
package zone

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

const (
	dnsVersion    = "1.0.0" // of the Multi-Cluster DNS specification (spec N1)
	dnsVersionTTL = 28800
)

// Zone has the answers for one zone: its own records, and the services in it.
type Zone struct {
	Name      string // absolute, lower case
	ttl       uint32
	services  *directory
	serial    *serial
	authority atomic.Pointer[authority]

	ns, glue4, glue6, version *Answer
}

// authority is the SOA record at a serial number.
type authority struct {
	serial uint32
	answer *Answer
}

// New returns the zone without services. The addresses are those of this server.
func New(name string, ttl uint32, local Addresses) *Zone {
	z := &Zone{Name: name, ttl: ttl, services: newDirectory(), serial: serialOf(name)}
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

// Contains reports whether a name, in lower case, is the zone's or below it.
func (z *Zone) Contains(name string) bool {
	below, ok := strings.CutSuffix(name, z.Name)
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

// Find returns the answer for a name that the zone contains, in lower case, and nil for NODATA. It reports false if the name does not
// exist.
func (z *Zone) Find(name string, qtype uint16) (*Answer, bool) {
	path := strings.TrimSuffix(name[:len(name)-len(z.Name)], ".")
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
func lastTwo(path string) (before string, labels ServiceKey) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", ServiceKey(path)
	}
	i = strings.LastIndexByte(path[:i], '.')
	return path[:i+1], ServiceKey(path[i+1:])
}

// apex returns the answer for the zone's own name.
func (z *Zone) apex(qtype uint16) *Answer {
	switch qtype {
	case dns.TypeSOA, dns.TypeANY: // one RRset is sufficient (RFC 8482, section 4.1)
		return z.SOA()
	case dns.TypeNS:
		return z.ns
	}
	return nil
}

// ofType returns the first answer with records of this type, nil if there is none.
func ofType(qtype uint16, answers ...*Answer) *Answer {
	for _, a := range answers {
		if a.Count > 0 && (qtype == dns.TypeANY || qtype == a.records[0].Header().Rrtype) {
			return a
		}
	}
	return nil
}

// SOA returns the SOA record at the current serial number.
func (z *Zone) SOA() *Answer {
	current := z.serial.load()
	if known := z.authority.Load(); known != nil && known.serial == current {
		return known.answer
	}
	made := newAnswer([]dns.RR{&dns.SOA{
		Hdr: records{z.ttl}.header(z.Name, dns.TypeSOA), Ns: "ns.dns." + z.Name, Mbox: "hostmaster." + z.Name, Serial: current,
		Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: z.ttl,
	}}, nil)
	z.authority.Store(&authority{current, made})
	return made
}

// Publish puts the services that changed into the zone, and then increases the serial number, so that a client that reads the
// number finds the change. It returns how long the next change must wait.
func (z *Zone) Publish(changes map[ServiceKey]*Service, now time.Time) time.Duration {
	if len(changes) == 0 && z.serial.load() != 0 {
		return 0
	}
	nodes := make(map[ServiceKey]*node, len(changes))
	for key, s := range changes {
		nodes[key] = nil
		if s != nil {
			nodes[key] = newNode(s, z.Name, z.ttl)
		}
	}
	z.services.publish(nodes)
	return z.serial.advance(now)
}
