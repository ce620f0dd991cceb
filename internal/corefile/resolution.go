// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Kind says how a DNS server resolves the names of a zone.
type Kind string

// Values of Kind.
const (
	// Unserved: nothing in the configuration is for the zone.
	Unserved Kind = "Unserved"
	// Served: a plugin of the server itself serves the zone.
	Served Kind = "Served"
	// Forwarded: the server forwards the zone.
	Forwarded Kind = "Forwarded"
	// NotKnown: the configuration does not show it.
	NotKnown Kind = "NotKnown"
)

// Resolution says how a DNS server resolves the names of a zone, by its configuration.
type Resolution struct {
	Kind Kind
	// To are the addresses to which the zone is forwarded, in their order.
	To []netip.Addr
	// Why is why it is not known.
	Why string
	// In is the key of Custom that has the forward; empty if the Corefile itself has it.
	In string
}

// Custom has the files that a Corefile imports from a folder "custom", as k3s and AKS mount ConfigMap coredns-custom: their contents by name.
// A nil Custom is not known.
type Custom map[string]string

// ResolutionOf returns how CoreDNS with this Corefile resolves the names of a zone. What it imports from elsewhere than custom is not known,
// and neither are plugins that it does not know.
func ResolutionOf(text, zone string, custom Custom) Resolution {
	r := reader{zone: normalize(zone), custom: custom}
	blocks, err := r.blocks(text)
	if err != nil {
		return Resolution{Kind: NotKnown, Why: err.Error()}
	}
	result := Resolution{Kind: Unserved}
	for _, b := range longestMatches(blocks, zone) {
		result = result.with(r.resolution(b))
	}
	if result.Kind == Unserved && len(r.unread) > 0 {
		return Resolution{Kind: NotKnown, Why: "it imports " + strings.Join(unique(r.unread), ", ") + ", which was not read"}
	}
	return result
}

// with returns the resolution of two server blocks for the same zone on different ports: what one of them has for the zone.
func (r Resolution) with(other Resolution) Resolution {
	switch {
	case r.Kind == Unserved:
		return other
	case r.Kind == Forwarded && other.Kind == Forwarded:
		for _, address := range other.To {
			if !slices.Contains(r.To, address) {
				r.To = append(r.To, address)
			}
		}
	}
	return r
}

// reader reads the Corefile of a server.
type reader struct {
	zone     string
	custom   Custom
	snippets map[string]block
	// unread are the imports that could not be read.
	unread []string
}

// blocks returns the server blocks of a Corefile and of the files that it imports.
func (r *reader) blocks(text string) ([]block, error) {
	all, imports, err := scanAll(text)
	if err != nil {
		return nil, err
	}
	for _, name := range imports {
		for _, file := range r.imported(name) {
			more, _, err := scanAll(r.custom[file])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for i := range more {
				more[i].file = file
			}
			all = append(all, more...)
		}
	}
	r.snippets = map[string]block{}
	for _, b := range all {
		if b.snippet != "" {
			r.snippets[b.snippet] = b
		}
	}
	return all, nil
}

// imported returns the names of the custom files that an import names, sorted. It notes other imports.
func (r *reader) imported(name string) []string {
	pattern := path.Base(name)
	if r.custom == nil || path.Base(path.Dir(name)) != "custom" {
		r.unread = append(r.unread, name)
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.custom)), func(file string) bool {
		matches, err := path.Match(pattern, file)
		return err != nil || !matches
	})
}

// scope says which names a server block is for.
type scope string

const (
	ownZone  scope = "zone"
	allNames scope = "all names"
)

// scopeOf returns the scope of a server block that matches the zone. The block of a parent such as "local" is for the zone too, the root's is
// not.
func scopeOf(b block) scope {
	if b.addresses[0].zone == "" {
		return allNames
	}
	return ownZone
}

// resolution returns what a server block does with queries for the zone.
func (r *reader) resolution(b block) Resolution {
	result := r.directives(b.directives, scopeOf(b), b.file)
	if result.Kind == Unserved && scopeOf(b) == ownZone && len(r.unread) == 0 {
		return Resolution{Kind: NotKnown, Why: fmt.Sprintf("line %d: the server block for it has no forward", b.line)}
	}
	return result
}

// directives returns what the plugins of a server block do with queries for the zone. CoreDNS sends them to plugins that serve before it
// forwards them, in any order of the lines.
func (r *reader) directives(all []directive, of scope, file string) Resolution {
	expanded := r.expand(all, file, 0)
	for _, d := range expanded {
		if result, found := r.served(d.directive, of); found {
			return result
		}
	}
	for _, d := range expanded {
		if d.name() == "forward" && len(d.words) > 2 && r.isFor(d.words[1], of) {
			return forwarded(d)
		}
	}
	return Resolution{Kind: Unserved}
}

// placed is a directive and the custom file that has it.
type placed struct {
	directive
	file string
}

// maxImports limits how deep snippets import each other.
const maxImports = 5

// expand returns directives with those that they import in their places.
func (r *reader) expand(all []directive, file string, depth int) []placed {
	var result []placed
	for _, d := range all {
		if d.name() != "import" || len(d.words) < 2 {
			result = append(result, placed{d, file})
			continue
		}
		if snippet, ok := r.snippets[d.words[1]]; ok && depth < maxImports {
			result = append(result, r.expand(snippet.directives, cmp.Or(snippet.file, file), depth+1)...)
			continue
		}
		for _, name := range r.imported(d.words[1]) {
			blocks, err := scan(". {\n" + r.custom[name] + "\n}")
			if err != nil || len(blocks) != 1 || depth >= maxImports {
				r.unread = append(r.unread, name)
				continue
			}
			result = append(result, r.expand(blocks[0].directives, name, depth+1)...)
		}
	}
	return result
}

// served returns how a plugin that answers queries itself treats the zone, and false if it leaves the zone to others.
func (r *reader) served(d directive, of scope) (Resolution, bool) {
	switch d.name() {
	case "kubernetes":
		for _, option := range d.body {
			if option[0] == "multicluster" && containsZone(option[1:], r.zone) {
				return Resolution{Kind: Served}, true
			}
		}
	case "clusterset", "multicluster": // Tombolo's plugin, and that of the project CoreDNS
		if len(d.words) == 1 || slices.ContainsFunc(d.words[1:], func(zone string) bool { return address{zone: normalize(zone)}.matches(r.zone) }) {
			return Resolution{Kind: Served}, true
		}
	case "forward":
	case "file", "auto", "hosts", "template", "rewrite", "grpc", "etcd", "route53", "azure", "clouddns", "secondary":
		if r.mentions(d) || of == ownZone && d.name() != "rewrite" && d.name() != "hosts" {
			return Resolution{Kind: NotKnown, Why: fmt.Sprintf("line %d: what plugin %s does with it is not known", d.line, d.name())}, true
		}
	}
	return Resolution{}, false
}

// mentions reports whether a directive contains the zone.
func (r *reader) mentions(d directive) bool {
	return slices.ContainsFunc(append(slices.Clone(d.body), d.words), func(words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(word), r.zone) })
	})
}

// isFor reports whether a forward from a zone is for the reader's zone, not for all names.
func (r *reader) isFor(from string, of scope) bool {
	a := address{zone: normalize(from)}
	return a.matches(r.zone) && (of == ownZone || a.zone != "")
}

// forwarded returns the addresses of a forward.
func forwarded(d placed) Resolution {
	result := Resolution{Kind: Forwarded, In: d.file}
	for _, word := range d.words[2:] {
		to, ok := parseTarget(word)
		if !ok {
			return Resolution{Kind: NotKnown, Why: "it is forwarded to " + word, In: d.file}
		}
		result.To = append(result.To, to)
	}
	return result
}

// parseTarget returns the address of a target of a forward. It returns false for other targets: files, other protocols, other ports.
func parseTarget(word string) (netip.Addr, bool) {
	target := strings.TrimPrefix(word, "dns://")
	if to, err := netip.ParseAddr(strings.Trim(target, "[]")); err == nil {
		return to.Unmap(), true
	}
	to, err := netip.ParseAddrPort(target)
	return to.Addr().Unmap(), err == nil && strconv.Itoa(int(to.Port())) == dnsPort
}

// ResolutionOfStubs returns how kube-dns with these stub domains resolves the names of a zone: the value of stubDomains in its ConfigMap.
// Without one for the zone it is not known, because its upstream servers may serve the zone.
func ResolutionOfStubs(stubDomains, zone string) Resolution {
	var stubs map[string][]string
	if stubDomains != "" {
		if err := json.Unmarshal([]byte(stubDomains), &stubs); err != nil {
			return Resolution{Kind: NotKnown, Why: "its stubDomains cannot be parsed: " + err.Error()}
		}
	}
	for _, domain := range slices.Sorted(maps.Keys(stubs)) {
		if normalize(domain) == normalize(zone) && len(stubs[domain]) > 0 {
			return forwarded(placed{directive: directive{words: append([]string{"forward", domain}, stubs[domain]...)}})
		}
	}
	return Resolution{Kind: NotKnown, Why: "it has no stub domain " + zone}
}
