// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"strings"

	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
)

// dnsServersDifferAsDocumented: the answers of both DNS plugins about a service with an address and a headless one are equal,
// except for what "Differences from CoreDNS' own" in coredns-plugin/clusterset/README.md lists.
func dnsServersDifferAsDocumented(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.offer("web", 1)
	a.deployStateful("db", 1)
	a.create(headless("db"), export("db"))
	web, db := s.name("web"), s.name("db")
	webPod, dbPod := podIP("A", a.pods("web")[0]), podIP("A", a.pods("db")[0])
	dashed := strings.ReplaceAll(webPod, ".", "-")

	for _, p := range []*place{a, b} {
		ip := p.imported("web").Spec.IPs
		for _, q := range []struct{ kind, name, both, ours, coreDNS string }{
			{kind: "A", name: web, both: "NOERROR " + ip[0]},
			{kind: "AAAA", name: web, both: "NOERROR " + ip[1]},
			{kind: "TXT", name: web, both: "NOERROR"},
			{kind: "SRV", name: "_http._tcp." + web, ours: "NOERROR 0 100 80 " + web + ".", coreDNS: "NOERROR 0 50 80 " + web + "."},
			{kind: "SRV", name: "_none._tcp." + web, both: "NXDOMAIN"},
			{kind: "A", name: db, both: "NOERROR " + dbPod},
			{kind: "A", name: "db-0.a." + db, both: "NOERROR " + dbPod},
			{kind: "A", name: "db-0.b." + db, both: "NXDOMAIN"},
			{kind: "A", name: "db-1.a." + db, both: "NXDOMAIN"},
			{kind: "A", name: s.name("none"), both: "NXDOMAIN"},
			{kind: "A", name: "none.svc.clusterset.local", both: "NXDOMAIN"},
			{kind: "A", name: "kube-node-lease.svc.clusterset.local", ours: "NXDOMAIN", coreDNS: "NOERROR"},

			{kind: "TXT", name: "dns-version.clusterset.local", ours: "NOERROR 1.0.0", coreDNS: "NOERROR 1.1.0"},
			// What lies above a name exists, and has nothing itself.
			{kind: "A", name: "a." + db, ours: "NOERROR", coreDNS: "NXDOMAIN"},
			{kind: "A", name: "_tcp." + web, ours: "NOERROR", coreDNS: "NXDOMAIN"},
			// A port has SRV records, a pod has addresses.
			{kind: "A", name: "_http._tcp." + web, ours: "NOERROR", coreDNS: "NOERROR " + ip[0]},
			{kind: "SRV", name: "db-0.a." + db, ours: "NOERROR", coreDNS: "NOERROR 0 25 8080 db-0.a." + db + "."},
			// Pods behind an address of the clusterset have no names.
			{kind: "A", name: dashed + ".a." + web, ours: "NXDOMAIN", coreDNS: "NOERROR " + webPod},
			{kind: "A", name: dashed + "." + s.namespace + ".pod.clusterset.local", ours: "NXDOMAIN", coreDNS: "NOERROR " + webPod},
		} {
			want := map[complete.DNS]string{complete.OurPlugin: q.ours, complete.CoreDNSPlugin: q.coreDNS}[s.Options.Installation(p.cluster.Name).DNS]
			p.awaitDNS(q.kind, q.name, q.both+want)
		}
	}
	// Reverse names are the cluster's own, whoever serves the clusterset: those of the derived Services.
	cluster := "." + s.namespace + ".svc.cluster.local."
	b.awaitDNS("PTR", reverse(b.imported("web").Spec.IPs[0]), "NOERROR "+b.derived("web").Name+cluster)
	b.awaitDNS("PTR", reverse(dbPod), "NOERROR db-0."+b.derived("db").Name+cluster)
}

// reverse returns the name of an IPv4 address.
func reverse(ip string) string {
	var a, b, c, d int
	if _, err := fmt.Sscanf(ip, "%d.%d.%d.%d", &a, &b, &c, &d); err != nil {
		return "no-address." + ip
	}
	return fmt.Sprintf("%d.%d.%d.%d.in-addr.arpa", d, c, b, a)
}
