// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// shop is a zone with one service of each sort.
func shop(t testing.TB) *world {
	http := []discoveryv1.EndpointPort{slicePort("http", "TCP", 8080), slicePort("DNS", "UDP", 53)}
	return newWorld(t, options{},
		clusterSetIP("shop", "web", []string{"10.96.0.1", "fd00:96::1"},
			servicePort("http", "TCP", 80), servicePort("Metrics", "", 9090), servicePort("", "UDP", 7)),
		clusterSetIP("shop", "bare", []string{"10.96.0.2"}),
		clusterSetIP("shop", "pending", nil, servicePort("http", "TCP", 80)),
		headless("shop", "db"),
		slice("shop/db/1", "east", http, host("db-0", "10.1.0.1"), end("10.1.0.2"), unready("10.1.0.9")),
		slice("shop/db/2", "east", []discoveryv1.EndpointPort{slicePort("http", "TCP", 8080), slicePort("v6", "SCTP", 666)}, host("db-0", "fd00:1::1"), end("fd00:1::")),
		slice("shop/db/1", "west", http[:1], host("db-0", "10.2.0.1"), host("db-0", "10.2.0.2")),
		slice("shop/db/2", "west", nil, discoveryv1.Endpoint{Addresses: []string{"10.1.0.2"}}), // of unknown readiness
		headless("dark", "none"),
		slice("dark/none/1", "east", http, unready("10.3.0.1")),
		slice("shop/orphan/1", "east", http, end("10.4.0.1")),
	)
}

const (
	nodata   = "NOERROR\nclusterset.local. SOA"
	nxdomain = "NXDOMAIN\nclusterset.local. SOA"
)

// spec: N1, N2, N3, N4, N5, N6
func TestAnswers(t *testing.T) {
	w := shop(t)
	for question, want := range map[string]string{
		// the zone itself
		"clusterset.local. SOA":                 "NOERROR\nclusterset.local. SOA",
		"clusterset.local. NS":                  "NOERROR\nclusterset.local. NS ns.dns." + testZone + "\nns.dns.clusterset.local. A 192.0.2.53\nns.dns.clusterset.local. AAAA 2001:db8::53",
		"clusterset.local. A":                   nodata,
		"dns.clusterset.local. A":               nodata,
		"ns.dns.clusterset.local. A":            "NOERROR\nns.dns.clusterset.local. A 192.0.2.53",
		"ns.dns.clusterset.local. AAAA":         "NOERROR\nns.dns.clusterset.local. AAAA 2001:db8::53",
		"ns.dns.clusterset.local. TXT":          nodata,
		"x.ns.dns.clusterset.local. A":          nxdomain,
		"dns-version.clusterset.local. TXT":     "NOERROR\ndns-version.clusterset.local. TXT \"1.0.0\"",
		"dns-version.clusterset.local. A":       nodata,
		"x.dns-version.clusterset.local. A":     nxdomain,
		"svc.clusterset.local. A":               nodata,
		"pod.clusterset.local. A":               nxdomain,
		"10-1-0-1.shop.pod.clusterset.local. A": nxdomain,
		"shop.svc.clusterset.local. A":          nodata,
		"dark.svc.clusterset.local. A":          nxdomain,
		"other.svc.clusterset.local. A":         nxdomain,

		// ClusterSetIP
		"web.shop.svc.clusterset.local. A":    "NOERROR\nweb.shop.svc.clusterset.local. A 10.96.0.1",
		"web.shop.svc.clusterset.local. AAAA": "NOERROR\nweb.shop.svc.clusterset.local. AAAA fd00:96::1",
		"web.shop.svc.clusterset.local. TXT":  nodata,
		"web.shop.svc.clusterset.local. ANY":  "NOERROR\nweb.shop.svc.clusterset.local. A 10.96.0.1",
		"web.shop.svc.clusterset.local. SRV": srvText("web.shop.svc.clusterset.local.",
			"7 web", "80 web", "9090 web") + webGlue,
		"_http._tcp.web.shop.svc.clusterset.local. SRV":    srvText("_http._tcp.web.shop.svc.clusterset.local.", "80 web") + webGlue,
		"_metrics._tcp.web.shop.svc.clusterset.local. SRV": srvText("_metrics._tcp.web.shop.svc.clusterset.local.", "9090 web") + webGlue,
		"_http._tcp.web.shop.svc.clusterset.local. A":      nodata,
		"_http._udp.web.shop.svc.clusterset.local. SRV":    nxdomain,
		"_tcp.web.shop.svc.clusterset.local. SRV":          nodata,
		"_udp.web.shop.svc.clusterset.local. SRV":          nxdomain, // the only UDP port has no name
		"http._tcp.web.shop.svc.clusterset.local. SRV":     nxdomain,
		"_http.tcp.web.shop.svc.clusterset.local. SRV":     nxdomain,
		"_._udp.web.shop.svc.clusterset.local. SRV":        nxdomain,
		"x._http._tcp.web.shop.svc.clusterset.local. SRV":  nxdomain,
		"east.web.shop.svc.clusterset.local. A":            nxdomain,
		"10-96-0-1.east.web.shop.svc.clusterset.local. A":  nxdomain,
		"bare.shop.svc.clusterset.local. A":                "NOERROR\nbare.shop.svc.clusterset.local. A 10.96.0.2",
		"bare.shop.svc.clusterset.local. AAAA":             nodata,
		"bare.shop.svc.clusterset.local. SRV":              nodata,
		"_tcp.bare.shop.svc.clusterset.local. A":           nxdomain,
		"pending.shop.svc.clusterset.local. A":             nxdomain,

		// headless
		"db.shop.svc.clusterset.local. A": "NOERROR\n" + strings.Join([]string{
			"db.shop.svc.clusterset.local. A 10.1.0.1", "db.shop.svc.clusterset.local. A 10.1.0.2",
			"db.shop.svc.clusterset.local. A 10.2.0.1", "db.shop.svc.clusterset.local. A 10.2.0.2",
		}, "\n"),
		"db.shop.svc.clusterset.local. AAAA": "NOERROR\ndb.shop.svc.clusterset.local. AAAA fd00:1::\ndb.shop.svc.clusterset.local. AAAA fd00:1::1",
		"db.shop.svc.clusterset.local. SRV": srvText("db.shop.svc.clusterset.local.",
			"53 10-1-0-2.east.db", "53 db-0.east.db", "666 db-0.east.db", "666 fd00-1--0.east.db",
			"8080 10-1-0-2.east.db", "8080 db-0.east.db", "8080 db-0.west.db", "8080 fd00-1--0.east.db") + dbGlue(),
		"_http._tcp.db.shop.svc.clusterset.local. SRV": srvText("_http._tcp.db.shop.svc.clusterset.local.",
			"8080 10-1-0-2.east.db", "8080 db-0.east.db", "8080 db-0.west.db", "8080 fd00-1--0.east.db") + dbGlue(),
		"_dns._udp.db.shop.svc.clusterset.local. SRV": srvText("_dns._udp.db.shop.svc.clusterset.local.",
			"53 10-1-0-2.east.db", "53 db-0.east.db") + "\n10-1-0-2.east.db.shop.svc.clusterset.local. A 10.1.0.2" +
			"\ndb-0.east.db.shop.svc.clusterset.local. A 10.1.0.1\ndb-0.east.db.shop.svc.clusterset.local. AAAA fd00:1::1",
		"_udp.db.shop.svc.clusterset.local. A":              nodata,
		"east.db.shop.svc.clusterset.local. A":              nodata,
		"west.db.shop.svc.clusterset.local. A":              nodata,
		"north.db.shop.svc.clusterset.local. A":             nxdomain,
		"db-0.east.db.shop.svc.clusterset.local. A":         "NOERROR\ndb-0.east.db.shop.svc.clusterset.local. A 10.1.0.1",
		"db-0.east.db.shop.svc.clusterset.local. AAAA":      "NOERROR\ndb-0.east.db.shop.svc.clusterset.local. AAAA fd00:1::1",
		"db-0.east.db.shop.svc.clusterset.local. SRV":       nodata,
		"db-0.west.db.shop.svc.clusterset.local. A":         "NOERROR\ndb-0.west.db.shop.svc.clusterset.local. A 10.2.0.1\ndb-0.west.db.shop.svc.clusterset.local. A 10.2.0.2",
		"db-1.east.db.shop.svc.clusterset.local. A":         nxdomain,
		"10-1-0-2.east.db.shop.svc.clusterset.local. A":     "NOERROR\n10-1-0-2.east.db.shop.svc.clusterset.local. A 10.1.0.2",
		"10-1-0-2.east.db.shop.svc.clusterset.local. AAAA":  nodata,
		"10-1-0-2.west.db.shop.svc.clusterset.local. ANY":   "NOERROR\n10-1-0-2.west.db.shop.svc.clusterset.local. A 10.1.0.2",
		"10-1-0-1.east.db.shop.svc.clusterset.local. A":     nxdomain, // it has a hostname
		"10-1-0-9.east.db.shop.svc.clusterset.local. A":     nxdomain, // it is not ready
		"fd00-1--0.east.db.shop.svc.clusterset.local. AAAA": "NOERROR\nfd00-1--0.east.db.shop.svc.clusterset.local. AAAA fd00:1::",
		"fd00-1--.east.db.shop.svc.clusterset.local. AAAA":  nxdomain,
		"x.db-0.east.db.shop.svc.clusterset.local. A":       nxdomain,
		"none.dark.svc.clusterset.local. A":                 nxdomain,
		"orphan.shop.svc.clusterset.local. A":               nxdomain,
		`x\.web.shop.svc.clusterset.local. A`:               nxdomain,
	} {
		name, typ, _ := strings.Cut(question, " ")
		reply := w.ask(name, dns.StringToType[typ])
		check.Equal(t, question, want, text(reply))
		if !reply.Authoritative || reply.Truncated {
			t.Errorf("%s: authoritative %t, truncated %t", question, reply.Authoritative, reply.Truncated)
		}
	}
}

const webGlue = "\nweb.shop.svc.clusterset.local. A 10.96.0.1\nweb.shop.svc.clusterset.local. AAAA fd00:96::1"

func dbGlue() string {
	lines := []string{
		"10-1-0-2.east.db A 10.1.0.2", "db-0.east.db A 10.1.0.1", "db-0.east.db AAAA fd00:1::1",
		"db-0.west.db A 10.2.0.1", "db-0.west.db A 10.2.0.2", "fd00-1--0.east.db AAAA fd00:1::",
	}
	var text strings.Builder
	for _, line := range lines {
		target, data, _ := strings.Cut(line, " ")
		text.WriteString("\n" + target + ".shop.svc.clusterset.local. " + data)
	}
	return text.String()
}

// srvText returns the answer with SRV records "<port> <target>", the targets relative to shop.svc.clusterset.local.
func srvText(owner string, records ...string) string {
	lines := []string{"NOERROR"}
	for _, r := range records {
		number, target, _ := strings.Cut(r, " ")
		lines = append(lines, owner+" SRV 0 100 "+number+" "+target+".shop.svc.clusterset.local.")
	}
	return strings.Join(lines, "\n")
}
