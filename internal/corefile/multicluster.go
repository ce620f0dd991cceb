// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// originalMark begins the comment that contains the replaced line.
const originalMark = "# was:"

// AddMulticluster returns the Corefile with the zone added to CoreDNS' plugin kubernetes, in its zones and its option multicluster.
// If both contain it already, the text is unchanged. It returns an error if queries for the zone do not reach the plugin, if the
// plugin cannot be edited line by line, or if marked lines were edited, because then the edit could not be undone.
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
		if err := checkEditable(line, d, result); err != nil {
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

// RemoveMulticluster returns the Corefile without the lines of AddMulticluster. If there are none, the text is unchanged. It returns
// an error if the marked lines were edited.
func RemoveMulticluster(text string) (string, error) {
	found, err := regions(text, multiclusterMark)
	if err != nil {
		return "", err
	}
	result := lines(text)
	for _, r := range slices.Backward(found) {
		original, ok := originalLine(result[r.from:r.to])
		if !ok {
			return "", fmt.Errorf("corefile: line %d: another user has edited what is below %q: remove what is ours by hand", r.from+1, begin(multiclusterMark))
		}
		result = slices.Replace(result, r.from, r.to, original)
	}
	return strings.Join(result, ""), nil
}

// stanzasFor returns the kubernetes directives that receive queries for a zone.
func stanzasFor(blocks []block, zone string) ([]directive, error) {
	matching := longestMatches(blocks, zone)
	if len(matching) == 0 {
		return nil, fmt.Errorf("corefile: no server block takes the questions for %s: add %s:%s to the addresses of the one with the plugin kubernetes", zone, zone, dnsPort)
	}
	var found []directive
	for _, b := range matching {
		for _, d := range b.directives {
			if d.name() == "kubernetes" {
				found = append(found, d)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("corefile: line %d: the server block that takes the questions for %s has no plugin kubernetes of its own: "+
			"where it forwards the zone, remove that first; where it imports the plugin, edit what it imports", matching[0].line, zone)
	}
	return found, nil
}

// checkEditable returns an error if the first line of a kubernetes directive contains anything else.
func checkEditable(line string, d directive, all []string) error {
	want := slices.Clone(d.words)
	if d.braced {
		want = append(want, "{")
	}
	var got []string
	for _, t := range tokens(line) {
		got = append(got, t.text)
	}
	if !slices.Equal(got, want) || d.line == len(all) {
		return fmt.Errorf("corefile: line %d: put the plugin kubernetes and its zones on a line of their own, with nothing behind the {", d.line)
	}
	if len(d.words) == 1 {
		return fmt.Errorf("corefile: line %d: the plugin kubernetes has the zones of its server block: "+
			"write them behind it, as in: kubernetes cluster.local in-addr.arpa ip6.arpa", d.line)
	}
	return nil
}

// serves reports whether a kubernetes directive has the zone in its option multicluster. It returns an error if the option contains
// only other zones, or if the directive does not contain the zone, which CoreDNS refuses.
func serves(d directive, zone string) (bool, error) {
	for _, option := range d.body {
		if option[0] != "multicluster" {
			continue
		}
		if containsZone(option[1:], zone) && containsZone(d.words[1:], zone) {
			return true, nil
		}
		if containsZone(option[1:], zone) {
			return false, fmt.Errorf("corefile: line %d: the plugin kubernetes has multicluster for %s, which is not among its zones: add it to them",
				d.line, zone)
		}
		return false, fmt.Errorf("corefile: line %d: the plugin kubernetes has multicluster for %v already: add %s there and to its zones, or remove it",
			d.line, option[1:], zone)
	}
	return false, nil
}

// containsZone reports whether a list contains a zone, regardless of case and a final dot.
func containsZone(zones []string, zone string) bool {
	return slices.ContainsFunc(zones, func(z string) bool { return normalize(z) == normalize(zone) })
}

// stanzaLines returns the lines that replace the first line of a kubernetes directive.
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
	if !containsZone(words[1:], zone) {
		words = append(words, zone)
	}
	inner := indent + indent
	if indent == "" {
		inner = "    "
	}
	result := []string{
		indent + begin(multiclusterMark), indent + originalMark + content,
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

// originalLine returns the line that marked lines have replaced, and false if the marked lines were edited.
func originalLine(marked []string) (string, bool) {
	original, zone, err := parseMarked(marked)
	if err != nil {
		return "", false
	}
	return original, slices.Equal(stanzaLines(original, zone), marked)
}

var errEdited = errors.New("these are not the lines that were added")

// parseMarked returns the original line and the added zone of marked lines.
func parseMarked(marked []string) (original, zone string, err error) {
	if len(marked) < 5 {
		return "", "", errEdited
	}
	_, original, kept := strings.Cut(marked[1], originalMark)
	added := strings.Fields(marked[3])
	if first := tokens(original); !kept || len(added) != 2 || len(first) == 0 || first[0].text != "kubernetes" {
		return "", "", errEdited
	}
	return original, added[1], nil
}
