// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"slices"
	"strings"
)

// entry is a documented difference: the replies for names of these shapes differ in these outcomes. Each shape with each type must
// occur.
type entry struct {
	names    string // the shapes, for the list
	shapes   []shape
	reason   string
	outcomes []outcomes
}

// outcomes are what both plugins reply for some types.
type outcomes struct{ types, ours, theirs string }

const everyType = "A AAAA SRV TXT PTR NS ANY HTTPS" // but SOA, which has entries of its own

func everyTypeBut(qtype string) string { return strings.ReplaceAll(everyType, qtype+" ", "") }

// each returns each of the shapes below each of the prefixes.
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
	clusterSetIP         shape = "<ClusterSetIP service>"
	withoutProtocol      shape = "<ClusterSetIP service with a port of no protocol>"
	withoutPorts         shape = "<ClusterSetIP service without ports>"
	withoutIPs           shape = "<ClusterSetIP service without addresses>"
	headless             shape = "<headless service>"
	headlessWithoutPorts shape = "<headless service without ports>"
	withoutNumber        shape = "<headless service with a port without a number>"
	ofHostNames          shape = "<headless service of host names>"
	withoutCluster       shape = "<headless service of no cluster>"
	clusterWithDot       shape = "<headless service of a cluster with a dot>"
	notReady             shape = "<headless service without ready endpoints>"
	withoutImport        shape = "<endpoints without a ServiceImport>"
	serviceWithDot       shape = "<service with a dot>"
	pod                  shape = "<address>.<namespace>.pod"
)

var (
	self     = []shape{""}
	portName = []shape{"_<port>._<protocol>."}
	protocol = []shape{"_<protocol>."}
	parent   = []shape{"<cluster>."}
	endpoint = []shape{"<endpoint>.<cluster>."}
	// invalidPort are names similar to those of ports.
	invalidPort = []shape{"<port>._<protocol>.", "_<port>.<protocol>.", "_<port>._.", "_._<protocol>."}
)

const (
	labelsOfPorts = "Both labels of a port's name are an underscore and the port's name or protocol (RFC 2782; KEP-1645, DNS specification)."
	endpointNames = "Endpoints have names in headless services only (KEP-1645, DNS specification): the addresses behind a ClusterSetIP are not for clients."
)

// entries are all differences from CoreDNS' own plugin "kubernetes" with "multicluster".
var entries = []entry{
	{
		"`<cluster>.<headless service>`, `_<protocol>.<service>`, `dns`",
		slices.Concat(each(parent, headless, headlessWithoutPorts, withoutNumber), each(protocol, clusterSetIP, withoutProtocol, headless), []shape{"dns"}),
		"A name with names below it exists, even without records: NXDOMAIN would deny all names below (RFC 8020, section 2; RFC 4592, section 2.2.2).",
		[]outcomes{{everyType, "NODATA", "NXDOMAIN"}},
	},
	{
		"the zone, `svc`, `<namespace>.svc`",
		[]shape{"the zone", "the zone, in mixed case", "svc", "<namespace>"},
		"A name exists for all types or for none (RFC 2308, section 2.2; RFC 8020, section 2).",
		[]outcomes{{"TXT", "NODATA", "NXDOMAIN"}},
	},
	{
		"`dns-version`",
		[]shape{"dns-version"},
		"The version is that of the Multi-Cluster Services DNS specification, 1.0.0 (KEP-1645); 1.1.0 is that of the DNS specification of a single cluster.",
		[]outcomes{{"TXT", "dns-version.clusterset.local.\t28800\tin\ttxt\t\"1.0.0\"", "dns-version.clusterset.local.\t28800\tin\ttxt\t\"1.1.0\""}},
	},
	{
		"`dns-version`",
		[]shape{"dns-version"},
		"The name has a TXT record, so it exists for all types (RFC 8020, section 2), and one RRset is an answer to ANY (RFC 8482, section 4.1).",
		[]outcomes{{"A AAAA SRV PTR NS HTTPS", "NODATA", "NXDOMAIN"}, {"ANY", "records", "NXDOMAIN"}},
	},
	{
		"the zone",
		[]shape{"the zone", "the zone, in mixed case"},
		"A zone has NS records at its apex (RFC 1034, section 4.2.1). CoreDNS' own has none if it is bound to an address.",
		[]outcomes{{"NS", "records", "NODATA"}},
	},
	{
		"`ns.dns`",
		[]shape{"ns.dns"},
		"The name server that the SOA record names has an address (RFC 1035, section 3.3.13), and its name exists for all types (RFC 8020, section 2). CoreDNS' own has no address if it is bound to one.",
		[]outcomes{{"A ANY", "records", "NODATA"}, {"TXT PTR", "NODATA", "NXDOMAIN"}},
	},
	{
		"`ns.dns`, in mixed case",
		[]shape{"ns.dns, in mixed case"},
		"Names compare without regard to case (RFC 4343, section 3).",
		[]outcomes{{"A ANY", "records", "NXDOMAIN"}, {"AAAA SRV TXT PTR NS HTTPS", "NODATA", "NXDOMAIN"}},
	},
	{
		"the zone",
		[]shape{"the zone", "the zone, in mixed case"},
		"The serial number increases with each change of the zone (RFC 1035, section 3.3.13). That of CoreDNS' own stays 0, so secondaries never notice a change.",
		[]outcomes{{"SOA", "serial number", "serial number 0"}},
	},
	{
		"the zone, `<service>`, `_<port>._<protocol>.<service>`, `<endpoint>.<cluster>.<headless service>`",
		slices.Concat(each(self, clusterSetIP, withoutProtocol, headless, headlessWithoutPorts, withoutNumber),
			each(endpoint, headless, headlessWithoutPorts, withoutNumber),
			each(portName, clusterSetIP, headless), []shape{"the zone", "the zone, in mixed case"}),
		"NODATA for ANY means that the name has no records of any type; one RRset is a sufficient answer (RFC 8482, section 4.1).",
		[]outcomes{{"ANY", "records", "NODATA"}},
	},
	{
		"`<ClusterSetIP service>` without ports",
		[]shape{withoutPorts},
		"A ClusterSetIP service has address records for each of its IPs, with or without ports (KEP-1645, DNS specification: ClusterSetIP services), so its name exists for all types.",
		[]outcomes{{"A AAAA ANY", "records", "NXDOMAIN"}, {"A AAAA SRV TXT PTR NS HTTPS", "NODATA", "NXDOMAIN"}},
	},
	{
		"`_<port>._tcp.<ClusterSetIP service>`, the port without a protocol",
		each(portName, withoutProtocol),
		"A port without a protocol is a TCP port (KEP-1645, ServicePort: the default is TCP), so its name exists for all types.",
		[]outcomes{{"SRV ANY", "records", "NXDOMAIN"}, {"A AAAA TXT PTR NS HTTPS", "NODATA", "NXDOMAIN"}},
	},
	{
		"`_<port>._<protocol>.<service>`",
		each(portName, clusterSetIP, headless),
		"The name of a port has only SRV records (KEP-1645, DNS specification; RFC 2782).",
		[]outcomes{{"A AAAA", "NODATA", "records"}},
	},
	{
		"`<endpoint>.<cluster>.<headless service>`",
		each(endpoint, headless),
		"The name of an endpoint has only address records: SRV records are at the service and its ports (KEP-1645, DNS specification: headless services).",
		[]outcomes{{"SRV", "NODATA", "records"}},
	},
	{
		"`<service>`, `_<port>._<protocol>.<headless service>`",
		append(each(self, clusterSetIP, withoutProtocol, headless), each(portName, clusterSetIP, headless)...),
		"Equal weights share the load equally, whatever they are (RFC 2782). A fixed one leaves the other records unchanged if an endpoint is added or removed.",
		[]outcomes{{"SRV", "weight 100", "a share of 100 as weight"}},
	},
	{
		"`<ClusterSetIP service>` without addresses, its ports",
		each(slices.Concat(self, portName, invalidPort), withoutIPs),
		"A service that has no address yet has no records, and a name without records and without names below it does not exist (RFC 8020, section 2). CoreDNS' own denies it for TXT only.",
		[]outcomes{{everyTypeBut("TXT"), "NXDOMAIN", "NODATA"}},
	},
	{
		"`pod`, `<namespace>.pod`, `<namespace>.svc` without services",
		[]shape{"<namespace> without services", "<namespace>.pod", "pod"},
		"No name in the zone is below (RFC 8020, section 2): the DNS specification of KEP-1645 has no names of pods, and a namespace exists if it has services. CoreDNS' own denies it for TXT only.",
		[]outcomes{{everyTypeBut("TXT"), "NXDOMAIN", "NODATA"}},
	},
	{
		"`<address>.<namespace>.pod`, and names below",
		[]shape{pod, "below " + pod},
		"Pods are not part of the clusterset's zone (KEP-1645, DNS specification): the name would lead to any address that it contains.",
		[]outcomes{{"A AAAA SRV", "NXDOMAIN", "records"}, {"A AAAA TXT PTR NS ANY HTTPS", "NXDOMAIN", "NODATA"}},
	},
	{
		"`<port>._<protocol>.<service>`, `_<port>.<protocol>.<service>`, `_<port>._.<service>`, `_._<protocol>.<service>` of a ClusterSetIP service",
		append(each(invalidPort, clusterSetIP), "_<port>._."+withoutProtocol),
		labelsOfPorts,
		[]outcomes{{"A AAAA SRV", "NXDOMAIN", "records"}, {"A AAAA TXT PTR NS ANY HTTPS", "NXDOMAIN", "NODATA"}},
	},
	{
		"the same of a headless service",
		each(invalidPort, headless),
		labelsOfPorts,
		[]outcomes{{"A AAAA SRV", "NXDOMAIN", "records"}, {"AAAA TXT PTR NS ANY HTTPS", "NXDOMAIN", "NODATA"}},
	},
	{
		"`<endpoint>.<cluster>.<ClusterSetIP service>`",
		each(endpoint, clusterSetIP),
		endpointNames,
		[]outcomes{{"A SRV", "NXDOMAIN", "records"}, {"AAAA TXT PTR NS ANY HTTPS", "NXDOMAIN", "NODATA"}},
	},
	{
		"the same, the service's port without a protocol",
		each(endpoint, withoutProtocol),
		endpointNames,
		[]outcomes{{"A", "NXDOMAIN", "records"}, {"AAAA SRV TXT PTR NS ANY HTTPS", "NXDOMAIN", "NODATA"}},
	},
	{
		"`_<port>._<protocol>.<headless service>`, the port without a number",
		each(slices.Concat(portName, invalidPort), withoutNumber),
		"An SRV record needs a port number, so a port without a number (discovery/v1: all ports) has no name.",
		[]outcomes{{"A", "NXDOMAIN", "records"}, {"AAAA SRV TXT PTR NS ANY HTTPS", "NXDOMAIN", "NODATA"}},
	},
	{
		"`<headless service>` of slices of host names, its endpoints and ports",
		each(slices.Concat(self, endpoint, portName, invalidPort), ofHostNames),
		"EndpointSlices of host names have no addresses to serve, and the type FQDN has no semantics (discovery/v1). CoreDNS' own serves CNAME records, which lead out of the zone to any name that an exporter chooses.",
		[]outcomes{{"A AAAA", "NXDOMAIN", "records"}, {"SRV TXT PTR NS ANY HTTPS", "NXDOMAIN", "NODATA"}},
	},
	{
		"`<headless service>` of slices without a cluster, its endpoints and ports",
		append(each(slices.Concat(self, portName, invalidPort), withoutCluster), "<endpoint>."+withoutCluster),
		"An EndpointSlice without the label of its source cluster is not imported (KEP-1645: EndpointSlices), and its endpoints have no names. CoreDNS' own builds SRV targets with an empty label, which no message can contain, so clients get no reply.",
		[]outcomes{{"A", "NXDOMAIN", "records"}, {"SRV", "NXDOMAIN", "no reply"}, {"AAAA TXT PTR NS ANY HTTPS", "NXDOMAIN", "NODATA"}},
	},
	{
		"`<headless service>` of a cluster whose ID has a dot, its ports",
		each(slices.Concat(self, portName, invalidPort), clusterWithDot),
		"The ID of a cluster is one label (KEP-2149; RFC 1123). CoreDNS' own serves SRV targets that it then denies.",
		[]outcomes{{"A SRV", "NXDOMAIN", "records"}, {"AAAA TXT PTR NS ANY HTTPS", "NXDOMAIN", "NODATA"}},
	},
	{
		"each name that does not exist",
		absent(),
		"A name that does not exist is denied for every type (RFC 2308, section 2.1). CoreDNS' own replies NODATA to every SOA query below the apex.",
		[]outcomes{{"SOA", "NXDOMAIN", "NODATA"}},
	},
}

// absent are the shapes of names that do not exist.
func absent() []shape {
	return slices.Concat(
		[]shape{
			unknown, pod, "below " + pod, "pod", "<namespace>.pod", "<namespace> without services", withoutImport, notReady,
			"<endpoint>." + withoutCluster,
		},
		each(slices.Concat(self, portName, invalidPort), withoutIPs, withoutCluster, clusterWithDot, ofHostNames),
		each(slices.Concat(self, portName, invalidPort, protocol), serviceWithDot),
		each(invalidPort, clusterSetIP, withoutProtocol, headless, withoutNumber),
		each(portName, withoutNumber),
		each(protocol, withoutIPs, withoutNumber, withoutCluster, clusterWithDot, ofHostNames),
		each(slices.Concat(parent, endpoint), clusterSetIP, withoutProtocol, withoutImport, clusterWithDot, ofHostNames),
	)
}
