// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/transfer"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// anything draws the objects of a cluster: few names, so that they are often equal, and many invalid values.
func anything(t *rapid.T) []any {
	var objects []any
	for range rapid.IntRange(2, 8).Draw(t, "imports") {
		namespace := rapid.SampledFrom([]string{"n1", "n1", "n2"}).Draw(t, "namespace")
		o := clusterSetIP(namespace, rapid.SampledFrom([]string{"a", "a", "b", "svc"}).Draw(t, "name"),
			rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2", "none", "::ffff:1.2.3.4"}), 0, 2).Draw(t, "ips"))
		if rapid.Bool().Draw(t, "headless") {
			o = headless(namespace, o.Name)
		}
		for range rapid.IntRange(0, 4).Draw(t, "ports") {
			o.Spec.Ports = append(o.Spec.Ports, servicePort(portName(t), protocol(t), number(t)))
		}
		if !slices.ContainsFunc(objects, func(other any) bool {
			known := other.(*v1beta1.ServiceImport)
			return known.Namespace == o.Namespace && known.Name == o.Name
		}) {
			objects = append(objects, o)
		}
	}
	for i := range rapid.IntRange(2, 8).Draw(t, "slices") {
		objects = append(objects, anySlice(t, i))
	}
	return objects
}

func anySlice(t *rapid.T, i int) *discoveryv1.EndpointSlice {
	var ends []discoveryv1.Endpoint
	v6 := rapid.Bool().Draw(t, "v6")
	for range rapid.IntRange(1, 4).Draw(t, "endpoints") {
		address := fmt.Sprintf("10.1.0.%d", rapid.IntRange(1, 4).Draw(t, "address"))
		if v6 {
			address = rapid.SampledFrom([]string{"fd00::", "fd00::1", "::1", "fd00:0:0::2"}).Draw(t, "address")
		}
		e := end(address)
		e.Conditions.Ready = rapid.SampledFrom([]*bool{nil, ptr.To(true), ptr.To(false)}).Draw(t, "ready")
		if h := rapid.SampledFrom([]string{"", "", "h-0", "h-0", "10-1-0-1", "No.Label", "_tcp"}).Draw(t, "hostname"); h != "" {
			e.Hostname = &h
		}
		ends = append(ends, e)
	}
	s := slice(fmt.Sprintf("%s/%s/%d", rapid.SampledFrom([]string{"n1", "n1", "n2"}).Draw(t, "namespace"), rapid.SampledFrom([]string{"a", "a", "b", "svc"}).Draw(t, "service"), i),
		rapid.SampledFrom([]string{"east", "east", "west", "west", "", "Not-Legal", "x.y"}).Draw(t, "cluster"), nil, ends...)
	for range rapid.IntRange(0, 4).Draw(t, "ports") {
		s.Ports = append(s.Ports, slicePort(portName(t), protocol(t), number(t)))
	}
	return s
}

func portName(t *rapid.T) string {
	return rapid.SampledFrom([]string{"http", "HTTP", "dns", "", "a.b", strings.Repeat("p", 63)}).Draw(t, "port")
}

func protocol(t *rapid.T) corev1.Protocol {
	return rapid.SampledFrom([]corev1.Protocol{"TCP", "TCP", "UDP", "", "ICMP"}).Draw(t, "protocol")
}

func number(t *rapid.T) int32 {
	return rapid.SampledFrom([]int32{80, 80, 81, 53, 0, 70000}).Draw(t, "number")
}

// transferred returns all records of the zone, as the transfer plugin gets them.
func (w *world) transferred() []dns.RR {
	w.t.Helper()
	out, err := w.cs.Transfer(testZone, 0)
	check.Must(w.t, err)
	var all []dns.RR
	for batch := range out {
		all = append(all, batch...)
	}
	return all
}

// whole returns the zone as text: each record but the SOA, and each refusal.
func (w *world) whole() []string {
	var texts []string
	for _, r := range w.transferred() {
		if r.Header().Rrtype != dns.TypeSOA {
			texts = append(texts, recordText(r))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(w.w.watcher.feeds[kindImport].table.refusals())) {
		if n := w.w.watcher.feeds[kindImport].table.refusals()[reason]; n != 0 {
			texts = append(texts, fmt.Sprint(reason, " ", n))
		}
	}
	slices.Sort(texts)
	return texts
}

// A transfer has the records that queries find, for each name and type; every ancestor of a name exists, every SRV target has an
// address, and no record occurs twice.
//
// spec: N2, N3, N4, N5, N6
func TestTransferEqualsAskingEveryName(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, options{}, anything(rt)...)
		listed := map[string][]string{}
		exists := map[string]bool{}
		for _, r := range w.transferred() {
			h := r.Header()
			if h.Rrtype == dns.TypeSOA {
				continue
			}
			key := h.Name + " " + dns.TypeToString[h.Rrtype]
			listed[key] = append(listed[key], recordText(r))
			for name := h.Name; len(name) >= len(testZone); _, name, _ = strings.Cut(name, ".") {
				exists[name] = true
			}
			if srv, ok := r.(*dns.SRV); ok {
				if len(w.ask(srv.Target, dns.TypeA).Answer)+len(w.ask(srv.Target, dns.TypeAAAA).Answer) == 0 {
					rt.Errorf("%s has no address", srv.Target)
				}
			}
		}
		for key, texts := range listed {
			slices.Sort(texts)
			check.Equal(rt, key+" without repeated records", slices.Compact(slices.Clone(texts)), texts)
		}
		for name := range exists {
			for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypeTXT, dns.TypeNS, dns.TypeMX} {
				reply := w.ask(name, qtype)
				var got []string
				for _, r := range reply.Answer {
					got = append(got, recordText(r))
				}
				slices.Sort(got)
				key := name + " " + dns.TypeToString[qtype]
				check.Equal(rt, key+": rcode", dns.RcodeSuccess, reply.Rcode)
				check.Equal(rt, key+", as listed (want) and as asked", listed[key], got)
			}
		}
		for _, below := range []string{"x", "_tcp", "_http._tcp", "east", "h-0.east", "10-1-0-1.west", "fd00--1.east"} {
			for name := range maps.Clone(exists) {
				if deeper := below + "." + name; !exists[deeper] && dns.CountLabel(deeper) < 12 && deeper != "svc."+testZone {
					check.Equal(rt, deeper+", which is not listed", nxdomain, text(w.ask(deeper, dns.TypeA)))
				}
			}
		}
	})
}

// The zone does not depend on the order of events, on repeated events, and on earlier states.
func TestAnyOrderEndsInTheSameZone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		objects := anything(rt)
		want := newWorld(t, options{}, objects...).whole()
		w := newWorld(t, options{}, anything(rt)...) // an earlier state, a part of which is still in the list
		w.list(objects[:rapid.IntRange(0, len(objects)).Draw(rt, "known")]...)
		for _, i := range rapid.Permutation(objects).Draw(rt, "order") {
			if rapid.Bool().Draw(rt, "flap") {
				w.update(i)
				w.remove(i)
			}
			w.update(i)
			if rapid.Bool().Draw(rt, "publish") {
				w.publish()
			}
		}
		w.publish()
		check.Equal(rt, "zone that was listed at once (want) and bit by bit (got)", want, w.whole())
	})
}

// A name exists for all types or for none, and so do its ancestors; no name exists below one that does not exist (RFC 8020). The case
// of a query changes the owner of the answer, and nothing else.
//
// spec: N6
func TestNamesExistForAllTypesInAnyCase(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, options{}, anything(rt)...)
		listed := w.transferred()
		for range 10 {
			name := similar(rt, listed[rapid.IntRange(0, len(listed)-1).Draw(rt, "record")].Header().Name)
			mixed := inMixedCase(rt, name)
			code := w.ask(name, dns.TypeA).Rcode
			for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypeTXT, dns.TypeNS, dns.TypeSOA, dns.TypeANY, dns.TypeHTTPS} {
				lower, reply, again := w.ask(name, qtype), w.ask(mixed, qtype), w.ask(name, qtype)
				check.Equal(rt, fmt.Sprintf("%s: rcode for A (want) and for %s", name, dns.TypeToString[qtype]), code, lower.Rcode)
				for _, r := range reply.Answer {
					check.Equal(rt, "owner", mixed, r.Header().Name)
					r.Header().Name = name
				}
				check.Equal(rt, mixed+", in lower case (want) and mixed", text(lower), text(reply))
				check.Equal(rt, fmt.Sprintf("records of %s, which %s shares", name, mixed), text(lower), text(again))
			}
			if code == dns.RcodeNameError {
				for _, label := range []string{"x", "_tcp", "east", "a", "10-1-0-1"} {
					check.Equal(rt, fmt.Sprintf("%s, below %s, which does not exist", label, name), nxdomain, text(w.ask(label+"."+name, dns.TypeA)))
				}
				continue
			}
			for parent := name; dns.IsSubDomain(testZone, parent); _, parent, _ = strings.Cut(parent, ".") {
				check.Equal(rt, fmt.Sprintf("%s exists, and %s has rcode", name, parent), dns.RcodeSuccess, w.ask(parent, dns.TypeAAAA).Rcode)
			}
		}
	})
}

// similar draws a name in the zone: this one, or one above, below or beside it.
func similar(t *rapid.T, name string) string {
	labels := strings.Split(strings.TrimSuffix(strings.TrimSuffix(name, testZone), "."), ".")
	if labels[0] == "" {
		labels = nil
	}
	label := rapid.SampledFrom([]string{"x", "_tcp", "_udp", "_http", "east", "west", "h-0", "a", "b", "n1", "svc", "10-1-0-1", "fd00--1"}).Draw(t, "label")
	at := rapid.IntRange(0, len(labels)).Draw(t, "at")
	switch rapid.IntRange(0, 3).Draw(t, "mutation") {
	case 0:
		labels = labels[at:]
	case 1:
		if len(strings.Join(labels, "."))+len(label)+len(testZone) < 200 {
			labels = slices.Insert(labels, at, label)
		}
	case 2:
		labels = append(slices.Clone(labels[:at]), append([]string{label}, labels[min(at+1, len(labels)):]...)...)
	}
	return strings.Join(append(labels, testZone), ".")
}

// inMixedCase draws the case of each letter of a name.
func inMixedCase(t *rapid.T, name string) string {
	upper := rapid.SliceOfN(rapid.Bool(), len(name), len(name)).Draw(t, "upper")
	mixed := []byte(name)
	for i := range mixed {
		if upper[i] {
			mixed[i] = strings.ToUpper(string(mixed[i]))[0]
		}
	}
	return string(mixed)
}

func TestTransferOfOthers(t *testing.T) {
	w := unsynced(t, options{})
	if _, err := w.cs.Transfer(testZone, 0); !errors.Is(err, errUnsynced) {
		t.Errorf("unsynced: %v", err)
	}
	w.list()
	w.publish()
	for _, zone := range []string{"cluster.local.", "svc.clusterset.local."} {
		if _, err := w.cs.Transfer(zone, 0); !errors.Is(err, transfer.ErrNotAuthoritative) {
			t.Errorf("%s: %v", zone, err)
		}
	}
	serial := w.serial()
	for known, want := range map[uint32]string{0: "all", serial - 1: "all", serial: "SOA", serial + 1: "SOA"} {
		out, err := w.cs.Transfer("ClusterSet.local.", known)
		check.Must(t, err)
		records := 0
		for batch := range out {
			records += len(batch)
		}
		got := map[bool]string{true: "SOA", false: "all"}[records == 1]
		check.Equal(t, fmt.Sprintf("to a secondary at %d of %d, in %d records", known, serial, records), want, got)
	}
}

// The reply to any query is well-formed, equal to that to the same query in lower case, and does not deny a name with names below it.
func FuzzQuestion(f *testing.F) {
	for _, name := range []string{
		"web.shop.svc.clusterset.local.", "_http._tcp.db.shop.svc.clusterset.local.", "db-0.east.db.shop.svc.clusterset.local.",
		"fd00-1--0.east.db.shop.svc.clusterset.local.", "ns.dns.clusterset.local.", ".", `\.clusterset.local.`, "10-1-0-2.east.db.shop.svc.clusterset.local.",
	} {
		f.Add(name, dns.TypeA, uint16(512))
	}
	w := shop(f)
	w.cs.Next = next
	f.Fuzz(func(t *testing.T, name string, qtype, size uint16) {
		if _, ok := dns.IsDomainName(name); !ok || name == "" || qtype == dns.TypeAXFR || qtype == dns.TypeIXFR {
			return
		}
		m := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype).SetEdns0(size, false)
		packed, err := m.Pack()
		if err != nil || m.Unpack(packed) != nil {
			return // it cannot be sent
		}
		w.t = t
		reply := w.send(m, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1)})
		if reply.Rcode == dns.RcodeYXDomain {
			return // another plugin's
		}
		lower := new(dns.Msg).SetQuestion(strings.ToLower(m.Question[0].Name), qtype)
		again := w.send(lower, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)})
		check.Equal(t, name+": rcode in lower case (want) and as it is", again.Rcode, reply.Rcode)
		if len(reply.Answer) == 0 && !reply.Truncated && len(reply.Ns) != 1 {
			t.Errorf("%s: neither an answer nor an SOA record:\n%s", name, reply)
		}
		for _, r := range reply.Answer {
			check.Equal(t, "owner", m.Question[0].Name, r.Header().Name)
		}
		if reply.Rcode == dns.RcodeSuccess {
			for parent := lower.Question[0].Name; parent != testZone; _, parent, _ = strings.Cut(parent, ".") {
				check.Equal(t, fmt.Sprintf("%s exists, and %s has rcode", name, parent), dns.RcodeSuccess, w.ask(parent, dns.TypeA).Rcode)
			}
		}
	})
}
