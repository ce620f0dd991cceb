// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// chain is a server block with the other plugins of a cluster, and a second one for what the view leaves.
const chain = `metadata
ready 127.0.0.1:` + anotherPort + `
prometheus 127.0.0.1:` + anotherPort + `
log . "logged {name} {type} {rcode}"
dns64 {
	allow_ipv4
}
loadbalance
rewrite name exact alias.test. web.default.svc.clusterset.local. answer auto
autopath %s
cache 3600
view here {
	expr name() != 'elsewhere.default.svc.clusterset.local.' && metadata('clusterset/service') != 'hidden'
}
clusterset clusterset.local {
	kubeconfig %s
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

// testChain: each of the other plugins does its work with ours in the server block.
func (w world) testChain(t *testing.T) {
	w.create(t,
		imported("web", v1beta1.ClusterSetIP, "10.96.0.1"), imported("both", v1beta1.ClusterSetIP, "10.96.0.2", "fd00::2"),
		imported("hidden", v1beta1.ClusterSetIP, "10.96.0.3"), imported("db", v1beta1.Headless), endpoints("db-east-1", "10.1.0.1", "10.1.0.2", "10.1.0.3"))
	search := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(search, []byte("search default.svc.clusterset.local svc.clusterset.local clusterset.local\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, fmt.Sprintf(chain, search, w.cluster.Kubeconfig()))
	if got := fetch(t, p.others[0], "ready"); got != "OK" {
		t.Errorf("ready says %q", got)
	}
	for question, want := range map[string]string{
		"web.default.svc.clusterset.local. A":                 "NOERROR 10.96.0.1",
		"alias.test. A":                                       "NOERROR 10.96.0.1",
		"web.default.svc.clusterset.local. AAAA":              "NOERROR 64:ff9b::a60:1",
		"both.default.svc.clusterset.local. AAAA":             "NOERROR fd00::2",
		"none.other.svc.clusterset.local. AAAA":               "NXDOMAIN",
		"db.default.svc.clusterset.local. A":                  "NOERROR 10.1.0.1 10.1.0.2 10.1.0.3",
		"east.db.default.svc.clusterset.local. A":             "NOERROR",
		"hidden.default.svc.clusterset.local. A":              "REFUSED",
		"_http._tcp.hidden.default.svc.clusterset.local. SRV": "REFUSED",
		"elsewhere.default.svc.clusterset.local. A":           "REFUSED",
		"web.default.default.svc.clusterset.local. A":         "NOERROR 10.96.0.1 web.default.svc.clusterset.local.",
		"clusterset.local. NS":                                "NOERROR ns.dns.clusterset.local.",
		"_http._tcp.web.default.svc.clusterset.local. SRV":    "NOERROR 0 100 80 web.default.svc.clusterset.local.",
		"_http._tcp.db.default.svc.clusterset.local. AAAA":    "NOERROR",
	} {
		for _, network := range []string{"udp", "tcp", "udp"} {
			if got, _ := p.ask(question, network); got != want {
				t.Errorf("%s over %s: %s, want %s", question, network, got, want)
			}
		}
	}
	p.isBalanced(t)
	metrics := fetch(t, p.others[1], "metrics")
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
			continue
		}
		if n, err := strconv.Atoi(m[1]); err != nil || n < least {
			t.Errorf("%s, want at least %d", m[0], least)
		}
	}
	p.stop()
	if !strings.Contains(p.logged.String(), "logged web.default.svc.clusterset.local. A NOERROR") {
		t.Errorf("the log does not tell of a question:\n%s", p.logged.String())
	}
}

// isBalanced: each of the addresses comes first at times, though all answers are the one in the cache.
func (p *program) isBalanced(t *testing.T) {
	t.Helper()
	first := map[string]int{}
	for range 200 {
		_, reply := p.ask("db.default.svc.clusterset.local. A", "udp")
		at := slices.IndexFunc(reply.Answer, func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeA })
		if at >= 0 {
			first[reply.Answer[at].(*dns.A).A.String()]++
		}
	}
	if len(first) != 3 {
		t.Errorf("first of three was %v", first)
	}
}

// fetch returns a page of one of CoreDNS' web servers.
func fetch(t *testing.T, port, page string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/"+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := reply.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return string(text)
}
