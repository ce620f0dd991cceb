// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Limits of the tables, unless all is requested.
const (
	maxListedServices = 50
	problemsPerReason = 10
)

// statusPrinter prints a Status as text.
type statusPrinter struct {
	out      io.Writer
	paint    func(colour, string) string
	output   format
	services serviceFilter
}

func (p statusPrinter) write(s survey.Status) {
	p.problems(s.Problems)
	fmt.Fprintf(p.out, "\n%s\n", membersTitle(s))
	p.members(s.Members).write(p.out)
	p.unknownDNS(s.Members)
	title := "SERVICES"
	if !s.IsHubRead() {
		title = "SERVICES of these"
	}
	fmt.Fprintf(p.out, "\n%s (%d)\n", title, len(s.Services))
	shown := p.shown(s)
	if len(shown) > 0 {
		p.serviceTable(shown).write(p.out)
	}
	if rest := len(s.Services) - len(shown); rest > 0 {
		fmt.Fprintf(p.out, "  %d more without problems are not shown: --services all lists them\n", rest)
	}
}

// membersTitle returns the title of the table of members.
func membersTitle(s survey.Status) string {
	if s.IsHubRead() {
		version := ""
		if s.HubVersion != "" {
			version = " of version " + plain(s.HubVersion)
		}
		return fmt.Sprintf("MEMBERS (%d), by the hub at %s%s", len(s.Members), plain(s.Hub), version)
	}
	return fmt.Sprintf("MEMBERS that were read (%d)", len(s.Members))
}

// problems prints the problems. It limits the number for each reason unless all is requested.
func (p statusPrinter) problems(problems []survey.Problem) {
	if len(problems) == 0 {
		fmt.Fprintln(p.out, p.paint(green, "No problems."))
		return
	}
	fmt.Fprintf(p.out, "PROBLEMS (%d)\n", len(problems))
	count, left := map[survey.Reason]int{}, 0
	for _, problem := range problems {
		count[problem.Reason]++
		if count[problem.Reason] > problemsPerReason && p.output != formatWide {
			left++
			continue
		}
		fmt.Fprintln(p.out, "  "+p.problem(problem))
		if problem.Next != "" {
			fmt.Fprintln(p.out, "     -> "+plain(problem.Next))
		}
	}
	if left > 0 {
		fmt.Fprintf(p.out, "  %d more of the same kinds are not shown: -o wide lists them\n", left)
	}
}

func (p statusPrinter) problem(problem survey.Problem) string {
	marks := map[survey.Severity]string{survey.SeverityError: p.paint(red, "ERROR"), survey.SeverityWarning: p.paint(yellow, "WARN ")}
	return marks[problem.Severity] + " " + string(problem.Reason) + subjectOf(problem) + ": " + plain(problem.Message)
}

// subjectOf returns the member and the service of a problem.
func subjectOf(problem survey.Problem) string {
	var words []string
	for _, word := range []string{string(problem.Member), problem.Service} {
		if word != "" {
			words = append(words, plain(word))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " " + strings.Join(words, " ")
}

func (p statusPrinter) members(members []survey.MemberStatus) *table {
	t := &table{header: []string{"ID", "STATE", "LAST HEARTBEAT", "VERSION", "PUBLICATION", "EXPORTS", "ENDPOINTS", "IMPORTS", "PENDING DELETIONS", "DNS", "CONTEXT"}}
	networks := survey.Networks(members)
	if len(networks) > 1 {
		t.header = append(t.header, "NETWORK")
	}
	for _, m := range members {
		lastHeartbeat := "never"
		switch {
		case m.State == survey.StateUnknown:
			lastHeartbeat = "?"
		case m.SilentSeconds != nil:
			lastHeartbeat = duration.HumanDuration(m.Silence()) + " ago"
		}
		row := []string{
			string(m.ID), stateWords[m.State], lastHeartbeat, m.Version, m.Publication, strconv.Itoa(m.Exports),
			endpointCount{m.ReadyEndpoints, m.Endpoints, m.AtLeast}.String(), optional(m.Imports), optional(m.PendingDeletions), dnsWords[m.DNS], m.Context,
		}
		if len(networks) > 1 {
			row = append(row, m.Network)
		}
		t.add(row...)
	}
	return t
}

var stateWords = map[survey.State]string{
	survey.StateConnected: "connected", survey.StateSilent: "SILENT", survey.StateNeverConnected: "NO HEARTBEAT", survey.StateUnknown: "?",
}

var dnsWords = map[survey.DNSState]string{
	survey.DNSForwarded: "forwarded", survey.DNSServed: "served", survey.DNSStale: "STALE", survey.DNSNotSet: "NOT SET", survey.DNSNotKnown: "?", "": "?",
}

// unknownDNS prints why it is not known what the DNS of members does.
func (p statusPrinter) unknownDNS(members []survey.MemberStatus) {
	for _, m := range members {
		if m.DNS == survey.DNSNotKnown {
			fmt.Fprintf(p.out, "  %s: %s\n", m.ID, plain(m.DNSMessage))
		}
	}
}

// endpointCount are the numbers of ready endpoints and of all. atLeast is true if there may be more.
type endpointCount struct {
	ready, all int
	atLeast    bool
}

// String returns the numbers as in "2/3". If there may be more, it returns "2+", and "?" if nothing is known.
func (c endpointCount) String() string {
	switch {
	case !c.atLeast:
		return fmt.Sprintf("%d/%d", c.ready, c.all)
	case c.all == 0:
		return "?"
	}
	return fmt.Sprintf("%d+", c.ready)
}

func optional(n *int) string {
	if n == nil {
		return "?"
	}
	return strconv.Itoa(*n)
}

// shown returns the services to list.
func (p statusPrinter) shown(s survey.Status) []survey.ServiceStatus {
	if len(s.Services) <= maxListedServices || p.services == allServices || p.output == formatWide {
		return s.Services
	}
	troubled := map[string]bool{}
	for _, problem := range s.Problems {
		troubled[problem.Service] = true
	}
	var result []survey.ServiceStatus
	for _, service := range s.Services {
		if troubled[service.Key()] {
			result = append(result, service)
		}
	}
	return result
}

func (p statusPrinter) serviceTable(services []survey.ServiceStatus) *table {
	t := &table{header: []string{"NAMESPACE", "NAME", "TYPE", "PORTS", "EXPORTERS (READY)", "CONFLICTS"}}
	if p.output == formatWide {
		t.header = append(t.header, "IP FAMILIES", "OLDEST", "IMPORTERS", "REFUSED")
	}
	for _, s := range services {
		row := []string{s.Namespace, s.Name, string(s.Type), strings.Join(s.Ports, ","), exporters(s), conflictFields(s)}
		if p.output == formatWide {
			var families []string
			for _, f := range s.IPFamilies {
				families = append(families, string(f))
			}
			row = append(row, strings.Join(families, ","), string(s.Oldest), ids(s.Importers), strconv.Itoa(s.Refused))
		}
		t.add(row...)
	}
	return t
}

// exporters returns "east(2/3),west(1/1)".
func exporters(s survey.ServiceStatus) string {
	var words []string
	for _, e := range s.Exporters {
		words = append(words, fmt.Sprintf("%s(%s)", e.Cluster, endpointCount{e.ReadyEndpoints, e.Endpoints, e.AtLeast}))
	}
	return strings.Join(words, ",")
}

func conflictFields(s survey.ServiceStatus) string {
	const most = 5
	var words []string
	for i, c := range s.Conflicts {
		if i == most {
			words = append(words, fmt.Sprintf("%d more", len(s.Conflicts)-most))
			break
		}
		words = append(words, survey.Shortened(c.Field))
	}
	return strings.Join(words, ", ")
}

func ids(all []clusterset.ClusterID) string {
	var words []string
	for _, id := range all {
		words = append(words, string(id))
	}
	return strings.Join(words, ",")
}

// printChanges prints one line for each change.
func printChanges(out io.Writer, paint func(colour, string) string, c survey.Changes) {
	p := statusPrinter{out: out, paint: paint}
	at := c.Time.Format(time.TimeOnly)
	for _, problem := range c.Appeared {
		fmt.Fprintf(out, "%s  %s\n%s     -> %s\n", at, p.problem(problem), strings.Repeat(" ", len(at)), plain(problem.Next))
	}
	for _, problem := range c.Solved {
		fmt.Fprintf(out, "%s  %s %s%s\n", at, paint(green, "SOLVED"), problem.Reason, subjectOf(problem))
	}
	for _, m := range c.Members {
		fmt.Fprintf(out, "%s  member %s: %s, version %s, publication %s, %d exports, %s endpoints, %s imports, %s pending deletions\n", at, m.ID, stateWords[m.State],
			cmp.Or(plain(m.Version), "unknown"), m.Publication, m.Exports, endpointCount{m.ReadyEndpoints, m.Endpoints, m.AtLeast}.String(), optional(m.Imports), optional(m.PendingDeletions))
	}
	for _, m := range c.MembersGone {
		fmt.Fprintf(out, "%s  member %s: has left\n", at, m.ID)
	}
	for _, s := range c.Services {
		fmt.Fprintf(out, "%s  service %s: %s %s, exported by %s\n", at, s.Key(), s.Type, plain(strings.Join(s.Ports, ",")), cmp.Or(exporters(s), "no accepted member"))
	}
	for _, s := range c.ServicesGone {
		fmt.Fprintf(out, "%s  service %s: is exported no more\n", at, s.Key())
	}
}
