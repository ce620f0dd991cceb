// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// pathWords are the words for paths, from the best to the worst.
var pathWords = []struct {
	path         assess.Path
	text, colour string
}{
	{assess.PathDirect, "direct", faint},
	{assess.PathGateways, "through gateways", faint},
	{assess.PathNotKnown, "through gateways, not known whether they are reached", orange},
	{assess.PathGatewaysUnreached, "gateways are not reached", alarm},
	{assess.PathNone, "cannot be used", alarm},
}

// rank returns the place of a path in pathWords. A path that is not there is not known.
func rank(path assess.Path) int {
	for i, word := range pathWords {
		if word.path == path {
			return i
		}
	}
	return 2
}

// sourcesOf returns how a member reaches the other exporters of a service, a few words for each path, and the rank of the worst path.
func sourcesOf(s assess.ServiceStatus, importer clusterset.ClusterID) ([]string, int) {
	exporters, worst := make([][]clusterset.ClusterID, len(pathWords)), 0
	for _, e := range s.Exporters {
		if e.Cluster == importer {
			continue
		}
		found := 0
		for _, p := range s.Paths {
			if p.Importer == importer && p.Exporter == e.Cluster {
				found = rank(p.Path)
			}
		}
		exporters[found] = append(exporters[found], e.Cluster)
		worst = max(worst, found)
	}
	var words []string
	for i, ids := range exporters {
		if len(ids) > 0 {
			words = append(words, fmt.Sprintf("%s: %s", pathWords[i].text, joined(ids)))
		}
	}
	return words, worst
}

func joined(ids []clusterset.ClusterID) string {
	const most = 3
	var words []string
	for _, id := range ids[:min(most, len(ids))] {
		words = append(words, string(id))
	}
	if len(ids) > most {
		words = append(words, fmt.Sprintf("%d more", len(ids)-most))
	}
	return strings.Join(words, ", ")
}

// hasPaths reports whether members are in several networks, or reach exporters in another manner than directly.
func hasPaths(s assess.Status) bool {
	return len(assess.Networks(s.Members)) > 1 || slices.ContainsFunc(s.Services, func(service assess.ServiceStatus) bool { return len(service.Paths) > 0 })
}

// byNetwork returns the members sorted by their networks.
func byNetwork(members []assess.MemberStatus) []assess.MemberStatus {
	result := slices.Clone(members)
	slices.SortStableFunc(result, func(a, b assess.MemberStatus) int { return cmp.Compare(a.Network, b.Network) })
	return result
}

// drawNetworks draws the networks above the members, if there are several, and a line between them.
func (m *matrix) drawNetworks() {
	if len(assess.Networks(m.status.Members)) < 2 {
		return
	}
	for i, member := range m.status.Members {
		if i > 0 && member.Network == m.status.Members[i-1].Network {
			continue
		}
		x := m.column(i) - columnWidth/2
		m.text(x+4, titleHeight+22, `font-size="11" font-weight="bold" fill="`+ink+`"`, "network "+member.Network, maxMemberName)
		fmt.Fprintf(m, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2"/>`+"\n", x, titleHeight+10, x, m.end, faint)
	}
}

// drawImporter draws a member that imports a service, in a manner that shows the rank of the worst path to the exporters.
func (m *matrix) drawImporter(x, y, worst int, sources ...string) {
	colour, fill := pathWords[worst].colour, "white"
	if worst == 0 {
		fill = colour
	}
	fmt.Fprintf(m, `<circle cx="%d" cy="%d" r="4" fill="%s"`, x, y, fill)
	if worst == 0 {
		fmt.Fprintln(m, "/>")
		return
	}
	fmt.Fprintf(m, ` stroke="%s" stroke-width="2"><title>%s</title></circle>`+"\n", colour, escaped(cut(strings.Join(sources, "; "), maxLabel)))
	if colour == alarm {
		fmt.Fprintf(m, `<path d="M%d %dl8 8m0 -8l-8 8" stroke="%s" stroke-width="2"/>`+"\n", x-4, y-4, colour)
	}
}

// drawPathLegend explains how importers are drawn.
func (m *matrix) drawPathLegend(x, y int) {
	for _, path := range pathWords[1:] {
		m.drawImporter(x+12, y, rank(path.path), path.text)
		m.text(x+24, y+4, `font-size="11" fill="`+faint+`"`, path.text, maxLabel)
		x += 60 + 6*len(path.text)
	}
}
