// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// was begins the comment that keeps the line which we have replaced.
const was = "# was:"

// AddMulticluster returns the Corefile with the zone added to the stanza of CoreDNS' plugin kubernetes, as one of
// multi-cluster services. Where it is that already, the text is returned as it is. It is an error where the zone's questions
// do not come to such a stanza, where it is written in a way that cannot be edited line by line, or where what is marked
// as ours is not as it was added, since the edit could not be undone.
func AddMulticluster(text, zone string) (string, error) {
	if err := checkZone(zone); err != nil {
		return "", err
	}
	if _, err := RemoveMulticluster(text); err != nil {
		return "", err
	}
	blocks, err := scan(text)
	if err != nil {
		return "", err
	}
	stanzas, err := stanzasFor(blocks, zone)
	if err != nil {
		return "", err
	}
	result := lines(text)
	for _, d := range slices.Backward(stanzas) { // from the end, so that the other lines keep their numbers
		line := result[d.line-1]
		if err := editable(line, d, result); err != nil {
			return "", err
		}
		served, err := serves(d, zone)
		if err != nil {
			return "", err
		}
		if !served {
			result = slices.Replace(result, d.line-1, d.line, stanzaLines(line, zone)...)
		}
	}
	return strings.Join(result, ""), nil
}

// RemoveMulticluster returns the Corefile without what AddMulticluster has added. Without it, the text is returned as it
// is. It is an error where the marked lines are no longer as they were added.
func RemoveMulticluster(text string) (string, error) {
	found, err := regions(text, multiclusterMark)
	if err != nil {
		return "", err
	}
	result := lines(text)
	for _, r := range slices.Backward(found) {
		original, ok := restored(result[r.from:r.to])
		if !ok {
			return "", fmt.Errorf("corefile: line %d: another user has edited what is below %q: remove what is ours by hand", r.from+1, begin(multiclusterMark))
		}
		result = slices.Replace(result, r.from, r.to, original)
	}
	return strings.Join(result, ""), nil
}

// stanzasFor returns the stanzas of plugin kubernetes to which a zone's questions come.
func stanzasFor(blocks []block, zone string) ([]directive, error) {
	near := nearest(blocks, zone)
	if len(near) == 0 {
		return nil, fmt.Errorf("corefile: no server block takes the questions for %s: add %s:%s to the addresses of the one with the plugin kubernetes", zone, zone, dnsPort)
	}
	var found []directive
	for _, b := range near {
		for _, d := range b.directives {
			if d.name() == "kubernetes" {
				found = append(found, d)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("corefile: line %d: the server block that takes the questions for %s has no plugin kubernetes of its own: "+
			"where it forwards the zone, remove that first; where it imports the plugin, edit what it imports", near[0].line, zone)
	}
	return found, nil
}

// editable returns nil where a stanza begins with a line of its own.
func editable(line string, d directive, all []string) error {
	want := slices.Clone(d.words)
	if d.braced {
		want = append(want, "{")
	}
	var alone []string
	for _, t := range tokens(line) {
		alone = append(alone, t.text)
	}
	if !slices.Equal(alone, want) || d.line == len(all) {
		return fmt.Errorf("corefile: line %d: put the plugin kubernetes and its zones on a line of their own, with nothing behind the {", d.line)
	}
	if len(d.words) == 1 {
		return fmt.Errorf("corefile: line %d: the plugin kubernetes has the zones of its server block: "+
			"write them behind it, as in: kubernetes cluster.local in-addr.arpa ip6.arpa", d.line)
	}
	return nil
}

// serves reports whether a stanza has a zone as one of multi-cluster services, and an error where it has others, or has this one
// without being responsible for it, which CoreDNS refuses.
func serves(d directive, zone string) (bool, error) {
	for _, option := range d.body {
		if option[0] != "multicluster" {
			continue
		}
		if has(option[1:], zone) && has(d.words[1:], zone) {
			return true, nil
		}
		if has(option[1:], zone) {
			return false, fmt.Errorf("corefile: line %d: the plugin kubernetes has multicluster for %s, which is not among its zones: add it to them",
				d.line, zone)
		}
		return false, fmt.Errorf("corefile: line %d: the plugin kubernetes has multicluster for %v already: add %s there and to its zones, or remove it",
			d.line, option[1:], zone)
	}
	return false, nil
}

// has reports whether a zone is among others, however they are written.
func has(zones []string, zone string) bool {
	return slices.ContainsFunc(zones, func(z string) bool { return normal(z) == normal(zone) })
}

// stanzaLines returns what replaces the first line of a stanza.
func stanzaLines(line, zone string) []string {
	content := strings.TrimRight(line, "\r\n")
	eol := line[len(content):]
	indent := content[:len(content)-len(strings.TrimLeft(content, " \t"))]
	var words []string
	braced := false
	for _, t := range tokens(line) {
		if braced = t.text == "{"; !braced {
			words = append(words, t.text)
		}
	}
	if !has(words[1:], zone) {
		words = append(words, zone)
	}
	inner := indent + indent
	if indent == "" {
		inner = "    "
	}
	result := []string{
		indent + begin(multiclusterMark), indent + was + content,
		indent + strings.Join(words, " ") + " {", inner + "multicluster " + zone,
	}
	if !braced {
		result = append(result, indent+"}")
	}
	result = append(result, indent+end(multiclusterMark))
	for i := range result {
		result[i] += eol
	}
	return result
}

// restored returns the line that marked lines have replaced; false where they are not as they were added.
func restored(marked []string) (string, bool) {
	original, zone, err := replaced(marked)
	if err != nil {
		return "", false
	}
	return original, slices.Equal(stanzaLines(original, zone), marked)
}

var errForeign = errors.New("these are not the lines that were added")

// replaced returns the line that marked lines keep, and the zone that they add.
func replaced(marked []string) (original, zone string, err error) {
	if len(marked) < 5 {
		return "", "", errForeign
	}
	_, original, kept := strings.Cut(marked[1], was)
	added := strings.Fields(marked[3])
	if first := tokens(original); !kept || len(added) != 2 || len(first) == 0 || first[0].text != "kubernetes" {
		return "", "", errForeign
	}
	return original, added[1], nil
}
