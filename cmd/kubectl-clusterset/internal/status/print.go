// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
)

// Limits of the tables, unless all is requested.
const (
	maxListedServices = 50
	problemsPerReason = 10
)

// printer prints a Status as text.
type printer struct {
	out      io.Writer
	paint    func(output.Colour, string) string
	output   output.Format
	services serviceFilter
}

func (p printer) write(s assess.Status) {
	p.problems(s.Problems)
	fmt.Fprintf(p.out, "\n%s\n", membersTitle(s))
	p.members(s.Members).Write(p.out)
	p.unknownDNS(s.Members)
	title := "SERVICES"
	if !s.IsHubRead() {
		title = "SERVICES of these"
	}
	fmt.Fprintf(p.out, "\n%s (%d)\n", title, len(s.Services))
	shown := p.shown(s)
	if len(shown) > 0 {
		p.serviceTable(shown).Write(p.out)
	}
	if rest := len(s.Services) - len(shown); rest > 0 {
		fmt.Fprintf(p.out, "  %d more without problems are not shown: --services all lists them\n", rest)
	}
}

// membersTitle returns the title of the table of members.
func membersTitle(s assess.Status) string {
	if s.IsHubRead() {
		version := ""
		if s.HubVersion != "" {
			version = " of version " + output.Plain(s.HubVersion)
		}
		return fmt.Sprintf("MEMBERS (%d), by the hub at %s%s", len(s.Members), output.Plain(s.Hub), version)
	}
	return fmt.Sprintf("MEMBERS that were read (%d)", len(s.Members))
}

// problems prints the problems. It limits the number for each reason unless all is requested.
func (p printer) problems(problems []assess.Problem) {
	if len(problems) == 0 {
		fmt.Fprintln(p.out, p.paint(output.Green, "No problems."))
		return
	}
	fmt.Fprintf(p.out, "PROBLEMS (%d)\n", len(problems))
	count, left := map[assess.Reason]int{}, 0
	for _, problem := range problems {
		count[problem.Reason]++
		if count[problem.Reason] > problemsPerReason && p.output != output.Wide {
			left++
			continue
		}
		fmt.Fprintln(p.out, "  "+p.problem(problem))
		if problem.Next != "" {
			fmt.Fprintln(p.out, "     -> "+output.Plain(problem.Next))
		}
	}
	if left > 0 {
		fmt.Fprintf(p.out, "  %d more of the same kinds are not shown: -o wide lists them\n", left)
	}
}

func (p printer) problem(problem assess.Problem) string {
	marks := map[assess.Severity]string{assess.SeverityError: p.paint(output.Red, "ERROR"), assess.SeverityWarning: p.paint(output.Yellow, "WARN ")}
	return marks[problem.Severity] + " " + string(problem.Reason) + subjectOf(problem) + ": " + output.Plain(problem.Message)
}

// subjectOf returns the member and the service of a problem.
func subjectOf(problem assess.Problem) string {
	var words []string
	for _, word := range []string{string(problem.Member), problem.Service} {
		if word != "" {
			words = append(words, output.Plain(word))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " " + strings.Join(words, " ")
}

func (p printer) members(members []assess.MemberStatus) *output.Table {
	t := &output.Table{Header: []string{"ID", "STATE", "LAST HEARTBEAT", "VERSION", "PUBLICATION", "EXPORTS", "ENDPOINTS", "IMPORTS", "PENDING DELETIONS", "DNS", "CONTEXT"}}
	networks := assess.Networks(members)
	if len(networks) > 1 {
		t.Header = append(t.Header, "NETWORK")
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
			string(m.ID), reading.StateWord(m.State), lastHeartbeat, m.Version, m.Publication, strconv.Itoa(m.Exports),
			reading.EndpointCount{Ready: m.ReadyEndpoints, All: m.Endpoints, AtLeast: m.AtLeast}.String(), optional(m.Imports), optional(m.PendingDeletions), dnsWords[m.DNS], m.Context,
		}
		if len(networks) > 1 {
			row = append(row, m.Network)
		}
		t.Add(row...)
	}
	return t
}

var dnsWords = map[memberdns.State]string{
	memberdns.Forwarded: "forwarded", memberdns.Served: "served", memberdns.Stale: "STALE", memberdns.NotSet: "NOT SET", memberdns.NotKnown: "?", "": "?",
}

// unknownDNS prints why it is not known what the DNS of members does.
func (p printer) unknownDNS(members []assess.MemberStatus) {
	for _, m := range members {
		if m.DNS == memberdns.NotKnown {
			fmt.Fprintf(p.out, "  %s: %s\n", m.ID, output.Plain(m.DNSMessage))
		}
	}
}

func optional(n *int) string {
	if n == nil {
		return "?"
	}
	return strconv.Itoa(*n)
}

// shown returns the services to list.
func (p printer) shown(s assess.Status) []assess.ServiceStatus {
	if len(s.Services) <= maxListedServices || p.services == allServices || p.output == output.Wide {
		return s.Services
	}
	troubled := map[string]bool{}
	for _, problem := range s.Problems {
		troubled[problem.Service] = true
	}
	var result []assess.ServiceStatus
	for _, service := range s.Services {
		if troubled[service.Key()] {
			result = append(result, service)
		}
	}
	return result
}

func (p printer) serviceTable(services []assess.ServiceStatus) *output.Table {
	t := &output.Table{Header: []string{"NAMESPACE", "NAME", "TYPE", "PORTS", "EXPORTERS (READY)", "CONFLICTS"}}
	if p.output == output.Wide {
		t.Header = append(t.Header, "IP FAMILIES", "OLDEST", "IMPORTERS", "REFUSED")
	}
	for _, s := range services {
		row := []string{s.Namespace, s.Name, string(s.Type), strings.Join(s.Ports, ","), exporters(s), conflictFields(s)}
		if p.output == output.Wide {
			var families []string
			for _, f := range s.IPFamilies {
				families = append(families, string(f))
			}
			row = append(row, strings.Join(families, ","), string(s.Oldest), reading.IDs(s.Importers), strconv.Itoa(s.Refused))
		}
		t.Add(row...)
	}
	return t
}

// exporters returns "east(2/3),west(1/1)".
func exporters(s assess.ServiceStatus) string {
	var words []string
	for _, e := range s.Exporters {
		words = append(words, fmt.Sprintf("%s(%s)", e.Cluster, reading.EndpointCount{Ready: e.ReadyEndpoints, All: e.Endpoints, AtLeast: e.AtLeast}))
	}
	return strings.Join(words, ",")
}

func conflictFields(s assess.ServiceStatus) string {
	const most = 5
	var words []string
	for i, c := range s.Conflicts {
		if i == most {
			words = append(words, fmt.Sprintf("%d more", len(s.Conflicts)-most))
			break
		}
		words = append(words, phrase.Shortened(c.Field))
	}
	return strings.Join(words, ", ")
}

// printChanges prints one line for each change.
func printChanges(out io.Writer, paint func(output.Colour, string) string, c assess.Changes) {
	p := printer{out: out, paint: paint}
	at := c.Time.Format(time.TimeOnly)
	for _, problem := range c.Appeared {
		fmt.Fprintf(out, "%s  %s\n%s     -> %s\n", at, p.problem(problem), strings.Repeat(" ", len(at)), output.Plain(problem.Next))
	}
	for _, problem := range c.Solved {
		fmt.Fprintf(out, "%s  %s %s%s\n", at, paint(output.Green, "SOLVED"), problem.Reason, subjectOf(problem))
	}
	for _, m := range c.Members {
		fmt.Fprintf(out, "%s  member %s: %s, version %s, publication %s, %d exports, %s endpoints, %s imports, %s pending deletions\n", at, m.ID, reading.StateWord(m.State),
			cmp.Or(output.Plain(m.Version), "unknown"), m.Publication, m.Exports, reading.EndpointCount{Ready: m.ReadyEndpoints, All: m.Endpoints, AtLeast: m.AtLeast}.String(), optional(m.Imports), optional(m.PendingDeletions))
	}
	for _, m := range c.MembersGone {
		fmt.Fprintf(out, "%s  member %s: has left\n", at, m.ID)
	}
	for _, s := range c.Services {
		fmt.Fprintf(out, "%s  service %s: %s %s, exported by %s\n", at, s.Key(), s.Type, output.Plain(strings.Join(s.Ports, ",")), cmp.Or(exporters(s), "no accepted member"))
	}
	for _, s := range c.ServicesGone {
		fmt.Fprintf(out, "%s  service %s: is exported no more\n", at, s.Key())
	}
}
