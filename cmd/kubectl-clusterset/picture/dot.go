// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
)

// maxLabel is the maximum length of a label in a graph.
const maxLabel = 120

// DOT returns the clusterset as a graph in graphviz' language: an arrow from each exporter to the service, and a dashed one from
// the service to each importer that does not export it, or that reaches another exporter through gateways. If there are several
// networks, each is a box around its members, and an arrow to an importer says how this reaches the exporters.
func DOT(s assess.Status) []byte {
	var out bytes.Buffer
	services, left := shown(s)
	fmt.Fprintf(&out, "digraph clusterset {\n  label=%s;\n", quote(heading(s, len(s.Services))))
	fmt.Fprintln(&out, `  rankdir=LR; node [fontname="sans-serif", fontsize=11]; edge [fontname="sans-serif", fontsize=9];`)
	if left > 0 {
		fmt.Fprintf(&out, "  left [shape=plaintext, label=%s];\n", quote(fmt.Sprintf("%d more services are not shown", left)))
	}
	writeMembers(&out, s.Members)
	for _, service := range services {
		colour := "black"
		if problemText(service) != "" {
			colour = "orange"
		}
		fmt.Fprintf(&out, "  %s [shape=ellipse, color=%s, label=%s];\n", quote("service "+service.Key()), colour,
			quote(lines(service.Key(), strings.Join(service.Ports, ", "), problemText(service))))
		writeEdges(&out, s, service)
	}
	fmt.Fprintln(&out, "}")
	return out.Bytes()
}

func writeMembers(out *bytes.Buffer, members []assess.MemberStatus) {
	several := len(assess.Networks(members)) > 1
	network := ""
	for i, m := range byNetwork(members) {
		if several && (i == 0 || m.Network != network) {
			if i > 0 {
				fmt.Fprintln(out, "  }")
			}
			network = m.Network
			fmt.Fprintf(out, "  subgraph %s {\n  label=%s;\n", quote("cluster network "+network), quote("network "+network))
		}
		colour := "black"
		if m.State != survey.StateConnected {
			colour = "red"
		}
		fmt.Fprintf(out, "  %s [shape=box, color=%s, label=%s];\n", quote("member "+string(m.ID)), colour, quote(lines(string(m.ID), stateText(m))))
	}
	if several {
		fmt.Fprintln(out, "  }")
	}
}

func writeEdges(out *bytes.Buffer, s assess.Status, service assess.ServiceStatus) {
	node := quote("service " + service.Key())
	for _, e := range service.Exporters {
		colour := "blue"
		if disagrees(service, e.Cluster) {
			colour = "orange"
		}
		fmt.Fprintf(out, "  %s -> %s [color=%s, label=\"%d/%d\"];\n", quote("member "+string(e.Cluster)), node, colour, e.ReadyEndpoints, e.Endpoints)
	}
	for _, id := range service.Importers {
		sources, worst := sourcesOf(service, id)
		if _, exports := exporter(service, id); exports && worst == 0 {
			continue
		}
		label := ""
		if hasPaths(s) {
			label = ", label=" + quote(lines(sources...))
		}
		colour := map[string]string{faint: "gray", orange: "orange", alarm: "red"}[pathWords[worst].colour]
		fmt.Fprintf(out, "  %s -> %s [color=%s, style=dashed%s];\n", node, quote("member "+string(id)), colour, label)
	}
}

// lines joins the words that are not empty, each on a line.
func lines(words ...string) string {
	var kept []string
	for _, w := range words {
		if w != "" {
			kept = append(kept, cut(w, maxLabel))
		}
	}
	return strings.Join(kept, "\n")
}

// quote returns a quoted string of graphviz' language, in which only \n has a meaning.
func quote(text string) string {
	parts := strings.Split(text, "\n")
	for i, part := range parts {
		parts[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(printable(part))
	}
	return `"` + strings.Join(parts, `\n`) + `"`
}
