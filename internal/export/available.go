// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Available returns the number of available endpoints of each port, at most 2 (W2). A pod with addresses of both IP families is in two
// slices, so the family with more endpoints counts.
func Available(ports []clusterset.Port, sources []clusterset.Slice) clusterset.Availability {
	result := clusterset.Availability{}
	for _, port := range ports {
		most, ofFamily := 0, map[discoveryv1.AddressType]int{}
		for _, found := range available(port, sources) {
			ofFamily[found.family]++
			most = max(most, ofFamily[found.family])
		}
		result[port.ID()] = int32(min(most, clusterset.MaxAvailable))
	}
	return result
}

// Terminating returns the ports whose available endpoints terminate, because none is ready; nil if there are none.
func Terminating(ports []clusterset.Port, sources []clusterset.Slice) map[clusterset.PortID]bool {
	var result map[clusterset.PortID]bool
	for _, port := range ports {
		if found := available(port, sources); len(found) > 0 && !found[0].endpoint.IsReady() {
			if result == nil {
				result = map[clusterset.PortID]bool{}
			}
			result[port.ID()] = true
		}
	}
	return result
}

// AvailableAddresses returns where the available endpoints of a port listen: the first address of each.
func AvailableAddresses(port clusterset.Port, sources []clusterset.Slice) []netip.AddrPort {
	all := available(port, sources)
	result := make([]netip.AddrPort, 0, len(all))
	for _, found := range all {
		if len(found.endpoint.Addresses) == 0 || found.port == 0 {
			continue
		}
		if address, err := netip.ParseAddr(found.endpoint.Addresses[0]); err == nil {
			result = append(result, netip.AddrPortFrom(address, uint16(found.port)))
		}
	}
	return result
}

type listening struct {
	endpoint *clusterset.Endpoint
	family   discoveryv1.AddressType
	port     int32
}

// available returns the endpoints of a port that are ready, or those that serve while they terminate if none is ready, as kube-proxy
// decides.
func available(port clusterset.Port, sources []clusterset.Slice) []listening {
	all := distinct(port, sources)
	ready, terminating := make([]listening, 0, len(all)), []listening(nil)
	for _, found := range all {
		switch endpoint := found.endpoint; {
		case endpoint.IsReady():
			ready = append(ready, found)
		case endpoint.Serving != clusterset.False && endpoint.Terminating == clusterset.True:
			terminating = append(terminating, found)
		}
	}
	if len(ready) == 0 {
		return terminating
	}
	return ready
}

// distinct returns the endpoints of a port, in their order, and those with one address and port number as one: Kubernetes may list an
// endpoint in two slices for a moment, and a new pod may have the address of one that terminates. As in kube-proxy, the one that does not
// terminate counts; kube-proxy does not define which of several such, here it is a ready one.
func distinct(port clusterset.Port, sources []clusterset.Slice) []listening {
	number := 0
	for i := range sources {
		number += len(sources[i].Endpoints)
	}
	result, at := make([]listening, 0, number), make(map[socket]int, number)
	for _, source := range sources {
		for _, p := range source.Ports {
			if p.Name != port.Name || p.Protocol != port.Protocol {
				continue
			}
			for i := range source.Endpoints {
				found := listening{&source.Endpoints[i], source.AddressType, p.Port}
				socket, known := socketOf(found)
				before, again := at[socket]
				switch {
				case !known || !again:
					at[socket], result = len(result), append(result, found)
				case found.rank() > result[before].rank():
					result[before] = found
				}
			}
			break // as kube-proxy, the first one of that name
		}
	}
	return result
}

// socket is where an endpoint listens: its first address. text is set if that cannot be parsed.
type socket struct {
	address netip.Addr
	text    string
	port    int32
}

// socketOf returns where an endpoint listens, and false if it has no address.
func socketOf(l listening) (socket, bool) {
	if len(l.endpoint.Addresses) == 0 {
		return socket{}, false
	}
	first := l.endpoint.Addresses[0]
	if address, err := netip.ParseAddr(first); err == nil {
		return socket{address: address.Unmap(), port: l.port}, true
	}
	return socket{text: first, port: l.port}, true
}

// rank orders the endpoints of one socket: the highest counts.
func (l listening) rank() int {
	switch {
	case l.endpoint.Terminating == clusterset.True:
		return 0
	case !l.endpoint.IsReady():
		return 1
	}
	return 2
}
