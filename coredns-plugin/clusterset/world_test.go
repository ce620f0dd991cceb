// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

const testZone = "clusterset.local."

// world is the plugin without an API server: tests put objects into its feeds.
type world struct {
	t  testing.TB
	cs *Clusterset
	w  *work
}

// newWorld returns a synced plugin with these objects. Its zone is testZone by default.
func newWorld(t testing.TB, o options, objects ...any) *world {
	w := unsynced(t, o)
	w.list(objects...)
	w.publish()
	return w
}

// unsynced returns a plugin that has listed nothing yet.
func unsynced(t testing.TB, o options) *world {
	if len(o.zones) == 0 {
		o.zones = []string{testZone}
	}
	if len(o.kinds) == 0 {
		o.kinds = []kind{kindImport, kindSlice}
	}
	o.empty = cmp.Or(o.empty, zone.ServeEmpty)
	o.ttl = cmp.Or(o.ttl, defaultTTL)
	var local zone.Addresses
	local.Add(netip.MustParseAddr("192.0.2.53"))
	local.Add(netip.MustParseAddr("2001:db8::53"))
	cs, work := assemble(o, clients{}, local)
	return &world{t: t, cs: cs, w: work}
}

// list replaces all objects. It ignores those of kinds that the plugin does not read.
func (w *world) list(objects ...any) {
	w.t.Helper()
	of := map[kind][]any{}
	for _, o := range objects {
		of[kindOf(o)] = append(of[kindOf(o)], o)
	}
	for k, f := range w.w.watcher.feeds {
		check.Must(w.t, f.Replace(of[k], "1"))
	}
}

func (w *world) update(object any) {
	w.t.Helper()
	check.Must(w.t, w.w.watcher.feeds[kindOf(object)].Update(object))
}

func (w *world) remove(object any) {
	w.t.Helper()
	check.Must(w.t, w.w.watcher.feeds[kindOf(object)].Delete(object))
}

func (w *world) publish() { w.cs.publisher.publish(time.Now()) }

func kindOf(object any) kind {
	if _, ok := object.(*discoveryv1.EndpointSlice); ok {
		return kindSlice
	}
	return kindImport
}

// ask sends a query as over TCP.
func (w *world) ask(name string, qtype uint16) *dns.Msg {
	w.t.Helper()
	return w.send(new(dns.Msg).SetQuestion(name, qtype), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1})
}

// send sends a message from an address, which must not be changed. The reply is scrubbed as CoreDNS' server does it, packed, and
// unpacked.
func (w *world) send(m *dns.Msg, from net.Addr) *dns.Msg {
	w.t.Helper()
	answered, before := &writer{from: from}, m.String()
	code, err := w.cs.ServeDNS(context.Background(), request.NewScrubWriter(m, answered), m)
	if err != nil || m.String() != before {
		w.t.Fatalf("%v: %v; the message is now\n%s", before, err, m)
	}
	if answered.m == nil {
		if plugin.ClientWrite(code) {
			w.t.Fatalf("%v: rcode %d, but nothing was written", m.Question, code)
		}
		return new(dns.Msg).SetRcode(m, code)
	}
	packed, err := answered.m.Pack()
	if err != nil {
		w.t.Fatalf("%v: %v", m.Question, err)
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(packed); err != nil {
		w.t.Fatalf("%v: %v", m.Question, err)
	}
	return reply
}

// serial returns the serial number of the first zone.
func (w *world) serial() uint32 { return w.cs.zones[0].SOA().RRset()[0].(*dns.SOA).Serial }

// writer stores the reply.
type writer struct {
	dns.ResponseWriter
	from net.Addr
	m    *dns.Msg
}

func (w *writer) RemoteAddr() net.Addr        { return w.from }
func (w *writer) WriteMsg(m *dns.Msg) error   { w.m = m; return nil }
func (w *writer) Write(b []byte) (int, error) { return 0, fmt.Errorf("%d octets written raw", len(b)) }

// text returns a reply as text: the code, and each section in order, without TTL and class.
func text(m *dns.Msg) string {
	lines := []string{dns.RcodeToString[m.Rcode]}
	for _, section := range [][]dns.RR{m.Answer, m.Ns, m.Extra} {
		var texts []string
		for _, r := range section {
			if r.Header().Rrtype == dns.TypeSOA {
				texts = append(texts, r.Header().Name+" SOA")
				continue
			}
			if r.Header().Rrtype != dns.TypeOPT {
				texts = append(texts, recordText(r))
			}
		}
		slices.Sort(texts)
		lines = append(lines, texts...)
	}
	return strings.Join(lines, "\n")
}

// recordText returns "<owner> <type> <data>".
func recordText(r dns.RR) string {
	fields := strings.SplitN(r.String(), "\t", 5)
	return fields[0] + " " + fields[3] + " " + fields[4]
}

func clusterSetIP(namespace, name string, ips []string, ports ...v1beta1.ServicePort) *v1beta1.ServiceImport {
	return &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1beta1.ServiceImportSpec{Type: v1beta1.ClusterSetIP, IPs: ips, Ports: ports},
	}
}

func headless(namespace, name string) *v1beta1.ServiceImport {
	return &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1beta1.ServiceImportSpec{Type: v1beta1.Headless},
	}
}

func servicePort(name string, protocol corev1.Protocol, number int32) v1beta1.ServicePort {
	return v1beta1.ServicePort{Name: name, Protocol: protocol, Port: number}
}

func slicePort(name string, protocol corev1.Protocol, number int32) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: ptr.To(name), Protocol: ptr.To(protocol), Port: ptr.To(number)}
}

// slice returns an EndpointSlice of a service, "<namespace>/<service>/<suffix>", from a cluster. It is IPv6 if its first
// endpoint is.
func slice(path, cluster string, ports []discoveryv1.EndpointPort, ends ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	parts := strings.Split(path, "/")
	family := discoveryv1.AddressTypeIPv4
	if len(ends) > 0 && strings.Contains(ends[0].Addresses[0], ":") {
		family = discoveryv1.AddressTypeIPv6
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: parts[0], Name: parts[1] + "-" + cluster + "-" + parts[2],
			Labels: map[string]string{v1beta1.LabelServiceName: parts[1], v1beta1.LabelSourceCluster: cluster},
		},
		AddressType: family, Ports: ports, Endpoints: ends,
	}
}

func end(addresses ...string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}
}

func host(name string, addresses ...string) discoveryv1.Endpoint {
	e := end(addresses...)
	e.Hostname = &name
	return e
}

func unready(address string) discoveryv1.Endpoint {
	e := end(address)
	e.Conditions.Ready = ptr.To(false)
	return e
}

func fallAll() fall.F {
	var f fall.F
	f.SetZonesFromArgs(nil)
	return f
}
