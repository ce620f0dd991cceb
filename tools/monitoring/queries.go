// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// ofPrometheus are the series that Prometheus writes itself for each target.
var ofPrometheus = []string{"up"}

// ofTarget are the labels that Prometheus adds to all that it scrapes: job and instance by itself, the others as the
// Prometheus Operator has it do for a PodMonitor.
var ofTarget = labelSet{"job": true, "instance": true, "namespace": true, "pod": true, "container": true}

// query is one query that is being checked.
type query struct {
	scraped scraped
	// jobs are the values that job can have.
	jobs     map[string]bool
	used     map[string]bool
	problems []string
}

// labelsOf checks an expression and returns the labels that its result can have.
func (q *query) labelsOf(expression parser.Expr) labelSet {
	switch e := expression.(type) {
	case *parser.VectorSelector:
		return q.selected(e)
	case *parser.MatrixSelector:
		return q.labelsOf(e.VectorSelector)
	case *parser.AggregateExpr:
		return q.aggregated(e)
	case *parser.BinaryExpr:
		return q.combined(e)
	case *parser.Call:
		return q.called(e)
	case *parser.ParenExpr:
		return q.labelsOf(e.Expr)
	case *parser.UnaryExpr:
		return q.labelsOf(e.Expr)
	case *parser.SubqueryExpr:
		return q.labelsOf(e.Expr)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return labelSet{}
	}
	q.complainf("%T is not understood", expression)
	return labelSet{}
}

// selected checks a selector: a program reports such a metric, with these labels.
func (q *query) selected(e *parser.VectorSelector) labelSet {
	known, scraped := q.scraped.series[e.Name]
	if !scraped && !slices.Contains(ofPrometheus, e.Name) {
		q.complainf("no scrape has metric %q", e.Name)
		return maps.Clone(ofTarget)
	}
	q.used[q.scraped.metrics[e.Name]] = true
	all := maps.Clone(ofTarget)
	maps.Copy(all, known)
	for _, matcher := range e.LabelMatchers {
		if matcher.Name == model.MetricNameLabel {
			continue
		}
		if !all[matcher.Name] {
			q.complainf("%s has no label %q", e.Name, matcher.Name)
		}
		if matcher.Name == "job" && (matcher.Type != labels.MatchEqual || !q.jobs[matcher.Value]) {
			q.complainf("no PodMonitor makes the job %s", matcher)
		}
	}
	return all
}

func (q *query) aggregated(e *parser.AggregateExpr) labelSet {
	inner := q.labelsOf(e.Expr)
	q.demand(inner, e.Grouping)
	result := labelSet{}
	for label := range inner {
		result[label] = slices.Contains(e.Grouping, label) != e.Without
	}
	maps.DeleteFunc(result, func(_ string, kept bool) bool { return !kept })
	return result
}

func (q *query) combined(e *parser.BinaryExpr) labelSet {
	left, right := q.labelsOf(e.LHS), q.labelsOf(e.RHS)
	if e.VectorMatching != nil {
		q.demand(left, e.VectorMatching.MatchingLabels)
		q.demand(right, e.VectorMatching.MatchingLabels)
	}
	if e.Op == parser.LOR || len(left) == 0 {
		maps.Copy(left, right)
	}
	return left
}

func (q *query) called(e *parser.Call) labelSet {
	result := labelSet{}
	for _, argument := range e.Args {
		maps.Copy(result, q.labelsOf(argument))
	}
	switch e.Func.Name {
	case "histogram_quantile":
		q.demand(result, []string{model.BucketLabel})
		delete(result, model.BucketLabel)
	case "absent", "vector", "scalar", "time":
		return labelSet{}
	case "label_replace", "label_join":
		q.complainf("%s is not understood", e.Func.Name)
	}
	return result
}

func (q *query) demand(have labelSet, wanted []string) {
	for _, label := range wanted {
		if !have[label] {
			q.complainf("nothing there has a label %q", label)
		}
	}
}

func (q *query) complainf(format string, args ...any) {
	q.problems = append(q.problems, fmt.Sprintf(format, args...))
}
