// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// maxAllocations is the limit for a query in the plugin, independent of the number of endpoints and ports.
const maxAllocations = 8

// sized returns a zone with a ClusterSetIP service, and two headless ones with these numbers of endpoints and ports.
func sized(t testing.TB, endpoints, portCount int) *world {
	var ports []discoveryv1.EndpointPort
	for i := range portCount {
		ports = append(ports, slicePort(fmt.Sprintf("port-%d", i), "TCP", int32(8000+i)))
	}
	objects := []any{
		clusterSetIP("shop", "web", []string{"10.96.0.1"}, servicePort("http", "TCP", 80)),
		headless("shop", "db"), headless("shop", "named"),
	}
	for begin := 0; begin < endpoints; begin += 100 {
		var byIP, byName []discoveryv1.Endpoint
		for i := begin; i < min(begin+100, endpoints); i++ {
			byIP = append(byIP, end(fmt.Sprintf("10.1.%d.%d", i/256, i%256)))
			byName = append(byName, host(fmt.Sprintf("db-%d", i), fmt.Sprintf("10.2.%d.%d", i/256, i%256)))
		}
		objects = append(objects, slice(fmt.Sprintf("shop/db/%d", begin), "east", ports, byIP...),
			slice(fmt.Sprintf("shop/named/%d", begin), "east", ports, byName...))
	}
	return newWorld(t, options{}, objects...)
}

var frequent = []struct{ what, name, qtype string }{
	{"A", "web.shop.svc.clusterset.local.", "A"},
	{"SRV", "_http._tcp.web.shop.svc.clusterset.local.", "SRV"},
	{"NODATA", "web.shop.svc.clusterset.local.", "AAAA"},
	{"NXDOMAIN", "nope.shop.svc.clusterset.local.", "A"},
	{"headless A", "db.shop.svc.clusterset.local.", "A"},
	{"headless SRV", "_port-0._tcp.db.shop.svc.clusterset.local.", "SRV"},
	{"headless SRV of all ports", "db.shop.svc.clusterset.local.", "SRV"},
	{"host by address", "10-1-0-7.east.db.shop.svc.clusterset.local.", "A"},
	{"host by name", "db-7.east.named.shop.svc.clusterset.local.", "A"},
	{"parent", "east.db.shop.svc.clusterset.local.", "A"},
	{"apex", "clusterset.local.", "SOA"},
}

// sink drops replies.
type sink struct {
	dns.ResponseWriter
	from net.Addr
}

func (s *sink) RemoteAddr() net.Addr    { return s.from }
func (*sink) WriteMsg(m *dns.Msg) error { return nil }

// query returns a function that sends a query once, as CoreDNS' server does.
func query(t testing.TB, w *world, name, qtype string) func() {
	s := &sink{from: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}}
	m := new(dns.Msg).SetQuestion(name, dns.StringToType[qtype]).SetEdns0(4096, false)
	ctx := t.Context()
	return func() {
		if _, err := w.cs.ServeDNS(ctx, s, m); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAllocations(t *testing.T) {
	for _, size := range [][2]int{{8, 1}, {100, 1}, {1000, 5}} {
		w := sized(t, size[0], size[1])
		for _, q := range frequent {
			ask := query(t, w, q.name, q.qtype)
			if got := testing.AllocsPerRun(100, ask); got > maxAllocations {
				t.Errorf("%s with %d endpoints and %d ports: %.0f allocations", q.what, size[0], size[1], got)
			}
		}
	}
}

func BenchmarkServeDNS(b *testing.B) {
	w := sized(b, 100, 1)
	for _, q := range frequent {
		b.Run(q.what, func(b *testing.B) {
			ask := query(b, w, q.name, q.qtype)
			b.ReportAllocs()
			for b.Loop() {
				ask()
			}
		})
	}
}

// BenchmarkPublish changes one of 1,000 services of 100 endpoints.
func BenchmarkPublish(b *testing.B) {
	w, slices := manyServices(b, 1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s := slices[i%len(slices)]
		s.Endpoints[0].Conditions.Ready = ptr.To(i/len(slices)%2 == 1)
		w.update(s)
		w.publish()
	}
}

// manyServices returns a zone of headless services with 100 endpoints each, and their slices.
func manyServices(t testing.TB, services int) (*world, []*discoveryv1.EndpointSlice) {
	w := newWorld(t, options{})
	var all []*discoveryv1.EndpointSlice
	ports := []discoveryv1.EndpointPort{slicePort("http", "TCP", 8080), slicePort("metrics", "TCP", 9090)}
	for i := range services {
		name := fmt.Sprintf("service-%d", i)
		var ends []discoveryv1.Endpoint
		for j := range 100 {
			n := i*100 + j
			ends = append(ends, end(fmt.Sprintf("10.%d.%d.%d", n>>16, n>>8&255, n&255)))
		}
		s := slice("shop/"+name+"/1", "east", ports, ends...)
		w.update(headless("shop", name))
		w.update(s)
		all = append(all, s)
	}
	w.publish()
	return w, all
}

// maxOctets is the limit of memory for an endpoint after its addresses have been queried.
const maxOctets = 150

func TestMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const services = 300
	before := heap()
	w, _ := manyServices(t, services)
	cold := heap()
	for i := range services {
		query(t, w, fmt.Sprintf("service-%d.shop.svc.clusterset.local.", i), "A")()
	}
	hot := heap()
	per := func(after uint64) uint64 { return (after - before) / (services * 100) }
	t.Logf("octets for an endpoint: %d before the first query, %d after it", per(cold), per(hot))
	if per(hot) > maxOctets {
		t.Errorf("%d octets for an endpoint", per(hot))
	}
	runtime.KeepAlive(w)
}
