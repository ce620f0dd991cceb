// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package corefile

import "strings"

// dnsPort is where DNS is asked for, and a server block listens that names no port.
const dnsPort = "53"

// address is what a server block serves, and where: "cluster.local:53".
type address struct{ zone, port string }

// parseAddress reads one as it stands before a server block. It returns false for what is no plain DNS, such as
// "tls://.", or cannot be known, such as an environment variable.
func parseAddress(text string) (address, bool) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		rest = text
	} else if scheme != "dns" {
		return address{}, false
	}
	zone, port, found := strings.Cut(rest, ":")
	if !found {
		port = dnsPort
	}
	if text == "" || port == "" || strings.ContainsAny(rest, "{}()[]/") || strings.Contains(port, ":") {
		return address{}, false
	}
	return address{zone: normal(zone), port: port}, true
}

// normal returns a zone in lower case and with no dot at its end; the root is the empty one.
func normal(zone string) string { return strings.TrimSuffix(strings.ToLower(zone), ".") }

// takes reports whether the questions of a zone come to an address, unless another one is nearer.
func (a address) takes(zone string) bool {
	return a.zone == "" || a.zone == normal(zone) || strings.HasSuffix(normal(zone), "."+a.zone)
}

// nearest returns the blocks to which a zone's questions come, as CoreDNS does: those with the longest name. Each has only
// those addresses by which they come.
func nearest(blocks []block, zone string) []block {
	var found []block
	best := -1
	for _, b := range blocks {
		for _, a := range b.addresses {
			if a.takes(zone) {
				best = max(best, len(a.zone))
			}
		}
	}
	for _, b := range blocks {
		var near []address
		for _, a := range b.addresses {
			if a.takes(zone) && len(a.zone) == best {
				near = append(near, a)
			}
		}
		if len(near) > 0 {
			b.addresses = near
			found = append(found, b)
		}
	}
	return found
}
