// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// port is a port of SRV records.
type port struct {
	name     string // lower case; empty if it has none
	protocol string // "tcp", "udp" or "sctp"
	number   uint16
}

// addPort appends a port unless it is refused.
func (n Names) addPort(h *header, ports *[]port, name string, protocol corev1.Protocol, number int32) {
	p := port{name: lowered(name), protocol: "tcp"}
	if protocol != "" {
		p.protocol = lowered(string(protocol))
	}
	switch p.protocol {
	case "tcp", "udp", "sctp":
	default:
		h.refusef(RefusedPort, "protocol %q is unknown", protocol)
		return
	}
	if len(validation.IsValidPortNum(int(number))) > 0 {
		h.refusef(RefusedPort, "%d is no port", number)
		return
	}
	p.number = uint16(number)
	// The label is the name behind an underscore (RFC 2782), and no label has more than 63 characters.
	if name != "" && (len(validation.IsDNS1123Label("x"+p.name)) > 0 || !n.fit(h.key, "_"+p.name, "_"+p.protocol)) {
		h.refusef(RefusedPort, "port name %q cannot be a name in DNS", name)
		return
	}
	*ports = append(*ports, p)
}

// maxPorts is the number of ports of an object that are served. An API server accepts 20,000, and each may have an SRV record for
// each endpoint.
const maxPorts = 1000

// servedPorts returns at most maxPorts ports in a fixed order, without duplicates.
func (h *header) servedPorts(ports []port) []port {
	sorted := sortedPorts(ports)
	if len(sorted) > maxPorts {
		h.refusef(RefusedPort, "%d ports: the first %d are served", len(sorted), maxPorts)
		sorted = clipped(sorted[:maxPorts])
	}
	return sorted
}

// sortedPorts returns ports in a fixed order and without duplicates.
func sortedPorts(ports []port) []port {
	slices.SortFunc(ports, comparePorts)
	return clipped(slices.Compact(ports))
}

func comparePorts(a, b port) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.protocol, b.protocol), cmp.Compare(a.number, b.number))
}

// everyPort selects all ports of a list.
func everyPort(list []port) []port { return list }

// portsNamed returns a function that selects the ports with a name and a protocol in a sorted list.
func portsNamed(name, protocol string) func([]port) []port {
	return func(list []port) []port {
		begin, _ := slices.BinarySearchFunc(list, port{name: name, protocol: protocol}, comparePorts)
		end := begin
		for end < len(list) && list[end].name == name && list[end].protocol == protocol {
			end++
		}
		return list[begin:end]
	}
}
