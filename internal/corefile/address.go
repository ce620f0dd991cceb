// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package corefile

import "strings"

// dnsPort is the default port of DNS, and of a server block without a port.
const dnsPort = "53"

// address is the zone and port of a server block, such as "cluster.local:53".
type address struct{ zone, port string }

// parseAddress parses an address of a server block. It returns false for other protocols, such as "tls://.", and for values that are
// not known here, such as environment variables.
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
	return address{zone: normalize(zone), port: port}, true
}

// normalize returns a zone in lower case without a final dot; the root zone is empty.
func normalize(zone string) string { return strings.TrimSuffix(strings.ToLower(zone), ".") }

// matches reports whether a is the zone or a parent of it.
func (a address) matches(zone string) bool {
	return a.zone == "" || a.zone == normalize(zone) || strings.HasSuffix(normalize(zone), "."+a.zone)
}

// longestMatches returns the blocks that receive queries for a zone. As in CoreDNS, these are the blocks with the longest matching
// zone. Each result contains only the matching addresses.
func longestMatches(blocks []block, zone string) []block {
	var found []block
	longest := -1
	for _, b := range blocks {
		for _, a := range b.addresses {
			if a.matches(zone) {
				longest = max(longest, len(a.zone))
			}
		}
	}
	for _, b := range blocks {
		var matching []address
		for _, a := range b.addresses {
			if a.matches(zone) && len(a.zone) == longest {
				matching = append(matching, a)
			}
		}
		if len(matching) > 0 {
			b.addresses = matching
			found = append(found, b)
		}
	}
	return found
}
