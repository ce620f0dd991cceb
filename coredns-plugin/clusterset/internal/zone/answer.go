// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"math/rand/v2"

	"github.com/miekg/dns"
)

// Answer is an RRset with the records of its additional section. It is immutable and shared by all queries: a record must be
// copied before it is changed.
type Answer struct {
	records    []dns.RR // the RRset twice, so that each rotation is a subslice
	Additional []dns.RR
	Count      int // records in the RRset
	packed     int // octets of the message without OPT, names compressed
	plain      int // the same, names not compressed
}

// compressible is the size up to which a name can be the target of a compression pointer (RFC 1035, section 4.1.4).
// Beyond it, the packed size of a message depends on the order of its records.
const compressible = 1 << 14

// maxRecords is more than the records that a message of 64 KB can hold: each has at least 16 octets (RFC 1035, section 4.1).
const maxRecords = 1 << 12

// newAnswer returns the answer with these records, which all have the same owner and type.
func newAnswer(records, additional []dns.RR) *Answer {
	a := &Answer{Count: len(records), Additional: clipped(additional)}
	if len(records) == 0 {
		return a
	}
	a.records = clipped(records)
	if len(records) > 1 {
		a.records = append(append(make([]dns.RR, 0, 2*len(records)), records...), records...)
	}
	if len(additional) > 0 {
		h := records[0].Header()
		m := dns.Msg{Question: []dns.Question{{Name: h.Name, Qtype: h.Rrtype, Qclass: h.Class}}, Answer: records, Extra: additional}
		a.plain = m.Len()
		m.Compress = true
		a.packed = m.Len()
	}
	return a
}

// RRset returns the RRset in its fixed order.
func (a *Answer) RRset() []dns.RR { return a.records[:a.Count:a.Count] }

// Rotated returns the RRset, starting at a random record: clients that use the first record, and truncated answers, are spread
// over all records. If there are more records than a message can hold, it returns just more than fit.
func (a *Answer) Rotated() []dns.RR {
	begin := 0
	if a.Count > 1 {
		begin = rand.IntN(a.Count)
	}
	end := begin + min(a.Count, maxRecords)
	return a.records[begin:end:end]
}

// Fits reports whether a message with the additional section has at most size octets. If not, the section must be omitted, without
// TC (RFC 2181, section 9).
func (a *Answer) Fits(size int) bool {
	if size >= compressible {
		return a.plain <= size
	}
	return a.packed <= size
}

// Owned returns copies of records, with this owner: the question's name in the question's own case.
func Owned(records []dns.RR, owner string) []dns.RR {
	copies := make([]dns.RR, len(records))
	for i, record := range records {
		copies[i] = dns.Copy(record)
		copies[i].Header().Name = owner
	}
	return copies
}

// records builds the records of one zone.
type records struct {
	ttl uint32
}

func (r records) header(owner string, rrtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: rrtype, Class: dns.ClassINET, Ttl: r.ttl}
}

// a appends an A record for each IPv4 address. The records are in one allocation and share the addresses' bytes.
func (r records) a(to []dns.RR, owner string, set Addresses) []dns.RR {
	all := make([]dns.A, len(set.v4))
	for i := range set.v4 {
		all[i] = dns.A{Hdr: r.header(owner, dns.TypeA), A: ip4(&set.v4[i])}
		to = append(to, &all[i])
	}
	return to
}

// aaaa appends an AAAA record for each IPv6 address.
func (r records) aaaa(to []dns.RR, owner string, set Addresses) []dns.RR {
	all := make([]dns.AAAA, len(set.v6))
	for i := range set.v6 {
		all[i] = dns.AAAA{Hdr: r.header(owner, dns.TypeAAAA), AAAA: ip6(&set.v6[i])}
		to = append(to, &all[i])
	}
	return to
}

// both appends the A and AAAA records of an owner.
func (r records) both(to []dns.RR, owner string, set Addresses) []dns.RR {
	return r.aaaa(r.a(to, owner, set), owner, set)
}

// srvWeight is that of every SRV record; the priority is 0. Equal weights share the load equally (RFC 2782), and a fixed one does
// not change the records of other endpoints if one is added or removed.
const srvWeight = 100

func (r records) srv(owner, target string, number uint16) *dns.SRV {
	return &dns.SRV{Hdr: r.header(owner, dns.TypeSRV), Weight: srvWeight, Port: number, Target: target}
}
