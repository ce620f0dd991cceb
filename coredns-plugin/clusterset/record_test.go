// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// refused returns why an object is not served, or not as a whole.
func (w *world) refused(object any) map[zone.Reason]string {
	w.t.Helper()
	r, err := w.w.watcher.feeds[kindOf(object)].record(object)
	check.Must(w.t, err)
	result := map[zone.Reason]string{}
	for _, refusal := range r.Refused() {
		result[refusal.Reason] += refusal.Detail
	}
	return result
}

// spec: N7
func TestRefusedObjects(t *testing.T) {
	long := strings.Repeat("l", 63)
	http := []discoveryv1.EndpointPort{slicePort("http", "TCP", 80)}
	fqdn := slice("shop/db/f", "east", http)
	fqdn.AddressType = discoveryv1.AddressTypeFQDN
	fqdn.Endpoints = []discoveryv1.Endpoint{end("example.org")}
	for name, tc := range map[string]struct {
		object any
		want   map[zone.Reason]string
	}{
		"all is well":      {clusterSetIP("shop", "web", []string{"10.0.0.1"}, servicePort("http", "TCP", 80)), nil},
		"dotted name":      {clusterSetIP("shop", "web.v1", nil), map[zone.Reason]string{zone.RefusedName: "the name cannot be one in DNS"}},
		"unknown type":     {&v1beta1.ServiceImport{ObjectMeta: headless("shop", "web").ObjectMeta}, map[zone.Reason]string{zone.RefusedType: `type "" is unknown`}},
		"no address":       {clusterSetIP("shop", "web", []string{"none"}), map[zone.Reason]string{zone.RefusedAddress: `"none" is no address that DNS could give out`}},
		"a mapped address": {clusterSetIP("shop", "web", []string{"::ffff:1.2.3.4"}), map[zone.Reason]string{zone.RefusedAddress: `"::ffff:1.2.3.4" is no address that DNS could give out`}},
		"a scoped address": {slice("shop/db/1", "east", http, end("fe80::1%eth0")), map[zone.Reason]string{zone.RefusedAddress: `"fe80::1%eth0" is no address that DNS could give out`}},
		"port 0":           {clusterSetIP("shop", "web", nil, servicePort("http", "TCP", 0)), map[zone.Reason]string{zone.RefusedPort: "0 is no port"}},
		"port 65536":       {clusterSetIP("shop", "web", nil, servicePort("http", "TCP", 65536)), map[zone.Reason]string{zone.RefusedPort: "65536 is no port"}},
		"unknown protocol": {clusterSetIP("shop", "web", nil, servicePort("http", "ICMP", 1)), map[zone.Reason]string{zone.RefusedPort: `protocol "ICMP" is unknown`}},
		"dotted port name": {clusterSetIP("shop", "web", nil, servicePort("a.b", "TCP", 1)), map[zone.Reason]string{zone.RefusedPort: `port name "a.b" cannot be a name in DNS`}},
		"port name of 62":  {clusterSetIP("shop", "web", nil, servicePort(long[1:], "TCP", 1)), nil},
		"port name of 63":  {clusterSetIP("shop", "web", nil, servicePort(long, "TCP", 1)), map[zone.Reason]string{zone.RefusedPort: `port name "` + long + `" cannot be a name in DNS`}},
		"cluster missing":  {slice("shop/db/1", "", http, end("10.0.0.1")), map[zone.Reason]string{zone.RefusedCluster: `label multicluster.kubernetes.io/source-cluster: "" is no RFC-1123 label`}},
		"cluster dotted":   {slice("shop/db/1", "a.b", http, end("10.0.0.1")), map[zone.Reason]string{zone.RefusedCluster: `label multicluster.kubernetes.io/source-cluster: "a.b" is no RFC-1123 label`}},
		"cluster of 63":    {slice("shop/db/1", long, http, end("10.0.0.1")), nil},
		"cluster of 64":    {slice("shop/db/1", long+"l", http, end("10.0.0.1")), map[zone.Reason]string{zone.RefusedCluster: `label multicluster.kubernetes.io/source-cluster: "` + long + `l" is no RFC-1123 label`}},
		"service dotted":   {slice("shop/d.b/1", "east", http, end("10.0.0.1")), map[zone.Reason]string{zone.RefusedName: `label multicluster.kubernetes.io/service-name: "d.b" cannot be a name in DNS`}},
		"bad hostname":     {slice("shop/db/1", "east", http, host("A", "10.0.0.1")), map[zone.Reason]string{zone.RefusedName: `hostname "A" is no RFC-1123 label: the endpoint is named by its address`}},
		"names too long": {slice(long+"/"+long+"/1", long, http, host(long, "10.0.0.1")), map[zone.Reason]string{
			zone.RefusedName: fmt.Sprintf("the name of endpoint %q would have more than 255 octets", long),
		}},
		"of each reason, one": {clusterSetIP("shop", "web", []string{"x", "y"}, servicePort("", "TCP", 0), servicePort("", "TCP", -1)), map[zone.Reason]string{
			zone.RefusedAddress: `"x" is no address that DNS could give out`, zone.RefusedPort: "0 is no port",
		}},
		"no addresses in it": {fqdn, nil},
	} {
		w := newWorld(t, options{}, tc.object)
		check.Equal(t, name, tc.want, w.refused(tc.object), cmpopts.EquateEmpty())
		for _, r := range zone.Reasons {
			want := 0.0
			if tc.want[r] != "" {
				want = 1
			}
			got := testutil.ToFloat64(refusedGauge.WithLabelValues(testZone, string(r)))
			check.Equal(t, fmt.Sprintf("%s: metric for %s", name, r), want, got)
		}
	}
}

// The longest valid names are served, and one octet more is not.
func TestLongestNames(t *testing.T) {
	label := func(n int) string { return strings.Repeat("l", n) }
	ports := []discoveryv1.EndpointPort{slicePort("p", "TCP", 80)}
	for _, spare := range []int{0, 1} {
		// <60>.<c>.<63>.<63>.svc.clusterset.local.: 61 + 1+c + 64 + 64 + 4 + 18 octets
		c := label(255 - 61 - 1 - 64 - 64 - 4 - 18 + spare)
		s := slice(label(63)+"/"+label(63)+"/1", c, ports, host(label(60), "10.0.0.1"), end("10.0.0.2"))
		w := newWorld(t, options{}, headless(label(63), label(63)), s)
		name := strings.Join([]string{label(60), c, label(63), label(63), "svc", testZone}, ".")
		want := dns.RcodeSuccess
		if spare > 0 {
			want = dns.RcodeNameError
			name = strings.Join([]string{label(60), label(len(c) - 1), label(63), label(63), "svc", testZone}, ".")
		}
		check.Equal(t, fmt.Sprintf("%d octets: rcode", len(name)+1+spare), want, w.ask(name, dns.TypeA).Rcode)
		srv := w.ask(label(63)+"."+label(63)+".svc."+testZone, dns.TypeSRV)
		check.Equal(t, "SRV records", 2-spare, len(srv.Answer))
	}
}

// An object of a hostile cluster costs no more than its own size.
func TestHostileNumbers(t *testing.T) {
	var ports []discoveryv1.EndpointPort
	for i := range 2000 {
		ports = append(ports, slicePort(fmt.Sprintf("p-%04d", i), "TCP", int32(1+i)))
	}
	objects := []any{headless("shop", "db")}
	for i := range 10 {
		var ends []discoveryv1.Endpoint
		for j := range 100 {
			ends = append(ends, end(fmt.Sprintf("10.0.%d.%d", i, j)))
		}
		objects = append(objects, slice(fmt.Sprintf("shop/db/%d", i), "east", ports, ends...))
	}
	w := newWorld(t, options{}, objects...)
	all, exists := w.cs.zones[0].Find("db.shop.svc.clusterset.local.", dns.TypeSRV)
	if octets := (&dns.Msg{Compress: true, Answer: all.RRset()}).Len(); !exists || all.Count > zone.MaxSRV || octets <= dns.MaxMsgSize {
		t.Errorf("%d SRV records, %d octets", all.Count, octets)
	}
	if reply := w.ask("db.shop.svc.clusterset.local.", dns.TypeSRV); !reply.Truncated || len(reply.Answer) == 0 {
		t.Errorf("over TCP: truncated %t, %d records", reply.Truncated, len(reply.Answer))
	}
	last, exists := w.cs.zones[0].Find("_p-0999._tcp.db.shop.svc.clusterset.local.", dns.TypeSRV)
	if !exists || last.Count != 1000 {
		t.Errorf("the last port that is served exists: %t", exists)
	}
	if again, _ := w.cs.zones[0].Find("_p-0999._tcp.db.shop.svc.clusterset.local.", dns.TypeSRV); again == last {
		t.Error("a million records would be kept if a client queries each port")
	}
	check.Equal(t, "a port too many", nxdomain, text(w.ask("_p-1000._tcp.db.shop.svc.clusterset.local.", dns.TypeSRV)))
	check.Equal(t, "refused", map[zone.Reason]string{zone.RefusedPort: "2000 ports: the first 1000 are served"}, w.refused(objects[1]))
	if reply := w.ask("db.shop.svc.clusterset.local.", dns.TypeA); len(reply.Answer) != 1000 || reply.Truncated {
		t.Errorf("%d addresses, truncated %t", len(reply.Answer), reply.Truncated)
	}
}

// client-go's expectations of a store, with records in place of objects.
func TestFeed(t *testing.T) {
	w := newWorld(t, options{})
	f := w.w.watcher.feeds[kindImport]
	r, err := f.Transformer()(clusterSetIP("shop", "web", []string{"10.0.0.1"}))
	check.Must(t, err)
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(r); err != nil || key != "shop/web" {
		t.Errorf("key %q, %v", key, err)
	}
	if again, err := f.Transformer()(r); err != nil || again != r {
		t.Errorf("a record became %v, %v", again, err)
	}
	check.Must(t, f.Add(r))
	if again, err := f.record(clusterSetIP("shop", "web", []string{"10.0.0.1"})); err != nil || f.table.put(kindImport, again) {
		t.Errorf("a known object counts as changed (or %v): each list would log its refusals again", err)
	}
	check.Must(t, f.Bookmark("1"))
	w.publish()
	check.Equal(t, "added: rcode", dns.RcodeSuccess, w.ask("web.shop.svc.clusterset.local.", dns.TypeA).Rcode)
	check.Must(t, f.Delete(cache.DeletedFinalStateUnknown{Key: "shop/web", Obj: r}))
	w.publish()
	check.Equal(t, "deleted: rcode", dns.RcodeNameError, w.ask("web.shop.svc.clusterset.local.", dns.TypeA).Rcode)
	const want = "a string is neither a ServiceImport nor an EndpointSlice"
	for _, try := range []func() error{
		func() error { return f.Add("x") }, func() error { return f.Delete("x") }, func() error { return f.Replace([]any{"x"}, "") },
	} {
		check.Equal(t, "error", want, check.Message(try()))
	}
}

func TestMetrics(t *testing.T) {
	zone := freshZone()
	w := unsynced(t, options{zones: []string{zone}})
	synced := func() float64 { return testutil.ToFloat64(syncedGauge.WithLabelValues(zone)) }
	check.Equal(t, "synced before anything was listed", 0.0, synced())
	w.list(clusterSetIP("shop", "web", []string{"10.0.0.1"}), headless("shop", "db"), headless("shop", "none"),
		slice("shop/db/1", "east", nil, end("10.1.0.1"), host("h", "10.1.0.2"), host("h", "10.1.0.2"), unready("10.1.0.3")))
	w.publish()
	got := map[string]float64{
		"ClusterSetIP": testutil.ToFloat64(servicesGauge.WithLabelValues(zone, "ClusterSetIP")),
		"Headless":     testutil.ToFloat64(servicesGauge.WithLabelValues(zone, "Headless")),
		"endpoints":    testutil.ToFloat64(endpointsGauge.WithLabelValues(zone)),
		"synced":       synced(),
	}
	check.Equal(t, "metrics", map[string]float64{"ClusterSetIP": 1, "Headless": 1, "endpoints": 2, "synced": 1}, got)
	if at := testutil.ToFloat64(eventGauge.WithLabelValues(zone, "endpointslices")); at < 1.7e9 {
		t.Errorf("last event at %v", at)
	}
	check.Equal(t, "watch errors", 0.0, testutil.ToFloat64(watchErrorsCounter.WithLabelValues(zone, "endpointslices")))
}

// The README lists all metrics, and they follow Prometheus' conventions.
func TestReadmeMetrics(t *testing.T) {
	newWorld(t, options{})
	families, err := prometheus.DefaultGatherer.Gather()
	check.Must(t, err)
	var exported []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "coredns_clusterset_") {
			exported = append(exported, f.GetName())
		}
	}
	text, err := os.ReadFile("README.md")
	check.Must(t, err)
	documented := regexp.MustCompile("coredns_clusterset_[a-z_]+").FindAllString(string(text), -1)
	slices.Sort(documented)
	check.Equal(t, "metrics that are exported (want) and in the README (got)", exported, documented)
	problems, err := testutil.GatherAndLint(prometheus.DefaultGatherer, exported...)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
