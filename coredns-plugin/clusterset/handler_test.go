// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// next is the next plugin. It answers YXDOMAIN, which ours never does.
var next = plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return dns.RcodeYXDomain, w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeYXDomain))
})

func TestOtherNamesAreLeftToTheNextPlugin(t *testing.T) {
	w := shop(t)
	w.cs.Next = next
	for name, ours := range map[string]bool{
		"web.shop.svc.clusterset.local.":  true,
		"nope.shop.svc.clusterset.local.": true,
		"CLUSTERSET.local.":               true,
		"cluster.local.":                  false,
		"xclusterset.local.":              false,
		`x\.clusterset.local.`:            false, // one label below "local."
		`x\\.clusterset.local.`:           true,
		"local.":                          false,
		".":                               false,
	} {
		check.Equal(t, fmt.Sprintf("%s: answered by us", name), ours, w.ask(name, dns.TypeA).Rcode != dns.RcodeYXDomain)
	}
}

func TestNoQuestionIsLeftToTheNextPlugin(t *testing.T) {
	w := shop(t)
	w.cs.Next = next
	code, err := w.cs.ServeDNS(t.Context(), &test.ResponseWriter{}, new(dns.Msg))
	if code != dns.RcodeYXDomain || err != nil {
		t.Errorf("%s, %v", dns.RcodeToString[code], err)
	}
}

func TestFallthrough(t *testing.T) {
	w := shop(t)
	w.cs.Next = next
	for zones, through := range map[string]bool{"": true, "shop.svc.clusterset.local": true, "cluster.local": false} {
		w.cs.Fall.SetZonesFromArgs(strings.Fields(zones))
		falls := w.ask("nope.shop.svc.clusterset.local.", dns.TypeA).Rcode == dns.RcodeYXDomain
		check.Equal(t, fmt.Sprintf("fallthrough %s: a name that does not exist falls through", zones), through, falls)
		exists := w.ask("web.shop.svc.clusterset.local.", dns.TypeTXT)
		check.Equal(t, fmt.Sprintf("fallthrough %s: rcode of a name that exists", zones), dns.RcodeSuccess, exists.Rcode)
	}
}

// spec: N8
func TestUnsyncedIsServfailBeforeFallthrough(t *testing.T) {
	w := unsynced(t, options{})
	w.cs.Next = next
	w.cs.Fall = fallAll()
	expect := func(state string, code int, ready bool) {
		t.Helper()
		for _, name := range []string{"web.shop.svc.clusterset.local.", "svc.clusterset.local.", "clusterset.local."} {
			got := w.ask(name, dns.TypeSOA)
			if name != "clusterset.local." && code == dns.RcodeSuccess {
				continue
			}
			if got.Rcode != code || len(got.Ns) != 0 {
				t.Errorf("%s: %s: %s", state, name, text(got))
			}
		}
		check.Equal(t, state+": rcode of another zone", dns.RcodeYXDomain, w.ask("cluster.local.", dns.TypeA).Rcode)
		check.Equal(t, state+": ready", ready, w.cs.Ready())
	}
	w.publish()
	expect("nothing listed", dns.RcodeServerFailure, false)
	w.update(clusterSetIP("shop", "web", []string{"10.96.0.1"}))
	w.publish()
	expect("an event before any list", dns.RcodeServerFailure, false)
	check.Must(t, w.w.watcher.feeds[kindImport].Replace(nil, ""))
	w.publish()
	expect("imports listed, slices not", dns.RcodeServerFailure, false)
	w.cs.crdAbsent.Store(true)
	expect("no CRD", dns.RcodeServerFailure, true)
	w.cs.crdAbsent.Store(false)
	check.Must(t, w.w.watcher.feeds[kindSlice].Replace(nil, ""))
	w.publish()
	expect("all listed", dns.RcodeSuccess, true)
}

func TestRefusals(t *testing.T) {
	w := shop(t)
	for want, change := range map[int]func(*dns.Msg){
		dns.RcodeNotImplemented: func(m *dns.Msg) { m.Opcode = dns.OpcodeNotify },
		dns.RcodeRefused:        func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS },
	} {
		m := new(dns.Msg).SetQuestion("web.shop.svc.clusterset.local.", dns.TypeA)
		change(m)
		check.Equal(t, "rcode", want, w.send(m, &net.UDPAddr{}).Rcode)
	}
	check.Equal(t, "AXFR without plugin transfer: rcode", dns.RcodeRefused, w.ask("clusterset.local.", dns.TypeAXFR).Rcode)
}

// Each record is the first one in some answers, and another plugin that appends to an answer does not write into shared memory.
func TestRotation(t *testing.T) {
	w := shop(t)
	first := map[string]bool{}
	for range 400 {
		m := new(dns.Msg).SetQuestion("db.shop.svc.clusterset.local.", dns.TypeA)
		answered := &writer{from: &net.UDPAddr{}}
		_, err := w.cs.ServeDNS(t.Context(), answered, m)
		check.Must(t, err)
		first[answered.m.Answer[0].(*dns.A).A.String()] = true
		if cap(answered.m.Answer) != 4 || len(answered.m.Answer) != 4 {
			t.Fatalf("%d records, room for %d", len(answered.m.Answer), cap(answered.m.Answer))
		}
	}
	check.Equal(t, fmt.Sprintf("number of records that came first, %v", first), 4, len(first))
	for _, question := range []string{"clusterset.local. NS", "_http._tcp.db.shop.svc.clusterset.local. SRV", "nope.clusterset.local. A"} {
		name, typ, _ := strings.Cut(question, " ")
		m := new(dns.Msg).SetQuestion(name, dns.StringToType[typ])
		answered := &writer{from: &net.TCPAddr{}}
		_, err := w.cs.ServeDNS(t.Context(), answered, m)
		check.Must(t, err)
		for _, section := range [][]dns.RR{answered.m.Answer, answered.m.Ns, answered.m.Extra} {
			check.Equal(t, question+": room of a section, which is shared by all", len(section), cap(section))
		}
	}
}

// TC is set only if the answer section does not fit; the additional section is included only if all of it fits.
func TestTruncation(t *testing.T) {
	var ends []discoveryv1.Endpoint
	for i := range 40 {
		ends = append(ends, host(fmt.Sprintf("db-%d", i), fmt.Sprintf("10.1.0.%d", i)))
	}
	w := newWorld(t, options{}, headless("shop", "db"), slice("shop/db/1", "east", []discoveryv1.EndpointPort{slicePort("http", "TCP", 80)}, ends...))
	const name = "_http._tcp.db.shop.svc.clusterset.local."
	whole := w.ask(name, dns.TypeSRV)
	if len(whole.Answer) != 40 || len(whole.Extra) != 40 {
		t.Fatalf("over TCP: %d answers, %d additional", len(whole.Answer), len(whole.Extra))
	}
	seen := map[string]bool{}
	for size := 512; size <= 4500; size += 3 {
		m := new(dns.Msg).SetQuestion(name, dns.TypeSRV).SetEdns0(uint16(size), false)
		reply := w.send(m, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1)})
		reply.Compress = true
		if reply.Len() > size {
			t.Fatalf("%d octets for a client that takes %d", reply.Len(), size)
		}
		if reply.IsEdns0() == nil {
			t.Fatalf("%d: no OPT record", size)
		}
		extra := len(reply.Extra) - 1
		state := fmt.Sprintf("truncated %t, all answers %t, all additional %t, some additional %t",
			reply.Truncated, len(reply.Answer) == 40, extra == 40, extra != 0)
		seen[state] = true
	}
	want := map[string]bool{
		"truncated true, all answers false, all additional false, some additional false": true,
		"truncated false, all answers true, all additional false, some additional false": true,
		"truncated false, all answers true, all additional true, some additional true":   true,
	}
	check.Equal(t, "states over all sizes", want, seen)
}

// A service alternates between two sets of addresses: each answer is one of them, and the serial number never decreases.
func TestAnswersAreConsistentWhileServicesChange(t *testing.T) {
	ports := []discoveryv1.EndpointPort{slicePort("http", "TCP", 80)}
	set := func(network string) *discoveryv1.EndpointSlice {
		var ends []discoveryv1.Endpoint
		for i := range 10 {
			ends = append(ends, end(fmt.Sprintf("10.%s.0.%d", network, i)))
		}
		return slice("shop/db/1", "east", ports, ends...)
	}
	w := newWorld(t, options{}, headless("shop", "db"), set("1"))
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			serial := w.serial()
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, qtype := range []uint16{dns.TypeA, dns.TypeSRV} {
					reply := new(dns.Msg).SetQuestion("db.shop.svc.clusterset.local.", qtype)
					answered := &writer{from: &net.TCPAddr{}}
					if _, err := w.cs.ServeDNS(context.Background(), answered, reply); err != nil {
						t.Error(err)
						return
					}
					networks := map[string]bool{}
					for _, r := range append(answered.m.Extra, answered.m.Answer...) {
						switch r := r.(type) {
						case *dns.A:
							networks[r.A.String()[:5]] = true
						case *dns.SRV:
							networks[strings.ReplaceAll(r.Target[:5], "-", ".")] = true
						}
					}
					if len(networks) != 1 || len(answered.m.Answer) != 10 {
						t.Errorf("one answer has %d records of %v", len(answered.m.Answer), networks)
						return
					}
				}
				if now := w.serial(); zone.Newer(serial, now) {
					t.Errorf("serial %d after %d", now, serial)
				} else {
					serial = now
				}
			}
		})
	}
	for i := range 300 {
		w.update(set([]string{"1", "2"}[i%2]))
		w.publish()
	}
	close(stop)
	asking.Wait()
}
