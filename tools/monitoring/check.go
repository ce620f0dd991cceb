// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// runbookURL is where the runbook is read.
const runbookURL = "https://github.com/tombolo-mcs/tombolo/blob/main/docs/runbook.md#"

// ours are the beginnings of the names of all metrics of this product.
var ours = []string{"tombolo_", "coredns_clusterset_"}

var (
	// labelValues fills a variable of a dashboard.
	labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
	// inAnnotation and inLegend name labels of a result.
	inAnnotation = regexp.MustCompile(`\$labels\.(\w+)`)
	inLegend     = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)
	inReference  = regexp.MustCompile("(?m)^\\| `((?:tombolo|coredns_clusterset)_\\w+)` ")
	heading      = regexp.MustCompile(`(?m)^## (\w+)$`)
)

// check returns what is wrong, sorted; nil if nothing is.
func (m manifests) check(s scraped, runbook string) []string {
	var problems []string
	used := map[string]bool{}
	ask := func(where, text string, names []string) {
		for _, problem := range m.ask(s, used, text, names) {
			problems = append(problems, where+": "+problem)
		}
	}
	for name, group := range m.groups {
		_, errs := rulefmt.Parse(group, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		for _, err := range errs {
			problems = append(problems, fmt.Sprintf("%s: %v", name, err))
		}
	}
	for _, rule := range m.rules {
		ask(rule.Alert+rule.Record, rule.Expr.String(), named(inAnnotation, rule.Annotations["summary"]+rule.Annotations["description"]))
	}
	for _, p := range m.panels {
		ask(fmt.Sprintf("panel %q", p.title), p.query, named(inLegend, p.legend))
	}
	for _, variable := range m.variables {
		parts := labelValues.FindStringSubmatch(variable)
		if parts == nil {
			problems = append(problems, fmt.Sprintf("variable: %q is not label_values(metric, label)", variable))
			continue
		}
		ask("variable", parts[1], parts[2:])
	}
	problems = append(problems, unused(s, used)...)
	problems = append(problems, m.unexplained(runbook)...)
	slices.Sort(problems)
	return slices.Compact(problems) // Prometheus decodes a rule file twice, and complains as often
}

// ask checks one query, and that its result has the labels that are named with it.
func (m manifests) ask(s scraped, used map[string]bool, text string, names []string) []string {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return []string{err.Error()}
	}
	q := &query{scraped: s, jobs: m.jobs, used: used}
	q.demand(q.labelsOf(expression), names)
	return q.problems
}

// named returns the labels that a text names.
func named(pattern *regexp.Regexp, text string) []string {
	var names []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// unused returns the metrics of ours that nothing asks for: then no user reads them either.
func unused(s scraped, used map[string]bool) []string {
	var problems []string
	for _, metric := range slices.Compact(slices.Sorted(maps.Values(s.metrics))) {
		if isOurs(metric) && !used[metric] {
			problems = append(problems, fmt.Sprintf("%s is used by no alert and no panel", metric))
		}
	}
	return problems
}

// undocumented returns the metrics of ours that docs/runbook.md lacks, and those in it that were not scraped.
func undocumented(s scraped, reference string) []string {
	documented := named(inReference, reference)
	var problems []string
	existing := slices.Compact(slices.Sorted(maps.Values(s.metrics)))
	for _, metric := range existing {
		if isOurs(metric) && !slices.Contains(documented, metric) {
			problems = append(problems, fmt.Sprintf("docs/runbook.md: %s is missing", metric))
		}
	}
	for _, metric := range documented {
		if !slices.Contains(existing, metric) {
			problems = append(problems, fmt.Sprintf("docs/runbook.md: there is no metric %s", metric))
		}
	}
	return problems
}

func isOurs(metric string) bool {
	return slices.ContainsFunc(ours, func(prefix string) bool { return strings.HasPrefix(metric, prefix) })
}

// unexplained returns the alerts that people could not act on, and entries of the runbook for which there is no alert.
func (m manifests) unexplained(runbook string) []string {
	var problems []string
	entries := map[string]bool{}
	for _, name := range named(heading, runbook) {
		entries[name] = true
	}
	for _, rule := range m.rules {
		if rule.Alert == "" {
			continue
		}
		for _, problem := range incomplete(rule) {
			problems = append(problems, rule.Alert+": "+problem)
		}
		if !entries[rule.Alert] {
			problems = append(problems, rule.Alert+": docs/runbook.md has no such heading")
		}
		delete(entries, rule.Alert)
	}
	for name := range entries {
		problems = append(problems, "docs/runbook.md: there is no alert "+name)
	}
	return problems
}

// incomplete returns what an alert lacks.
func incomplete(rule rule) []string {
	var problems []string
	if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
		problems = append(problems, fmt.Sprintf("severity is %q, must be critical or warning", severity))
	}
	for _, annotation := range []string{"summary", "description"} {
		if rule.Annotations[annotation] == "" {
			problems = append(problems, "it has no "+annotation)
		}
	}
	if want := runbookURL + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
		problems = append(problems, fmt.Sprintf("runbook_url is %q, must be %s", rule.Annotations["runbook_url"], want))
	}
	return problems
}
