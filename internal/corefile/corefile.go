// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package corefile edits an administrator's Corefile, so that the cluster's CoreDNS serves the zone of the clusterset: it forwards
// the zone to another DNS server, or serves it with its own plugin kubernetes. Edits add marked lines and can be undone. No other
// byte changes. The package reads the text with CoreDNS' own lexer, and does not follow imports.
package corefile

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The marks of added lines.
const (
	forwardMark      = "tombolo forward"
	multiclusterMark = "tombolo multicluster"
)

// AddForward returns the Corefile with a server block that forwards the zone to these addresses, at most one of each IP family. The
// block listens on the ports on which the Corefile would otherwise receive queries for the zone. It replaces a block that was added
// before; with the same arguments, nothing changes. It returns an error if the Corefile already serves the zone, or cannot be
// parsed.
func AddForward(text, zone string, to ...netip.Addr) (string, error) {
	if err := checkForward(zone, to); err != nil {
		return "", err
	}
	unmarked, position, err := cutForward(text)
	if err != nil {
		return "", err
	}
	if strings.HasSuffix(unmarked, "\r") {
		return "", fmt.Errorf("corefile: the last line ends with a carriage return alone: put a line feed behind it")
	}
	blocks, err := scan(unmarked)
	if err != nil {
		return "", err
	}
	if len(blocks) == 0 {
		return "", fmt.Errorf("corefile: there is no server block: is this the Corefile of the cluster's CoreDNS?")
	}
	for _, b := range blocks {
		if b.noBraces {
			return "", fmt.Errorf("corefile: line %d: the server block has no braces, so no other can follow: put { behind its addresses and } at its end", b.line)
		}
	}
	serving := longestMatches(blocks, zone)
	for _, b := range serving {
		if slices.ContainsFunc(b.addresses, func(a address) bool { return a.zone == normalize(zone) }) {
			return "", fmt.Errorf("corefile: line %d: there is a server block for %s already, which is not ours: remove it, or keep it and add none", b.line, zone)
		}
	}
	return position.insert(unmarked, forwardLines(zone, to, serving)), nil
}

// RemoveForward returns the Corefile without the block of AddForward. If there is none, the text is unchanged.
func RemoveForward(text string) (string, error) {
	unmarked, _, err := cutForward(text)
	return unmarked, err
}

// Retarget returns the Corefile with these addresses in a forward of the zone that another user has written, in the place of its own. No other
// byte changes. It returns an error if there is no such forward, or more than one.
func Retarget(text, zone string, to ...netip.Addr) (string, error) {
	if err := checkForward(zone, to); err != nil {
		return "", err
	}
	blocks, err := scan(text)
	if err != nil {
		return "", err
	}
	r := reader{zone: normalize(zone)}
	var found []directive
	for _, b := range longestMatches(blocks, zone) {
		for _, d := range b.directives {
			if d.name() == "forward" && len(d.words) > 2 && r.isFor(d.words[1], scopeOf(b)) {
				found = append(found, d)
			}
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("corefile: there are %d forwards of %s: write %s into them by hand", len(found), zone, listOf(to))
	}
	all, d := lines(text), found[0]
	line := all[d.line-1]
	start := strings.Index(line, d.words[2])
	last := d.words[len(d.words)-1]
	end := strings.LastIndex(line, last) + len(last)
	if start < 0 || end < start || !slices.Equal(strings.Fields(line[start:end]), d.words[2:]) {
		return "", fmt.Errorf("corefile: line %d: write %s into this forward by hand", d.line, listOf(to))
	}
	all[d.line-1] = line[:start] + listOf(to) + line[end:]
	return strings.Join(all, ""), nil
}

// ForwardBlock returns the server block that AddForward adds to a Corefile which listens on port 53, for administrators who edit it
// by hand.
func ForwardBlock(zone string, to ...netip.Addr) (string, error) {
	if err := checkForward(zone, to); err != nil {
		return "", err
	}
	return strings.Join(forwardLines(zone, to, nil), "\n") + "\n", nil
}

func checkForward(zone string, to []netip.Addr) error {
	if err := checkZone(zone); err != nil {
		return err
	}
	if len(to) == 0 || len(to) > 2 || len(to) == 2 && to[0].Is4() == to[1].Is4() {
		return fmt.Errorf("corefile: forward to %v: it takes one address, or one of each IP family", to)
	}
	for _, a := range to {
		if !a.IsValid() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.Zone() != "" {
			return fmt.Errorf("corefile: forward to %s: that is no address of a Service", a)
		}
	}
	return nil
}

func checkZone(zone string) error {
	if messages := validation.IsDNS1123Subdomain(zone); len(messages) > 0 {
		return fmt.Errorf("corefile: zone %q: %s", zone, strings.Join(messages, "; "))
	}
	return nil
}

// forwardLines returns the lines of the marked block, without line ends. Its ports and bind directives are those of the blocks that
// would otherwise receive queries for the zone.
func forwardLines(zone string, to []netip.Addr, serving []block) []string {
	var keys, binds []string
	for _, b := range serving {
		for _, a := range b.addresses {
			keys = append(keys, zone+":"+a.port)
		}
		for _, d := range b.directives {
			if d.name() == "bind" {
				binds = append(binds, "    "+strings.Join(d.words, " "))
			}
		}
	}
	if len(keys) == 0 {
		keys = []string{zone + ":" + dnsPort}
	}
	return slices.Concat(
		[]string{begin(forwardMark), strings.Join(unique(keys), " ") + " {"},
		unique(binds),
		[]string{"    errors", "    cache 5", "    forward . " + listOf(to), "}", end(forwardMark)},
	)
}

// listOf returns addresses as a forward has them.
func listOf(to []netip.Addr) string {
	words := make([]string, 0, len(to))
	for _, a := range to {
		words = append(words, a.String())
	}
	return strings.Join(words, " ")
}

// unique returns the strings without duplicates, in their order.
func unique(in []string) []string {
	var out []string
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
