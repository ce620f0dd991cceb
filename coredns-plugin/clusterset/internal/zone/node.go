// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"cmp"
	"sort"
	"strings"
	"sync"

	"github.com/miekg/dns"
)

// node is a service in a zone: "<service>.<namespace>.svc.<zone>" and all names below. The service is immutable. Answers and their
// parts are built at the first query, and kept. A change of the service creates a new node, which is cheap: a cluster may change its
// service all the time.
type node struct {
	*Service
	records
	owner string

	a, aaaa, srv lazy[Answer]
	named        lazy[[]namedPort] // in order
	ends         []lazy[[]target]  // of each cluster
}

// namedPort is the name "_<name>._<protocol>.<service>".
type namedPort struct {
	name, protocol string
	srv            lazy[Answer]
}

// lazy is a value that is built once, at its first use, however many queries need it at the same time.
type lazy[V any] struct {
	once  sync.Once
	value *V
}

func (l *lazy[V]) get(build func() *V) *V {
	l.once.Do(func() { l.value = build() })
	return l.value
}

// newNode returns the node of a service in a zone.
func newNode(s *Service, zone string, ttl uint32) *node {
	return &node{
		Service: s, records: records{ttl}, owner: string(s.key) + ".svc." + zone, ends: make([]lazy[[]target], len(s.clusters)),
	}
}

// namedPorts returns the names of the service's ports.
func (n *node) namedPorts() []namedPort {
	return *n.named.get(func() *[]namedPort {
		var named []port
		for p := range n.allPorts() {
			if p.name != "" {
				p.number = 0
				named = append(named, p)
			}
		}
		named = sortedPorts(named)
		ports := make([]namedPort, len(named))
		for i, p := range named {
			ports[i].name, ports[i].protocol = p.name, p.protocol
		}
		return &ports
	})
}

// find returns the answer for a name, which is "<below><owner>", and nil for NODATA. It reports false if the name does not exist: it
// has no record and no name below it (RFC 8020).
func (n *node) find(name, below string, qtype uint16) (*Answer, bool) {
	if below == "" {
		return n.self(qtype), true
	}
	first, second, two := strings.Cut(strings.TrimSuffix(below, "."), ".")
	if !two {
		return nil, n.isParent(first)
	}
	if strings.Contains(second, ".") {
		return nil, false
	}
	if port, ok := strings.CutPrefix(first, "_"); ok {
		if protocol, ok := strings.CutPrefix(second, "_"); ok {
			return n.port(port, protocol, qtype)
		}
	}
	if c := n.cluster(second); c != nil {
		return n.host(name, c.host(first), qtype)
	}
	return nil, false
}

// self returns the answer for the service's own name.
func (n *node) self(qtype uint16) *Answer {
	switch qtype {
	case dns.TypeA:
		return n.a.get(func() *Answer { return newAnswer(n.records.a(nil, n.owner, n.addresses()), nil) })
	case dns.TypeAAAA:
		return n.aaaa.get(func() *Answer { return newAnswer(n.records.aaaa(nil, n.owner, n.addresses()), nil) })
	case dns.TypeSRV:
		return n.srv.get(func() *Answer { return n.srvAnswer(n.owner, everyPort) })
	case dns.TypeANY: // one RRset is sufficient (RFC 8482, section 4.1)
		if a := n.self(dns.TypeA); a.Count > 0 {
			return a
		}
		return n.self(dns.TypeAAAA)
	}
	return nil
}

// isParent reports whether "_<protocol>" or "<cluster>" has names below it. They have no records (spec N5).
func (n *node) isParent(label string) bool {
	if protocol, ok := strings.CutPrefix(label, "_"); ok {
		ports := n.namedPorts()
		for i := range ports {
			if ports[i].protocol == protocol {
				return true
			}
		}
		return false
	}
	return n.cluster(label) != nil
}

// port returns the answer for the name of a port.
func (n *node) port(name, protocol string, qtype uint16) (*Answer, bool) {
	ports := n.namedPorts()
	i, found := sort.Find(len(ports), func(i int) int {
		return cmp.Or(strings.Compare(name, ports[i].name), strings.Compare(protocol, ports[i].protocol))
	})
	if !found {
		return nil, false
	}
	if qtype != dns.TypeSRV && qtype != dns.TypeANY {
		return nil, true
	}
	p := &ports[i]
	if len(ports)*n.Endpoints() > maxKept {
		return n.portAnswer(p), true
	}
	return p.srv.get(func() *Answer { return n.portAnswer(p) }), true
}

// maxKept is the number of SRV records at the names of ports that are kept for a service (50 MB). Above it, they are built for each
// query.
const maxKept = 1 << 18

func (n *node) portAnswer(p *namedPort) *Answer {
	owner := "_" + p.name + "._" + p.protocol + "." + n.owner
	return n.srvAnswer(owner, portsNamed(p.name, p.protocol))
}

// host returns the answer for the name of an endpoint with these addresses. Such answers are not kept: they are small, many, and
// rarely queried.
func (n *node) host(owner string, set Addresses, qtype uint16) (*Answer, bool) {
	switch {
	case set.Size() == 0:
		return nil, false
	case qtype == dns.TypeA, qtype == dns.TypeANY && len(set.v4) > 0:
		return newAnswer(n.records.a(nil, owner, set), nil), true
	case qtype == dns.TypeAAAA, qtype == dns.TypeANY:
		return newAnswer(n.records.aaaa(nil, owner, set), nil), true
	}
	return nil, true
}

func (n *node) hostName(label, id string) string { return label + "." + id + "." + n.owner }
