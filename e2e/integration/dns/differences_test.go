// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"slices"
	"strings"
	"testing"
)

// entry says that replies to questions for some types at names of some shapes differ, and why. Each shape with each type
// must be seen to differ so.
type entry struct {
	names        string // the shapes, for the README
	shapes       []shape
	types        string
	in           string // the part of the reply; empty: the code, or that there are records
	ours, theirs string
	reason       string
}

const everyType = "A AAAA SRV TXT PTR NS ANY HTTPS" // but SOA, which has an entry of its own

// each returns the shapes below others: each prefix with each of them.
func each(prefixes []shape, of ...shape) []shape {
	var all []shape
	for _, prefix := range prefixes {
		for _, s := range of {
			all = append(all, prefix+s)
		}
	}
	return all
}

const (
	clusterSetIP shape = "<ClusterSetIP service>"
	untold       shape = "<ClusterSetIP service with a port of no protocol>"
	portless     shape = "<ClusterSetIP service without ports>"
	pending      shape = "<ClusterSetIP service without addresses>"
	headless     shape = "<headless service>"
	headlessBare shape = "<headless service without ports>"
	numberless   shape = "<headless service with a port without a number>"
	hostNames    shape = "<headless service of host names>"
	nowhere      shape = "<headless service of no cluster>"
	dotted       shape = "<headless service of a cluster with a dot>"
	dark         shape = "<headless service without ready endpoints>"
	orphan       shape = "<endpoints without a ServiceImport>"
	dottedName   shape = "<service with a dot>"
	address      shape = "<address>.<namespace>.pod"
)

var (
	self     = []shape{""}
	portName = []shape{"_<port>._<protocol>."}
	protocol = []shape{"_<protocol>."}
	cluster  = []shape{"<cluster>."}
	endpoint = []shape{"<endpoint>.<cluster>."}
	// alike are names that look like those of ports, and are none.
	alike = []shape{"<port>._<protocol>.", "_<port>.<protocol>.", "_<port>._.", "_._<protocol>."}
)

// entries are all differences from CoreDNS' own plugin "kubernetes" with "multicluster".
var entries = []entry{
	{
		"`<cluster>.<headless service>`, `_<protocol>.<service>`, `dns`",
		slices.Concat(each(cluster, headless, headlessBare, numberless), each(protocol, clusterSetIP, untold, headless), []shape{"dns"}),
		everyType, "", "NODATA", "NXDOMAIN",
		"A name with others below it exists, whatever it has itself: denying it denies all below (RFC 8020, section 2; RFC 4592, section 2.2.2).",
	},
	{
		"the zone, `svc`, `<namespace>.svc`",
		[]shape{"the zone", "the zone, in mixed case", "svc", "<namespace>"},
		"TXT", "", "NODATA", "NXDOMAIN",
		"A name exists for all types or for none (RFC 2308, section 2.2; RFC 8020, section 2).",
	},
	{
		"`dns-version`",
		[]shape{"dns-version"},
		"TXT", "answer",
		"dns-version.clusterset.local.\t28800\tin\ttxt\t\"1.0.0\"", "dns-version.clusterset.local.\t28800\tin\ttxt\t\"1.1.0\"",
		"The version is that of the Multi-Cluster Services DNS specification, 1.0.0 (KEP-1645); 1.1.0 is that of the DNS specification of a single cluster.",
	},
	{
		"`dns-version`",
		[]shape{"dns-version"},
		"A AAAA SRV PTR NS HTTPS", "", "NODATA", "NXDOMAIN",
		"A name exists for all types or for none (RFC 2308, section 2.2; RFC 8020, section 2).",
	},
	{
		"`dns-version`",
		[]shape{"dns-version"},
		"ANY", "", "records", "NXDOMAIN",
		"The name has a TXT record, and one RRset is an answer to ANY (RFC 8482, section 4.1).",
	},
	{
		"the zone",
		[]shape{"the zone", "the zone, in mixed case"},
		"NS", "", "records", "NODATA",
		"A zone has NS records at its apex (RFC 1034, section 4.2.1). CoreDNS' own has none where it is bound to an address.",
	},
	{
		"`ns.dns`",
		[]shape{"ns.dns"},
		"A ANY", "", "records", "NODATA",
		"The name server that the SOA record names has an address (RFC 1035, section 3.3.13). CoreDNS' own has none where it is bound to one.",
	},
	{
		"`ns.dns`",
		[]shape{"ns.dns"},
		"TXT PTR", "", "NODATA", "NXDOMAIN",
		"A name exists for all types or for none (RFC 2308, section 2.2; RFC 8020, section 2).",
	},
	{
		"`ns.dns`, in mixed case",
		[]shape{"ns.dns, in mixed case"},
		"A ANY", "", "records", "NXDOMAIN",
		"Names compare without regard to case (RFC 4343, section 3).",
	},
	{
		"`ns.dns`, in mixed case",
		[]shape{"ns.dns, in mixed case"},
		"AAAA SRV TXT PTR NS HTTPS", "", "NODATA", "NXDOMAIN",
		"Names compare without regard to case (RFC 4343, section 3), and a name exists for all types or for none (RFC 8020, section 2).",
	},
	{
		"the zone",
		[]shape{"the zone", "the zone, in mixed case"},
		"SOA", "answer, its numbers", "serial number", "serial number 0",
		"The serial number grows with each change of the zone (RFC 1035, section 3.3.13). CoreDNS' own stays 0: secondaries never learn of a change.",
	},
	{
		"the zone, `<service>`, `_<port>._<protocol>.<service>`, `<endpoint>.<cluster>.<headless service>`",
		slices.Concat(each(self, clusterSetIP, untold, headless, headlessBare, numberless), each(endpoint, headless, headlessBare, numberless),
			each(portName, clusterSetIP, headless), []shape{"the zone", "the zone, in mixed case"}),
		"ANY", "", "records", "NODATA",
		"NODATA for ANY says that the name has no records of any type; one RRset is answer enough (RFC 8482, section 4.1).",
	},
	{
		"`<ClusterSetIP service>` without ports",
		[]shape{portless},
		"A AAAA ANY", "", "records", "NXDOMAIN",
		"A ClusterSetIP service has address records for each of its IPs, whether or not it has ports (KEP-1645, DNS specification: ClusterSetIP services).",
	},
	{
		"`<ClusterSetIP service>` without ports",
		[]shape{portless},
		"A AAAA SRV TXT PTR NS HTTPS", "", "NODATA", "NXDOMAIN",
		"A service without ports has addresses, so its name exists for every type (RFC 8020, section 2).",
	},
	{
		"`_<port>._tcp.<ClusterSetIP service>`, the port without a protocol",
		each(portName, untold), "SRV ANY", "", "records", "NXDOMAIN",
		"A port without a protocol is a TCP port (KEP-1645, ServicePort: the default is TCP).",
	},
	{
		"`_<port>._tcp.<ClusterSetIP service>`, the port without a protocol",
		each(portName, untold), "A AAAA TXT PTR NS HTTPS", "", "NODATA", "NXDOMAIN",
		"A port without a protocol is a TCP port (KEP-1645, ServicePort), so its name exists for every type.",
	},
	{
		"`_<port>._<protocol>.<service>`",
		each(portName, clusterSetIP, headless), "A AAAA", "", "NODATA", "records",
		"The name of a port has SRV records and no others (KEP-1645, DNS specification; RFC 2782).",
	},
	{
		"`<endpoint>.<cluster>.<headless service>`",
		each(endpoint, headless), "SRV", "", "NODATA", "records",
		"The name of an endpoint has address records and no others: SRV records are at the service and its ports (KEP-1645, DNS specification: headless services).",
	},
	{
		"`<service>`, `_<port>._<protocol>.<headless service>`",
		append(each(self, clusterSetIP, untold, headless), each(portName, clusterSetIP, headless)...),
		"SRV", "answer, its numbers", "weight 100", "a share of 100 as weight",
		"Equal weights share the load equally, whatever they are (RFC 2782). A fixed one leaves the other records as they are when an endpoint comes or goes.",
	},
	{
		"`<ClusterSetIP service>` without addresses, its ports",
		each(slices.Concat(self, portName, alike), pending),
		everyTypeBut("TXT"), "", "NXDOMAIN", "NODATA",
		"A service that has no address yet has no records, and a name without records and without names below it does not exist (RFC 8020, section 2). CoreDNS' own denies it for TXT only.",
	},
	{
		"`pod`, `<namespace>.pod`, `<namespace>.svc` without services",
		[]shape{"<namespace> that holds no service", "<namespace>.pod", "pod"},
		everyTypeBut("TXT"), "", "NXDOMAIN", "NODATA",
		"No name in the zone lies below (RFC 8020, section 2): the DNS specification of KEP-1645 knows no pods, and a namespace is in it for its services. CoreDNS' own denies it for TXT only.",
	},
	{
		"`<address>.<namespace>.pod`, and names below",
		[]shape{address, "below " + address},
		"A AAAA SRV", "", "NXDOMAIN", "records",
		"Pods are no part of the clusterset's zone (KEP-1645, DNS specification): the name would lead to whatever address it spells.",
	},
	{
		"`<address>.<namespace>.pod`, and names below",
		[]shape{address, "below " + address},
		"A AAAA TXT PTR NS ANY HTTPS", "", "NXDOMAIN", "NODATA",
		"Pods are no part of the clusterset's zone (KEP-1645, DNS specification).",
	},
	{
		"`<port>._<protocol>.<service>`, `_<port>.<protocol>.<service>`, `_<port>._.<service>`, `_._<protocol>.<service>`",
		append(each(alike, clusterSetIP, headless), "_<port>._."+untold), "A AAAA SRV", "", "NXDOMAIN", "records",
		"Both labels of a port's name are an underscore and the port's name or protocol (RFC 2782; KEP-1645, DNS specification).",
	},
	{
		"the same of a ClusterSetIP service",
		append(each(alike, clusterSetIP), "_<port>._."+untold), "A AAAA TXT PTR NS ANY HTTPS", "", "NXDOMAIN", "NODATA",
		"Both labels of a port's name are an underscore and the port's name or protocol (RFC 2782; KEP-1645, DNS specification).",
	},
	{
		"the same of a headless service",
		each(alike, headless), "AAAA TXT PTR NS ANY HTTPS", "", "NXDOMAIN", "NODATA",
		"Both labels of a port's name are an underscore and the port's name or protocol (RFC 2782; KEP-1645, DNS specification).",
	},
	{
		"`<endpoint>.<cluster>.<ClusterSetIP service>`",
		each(endpoint, clusterSetIP, untold), "A", "", "NXDOMAIN", "records",
		"Endpoints have names in headless services only (KEP-1645, DNS specification): the addresses behind a ClusterSetIP are not for clients.",
	},
	{
		"`<endpoint>.<cluster>.<ClusterSetIP service>`",
		each(endpoint, clusterSetIP), "SRV", "", "NXDOMAIN", "records",
		"Endpoints have names in headless services only (KEP-1645, DNS specification).",
	},
	{
		"`<endpoint>.<cluster>.<ClusterSetIP service>`; `<endpoint>.<headless service>`, the slice without a cluster",
		append(each(endpoint, clusterSetIP, untold), each([]shape{"<endpoint>."}, nowhere)...),
		"AAAA TXT PTR NS ANY HTTPS", "", "NXDOMAIN", "NODATA",
		"Endpoints have names in headless services only, below the ID of their cluster (KEP-1645, DNS specification).",
	},
	{
		"`<endpoint>.<cluster>.<ClusterSetIP service>`, the service's port without a protocol",
		each(endpoint, untold), "SRV", "", "NXDOMAIN", "NODATA",
		"Endpoints have names in headless services only (KEP-1645, DNS specification).",
	},
	{
		"`_<port>._<protocol>.<headless service>`, the port without a number",
		each(slices.Concat(portName, alike), numberless), "A", "", "NXDOMAIN", "records",
		"An SRV record needs a port number, so a port without a number (discovery/v1: all ports) has no name.",
	},
	{
		"`_<port>._<protocol>.<headless service>`, the port without a number",
		each(slices.Concat(portName, alike), numberless), "AAAA SRV TXT PTR NS ANY HTTPS", "", "NXDOMAIN", "NODATA",
		"An SRV record needs a port number, so a port without a number (discovery/v1: all ports) has no name.",
	},
	{
		"`<headless service>` of slices of host names, its endpoints and ports",
		each(slices.Concat(self, endpoint, portName, alike), hostNames),
		"A AAAA", "", "NXDOMAIN", "records",
		"EndpointSlices of host names have no addresses to serve, and the type FQDN no meaning (discovery/v1). CoreDNS' own makes CNAME records of them, which lead out of the zone to wherever an exporter says.",
	},
	{
		"`<headless service>` of slices of host names, its endpoints and ports",
		each(slices.Concat(self, endpoint, portName, alike), hostNames),
		"SRV TXT PTR NS ANY HTTPS", "", "NXDOMAIN", "NODATA",
		"EndpointSlices of host names have no addresses to serve, and the type FQDN no meaning (discovery/v1).",
	},
	{
		"`<headless service>` of slices without a cluster, its endpoints and ports",
		append(each(slices.Concat(self, portName, alike), nowhere), "<endpoint>."+nowhere), "A", "", "NXDOMAIN", "records",
		"An EndpointSlice without the label of its source cluster is not imported from any (KEP-1645: EndpointSlices), and has no place among the names of endpoints.",
	},
	{
		"`<headless service>` of slices without a cluster, its endpoints and ports",
		append(each(slices.Concat(self, portName, alike), nowhere), "<endpoint>."+nowhere), "SRV", "", "NXDOMAIN", "no reply",
		"An EndpointSlice without the label of its source cluster is not imported from any (KEP-1645: EndpointSlices). CoreDNS' own makes a target with an empty label, which no message can hold, and the client waits in vain.",
	},
	{
		"`<headless service>` of a cluster whose ID has a dot, its ports",
		each(slices.Concat(self, portName, alike), dotted), "A SRV", "", "NXDOMAIN", "records",
		"The ID of a cluster is one label (KEP-2149; RFC 1123). CoreDNS' own gives out SRV targets that it then denies.",
	},
	{
		"`<headless service>` of slices without a cluster or of one whose ID has a dot, its ports",
		each(slices.Concat(self, portName, alike), nowhere, dotted), "AAAA TXT PTR NS ANY HTTPS", "", "NXDOMAIN", "NODATA",
		"Endpoints of a cluster without an ID, or with one that is no label, are not served (KEP-1645: EndpointSlices; KEP-2149).",
	},
	{
		"each name that does not exist",
		absent(), "SOA", "", "NXDOMAIN", "NODATA",
		"A name that does not exist is denied for every type (RFC 2308, section 2.1). CoreDNS' own says NODATA to any question for SOA below the apex.",
	},
}

// absent are the shapes of names that do not exist.
func absent() []shape {
	return slices.Concat(
		[]shape{
			noSuchName, address, "below " + address, "pod", "<namespace>.pod", "<namespace> that holds no service", orphan, dark,
			"<endpoint>." + nowhere,
		},
		each(slices.Concat(self, portName, alike), pending, nowhere, dotted, hostNames),
		each(slices.Concat(self, portName, alike, protocol), dottedName),
		each(alike, clusterSetIP, untold, headless, numberless),
		each(portName, numberless),
		each(protocol, pending, numberless, nowhere, dotted, hostNames),
		each(slices.Concat(cluster, endpoint), clusterSetIP, untold, orphan, dotted, hostNames),
	)
}

func everyTypeBut(kind string) string { return strings.ReplaceAll(everyType, kind+" ", "") }

// expanded returns the reason of each difference.
func expanded(t *testing.T) map[difference]string {
	t.Helper()
	all := map[difference]string{}
	for _, e := range entries {
		for _, s := range e.shapes {
			for kind := range strings.FieldsSeq(e.types) {
				d := difference{shape: s, kind: kind, in: e.in, ours: e.ours, theirs: e.theirs}
				if all[d] != "" {
					t.Errorf("two entries have the difference %q", d)
				}
				all[d] = e.reason
			}
		}
	}
	return all
}
