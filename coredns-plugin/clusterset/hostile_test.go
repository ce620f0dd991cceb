// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// octets returns how much memory a function allocates.
func octets(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// spread is a headless service, db.shop, in slices of 10 endpoints. Each slice has the ports "p-0", "p-1" and so on, and a port
// "odd" with a unique number.
type spread struct {
	slices, ports int
	hostname      string // of all endpoints; empty if they have none
}

func (s spread) world(t testing.TB) *world {
	objects := []any{headless("shop", "db")}
	for i := range s.slices {
		objects = append(objects, s.slice(i))
	}
	return newWorld(t, options{}, objects...)
}

func (s spread) slice(i int) *discoveryv1.EndpointSlice {
	ports := []discoveryv1.EndpointPort{slicePort("odd", "TCP", int32(10_000+i))}
	for j := range s.ports {
		ports = append(ports, slicePort(fmt.Sprintf("p-%d", j), "TCP", int32(1+j)))
	}
	var ends []discoveryv1.Endpoint
	for j := range 10 {
		address := fmt.Sprintf("10.%d.%d.%d", i>>8, i&255, j)
		if s.hostname == "" {
			ends = append(ends, end(address))
			continue
		}
		ends = append(ends, host(s.hostname, address))
	}
	return slice(fmt.Sprintf("shop/db/%04d", i), "east", ports, ends...)
}

// If all endpoints of all slices have one hostname, they are one target: each of its ports is listed once, and an answer costs no
// more memory than its records.
//
// spec: N3, N4
func TestOneHostnameInManySlices(t *testing.T) {
	const most = 4 << 20
	s := spread{slices: 200, ports: 20, hostname: "x"}
	w := s.world(t)
	for question, want := range map[string]int{
		"db.shop.svc.clusterset.local.":           20 + 200,
		"_p-7._tcp.db.shop.svc.clusterset.local.": 1,
		"_odd._tcp.db.shop.svc.clusterset.local.": 200,
	} {
		var found *zone.Answer
		if cost := octets(func() { found, _ = w.cs.zones[0].Find(question, dns.TypeSRV) }); cost > most {
			t.Errorf("%s: %d octets allocated", question, cost)
		}
		if found == nil || found.Count != want || len(found.Additional) != 2000 {
			t.Errorf("%s: %+v, want %d records and 2000 addresses", question, found, want)
			continue
		}
		for i, r := range found.RRset() {
			if srv := r.(*dns.SRV); srv.Target != "x.east.db.shop.svc.clusterset.local." || (i > 0 && srv.Port <= found.RRset()[i-1].(*dns.SRV).Port) {
				t.Errorf("%s: record %d is %v", question, i, srv)
			}
		}
	}
	srv := 0
	if cost := octets(func() {
		for _, r := range w.transferred() {
			if r.Header().Rrtype == dns.TypeSRV {
				srv++
			}
		}
	}); cost > most {
		t.Errorf("a transfer: %d octets allocated", cost)
	}
	check.Equal(t, "SRV records of a transfer", 2*(20+200), srv)
}

// If there are too many answers to keep, building one again does not sort all endpoints again.
func TestAnswersThatAreNotKept(t *testing.T) {
	w := spread{slices: 1000, ports: 30}.world(t)
	const question = "_p-7._tcp.db.shop.svc.clusterset.local."
	ask := func() *zone.Answer {
		found, _ := w.cs.zones[0].Find(question, dns.TypeSRV)
		return found
	}
	if first := ask(); first.Count != zone.MaxSRV || first == ask() {
		t.Fatalf("%d records, or the answer is kept", first.Count)
	}
	if got := testing.AllocsPerRun(3, func() { ask() }); got > 4*zone.MaxSRV {
		t.Errorf("%.0f allocations for %d records of 10,000", got, zone.MaxSRV)
	}
}

// If there are more records than a message can hold, an answer has just more than fit, and no additional section.
func TestMoreRecordsThanAMessageHolds(t *testing.T) {
	w := spread{slices: 500, hostname: "x"}.world(t)
	first := map[string]bool{}
	for range 10 {
		found, _ := w.cs.zones[0].Find("db.shop.svc.clusterset.local.", dns.TypeA)
		shown := found.Rotated()
		if found.Count != 5000 || len(shown) != 1<<12 || cap(shown) != 1<<12 {
			t.Fatalf("%d of %d records, room for %d", len(shown), found.Count, cap(shown))
		}
		first[shown[0].String()] = true
	}
	check.Equal(t, "each answer starts with the same record", false, len(first) == 1)
	if reply := w.ask("db.shop.svc.clusterset.local.", dns.TypeA); !reply.Truncated || len(reply.Answer) < 4000 {
		t.Errorf("over TCP: truncated %t, %d records", reply.Truncated, len(reply.Answer))
	}
	if found, _ := w.cs.zones[0].Find("db.shop.svc.clusterset.local.", dns.TypeSRV); found.Count != 500 || len(found.Additional) != 0 {
		t.Errorf("%d SRV records with %d additional ones", found.Count, len(found.Additional))
	}
}

// A cluster that changes its service all the time does not delay the changes of others: answers are built when they are queried.
func TestChangesOfLargeServices(t *testing.T) {
	s := spread{slices: 200, ports: 100}
	w := s.world(t)
	smaller := s.slice(7)
	smaller.Endpoints = smaller.Endpoints[1:]
	w.update(smaller)
	if cost := octets(w.publish); cost > 1<<19 {
		t.Errorf("a change of one of 200 slices: %d octets allocated", cost)
	}
	check.Equal(t, "an endpoint that was removed", nxdomain, text(w.ask("10-0-7-0.east.db.shop.svc.clusterset.local.", dns.TypeA)))
	check.Equal(t, "the name of a port", nodata, text(w.ask("_p-99._tcp.db.shop.svc.clusterset.local.", dns.TypeA)))
}
