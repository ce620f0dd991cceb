// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// TestCluster has parts that share a cluster, each with services of its own.
func TestCluster(t *testing.T) { //nolint:tparallel // one part after the other
	t.Parallel()
	c := startCluster(t)
	c.installCRDs(t)
	for name, part := range map[string]func(*testing.T){
		"OtherPlugins": c.testOtherPlugins,
		"ClusterLocal": c.testClusterLocal,
		"Reload":       c.testReload,
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { c.clear(t) })
			part(t)
		})
	}
}

// otherPlugins are in one server block with clusterset. A second block answers what the view of the first one excludes.
const otherPlugins = `metadata
ready 127.0.0.1:` + freePort + `
prometheus 127.0.0.1:` + freePort + `
log . "logged {name} {type} {rcode}"
dns64 {
	allow_ipv4
}
loadbalance
rewrite name exact alias.test. web.default.svc.clusterset.local. answer auto
autopath RESOLV_CONF
cache 3600
view here {
	expr name() != 'elsewhere.default.svc.clusterset.local.' && metadata('clusterset/service') != 'hidden'
}
clusterset clusterset.local {
	kubeconfig KUBECONFIG
	startup_timeout 1m
	ttl 600
}
whoami
}
.:0 {
bind 127.0.0.1
template IN ANY {
	rcode REFUSED
}`

// testOtherPlugins: each of the other plugins works with clusterset in its server block.
func (c cluster) testOtherPlugins(t *testing.T) {
	c.create(t, clusterSetIPImport("web", "10.96.0.1"), clusterSetIPImport("both", "10.96.0.2", "fd00::2"),
		clusterSetIPImport("hidden", "10.96.0.3"), headlessImport("db"), endpoints("db", "1", "10.1.0.1", "10.1.0.2", "10.1.0.3"))
	resolvConf := filepath.Join(t.TempDir(), "resolv.conf")
	lab.Must(t, os.WriteFile(resolvConf, []byte("search default.svc.clusterset.local svc.clusterset.local clusterset.local\n"), 0o600))
	s := startCoreDNS(t, strings.NewReplacer("RESOLV_CONF", resolvConf, "KUBECONFIG", c.Kubeconfig()).Replace(otherPlugins))
	if got := fetch(t, s.ports[0], "ready"); got != "OK" {
		t.Errorf("ready: %q", got)
	}
	for query, want := range map[string]string{
		"web.default.svc.clusterset.local. A":                 "NOERROR 10.96.0.1",
		"alias.test. A":                                       "NOERROR 10.96.0.1",
		"web.default.svc.clusterset.local. AAAA":              "NOERROR 64:ff9b::a60:1",
		"both.default.svc.clusterset.local. AAAA":             "NOERROR fd00::2",
		"none.other.svc.clusterset.local. AAAA":               "NXDOMAIN",
		"db.default.svc.clusterset.local. A":                  "NOERROR 10.1.0.1 10.1.0.2 10.1.0.3",
		"hidden.default.svc.clusterset.local. A":              "REFUSED",
		"_http._tcp.hidden.default.svc.clusterset.local. SRV": "REFUSED",
		"elsewhere.default.svc.clusterset.local. A":           "REFUSED",
		"web.default.default.svc.clusterset.local. A":         "NOERROR 10.96.0.1 web.default.svc.clusterset.local.",
		"clusterset.local. NS":                                "NOERROR ns.dns.clusterset.local.",
		"_http._tcp.web.default.svc.clusterset.local. SRV":    "NOERROR 0 100 80 web.default.svc.clusterset.local.",
		"_http._tcp.db.default.svc.clusterset.local. AAAA":    "NOERROR",
	} {
		for _, network := range []string{"udp", "tcp", "udp"} { // the later ones from the cache
			if got, _ := s.ask(t, query, network); got != want {
				t.Errorf("%s over %s: %s, want %s", query, network, got, want)
			}
		}
	}
	first := map[string]bool{}
	for range 100 {
		_, reply := s.ask(t, "db.default.svc.clusterset.local. A", "udp")
		if a, ok := reply.Answer[0].(*dns.A); ok { // its TTL differs as the cache counts down
			first[a.A.String()] = true
		}
	}
	if len(first) != 3 {
		t.Errorf("the first of three records is always one of %v", first)
	}
	metrics := fetch(t, s.ports[1], "metrics")
	for pattern, least := range map[string]int{
		`coredns_cache_hits_total\{.*type="success".*\} (\d+)`:                   10,
		`coredns_cache_hits_total\{.*type="denial".*\} (\d+)`:                    1,
		`coredns_dns64_requests_translated_total\{.*\} (\d+)`:                    1,
		`coredns_dns_responses_total\{.*rcode="NXDOMAIN".*view="here".*\} (\d+)`: 1,
		`coredns_clusterset_synced\{zones="clusterset.local."\} (\d+)`:           1,
		`coredns_clusterset_services\{type="ClusterSetIP",.*\} (\d+)`:            3,
	} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(metrics)
		if m == nil {
			t.Errorf("no metric %s in\n%s", pattern, metrics)
		} else if n, err := strconv.Atoi(m[1]); err != nil || n < least {
			t.Errorf("%s, want at least %d", m[0], least)
		}
	}
	s.stop()
	if !strings.Contains(s.log.String(), "logged web.default.svc.clusterset.local. A NOERROR") {
		t.Errorf("a query is missing from the log:\n%s", s.log.String())
	}
}

// fetch returns a page of one of CoreDNS' web servers.
func fetch(t *testing.T, port, page string) string {
	t.Helper()
	text, err := lab.Get(t.Context(), http.DefaultClient, "http://127.0.0.1:"+port+"/"+page)
	lab.Must(t, err)
	return string(text)
}

// testClusterLocal: the names of the cluster itself have the same records with the plugin in the server block as without it, also
// those of a derived Service.
//
// spec: N9
func (c cluster) testClusterLocal(t *testing.T) {
	service := func(name, ip string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}
	}
	c.create(t, service("web", ""), service("db", corev1.ClusterIPNone), service("derived-43254079", ""),
		clusterSetIPImport("web", "10.96.0.1"), headlessImport("db"), endpoints("db", "1", "10.1.0.1"))
	kubernetes := c.kubernetes("cluster.local in-addr.arpa")
	with, without := startCoreDNS(t, c.clusterset()+"\n"+kubernetes), startCoreDNS(t, kubernetes)
	with.await(t, "web.default.svc.clusterset.local. A", "NOERROR 10.96.0.1")

	records := 0
	for _, name := range []string{
		"cluster.local.", "svc.cluster.local.", "default.svc.cluster.local.", "none.svc.cluster.local.", "dns-version.cluster.local.",
		"kubernetes.default.svc.cluster.local.", "web.default.svc.cluster.local.", "_http._tcp.web.default.svc.cluster.local.",
		"db.default.svc.cluster.local.", "derived-43254079.default.svc.cluster.local.", "none.default.svc.cluster.local.",
		"web.default.svc.clusterset.local.cluster.local.", "1.0.96.10.in-addr.arpa.", "1.0.0.10.in-addr.arpa.",
	} {
		for _, qtype := range []string{"A", "AAAA", "SRV", "TXT", "PTR", "SOA", "NS"} {
			_, got := with.ask(t, name+" "+qtype, "udp")
			_, want := without.ask(t, name+" "+qtype, "udp")
			lab.Equal(t, fmt.Sprintf("%s %s", name, qtype), sections(want), sections(got))
			records += len(want.Answer)
		}
	}
	if records < 10 {
		t.Errorf("all these names have only %d records", records)
	}
}

// sections returns the code and the sorted records of a reply.
func sections(m *dns.Msg) map[string][]string {
	result := map[string][]string{"code": {dns.RcodeToString[m.Rcode]}}
	for section, records := range map[string][]dns.RR{"answer": m.Answer, "authority": m.Ns, "additional": m.Extra} {
		for _, r := range records {
			if soa, ok := r.(*dns.SOA); ok {
				soa.Serial = 0 // a time
			}
			result[section] = append(result[section], r.String())
		}
		slices.Sort(result[section])
	}
	return result
}
