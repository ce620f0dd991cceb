// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report holds what all benchmarks share: the table that they end with, and the arithmetic of rounds. Every figure
// is a ratio of two that were measured in one run, since machines differ and are shared.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Row is one figure: ours, that of the reference, and their ratio.
type Row struct {
	Metric string `json:"metric"`
	// Tombolo and Reference are medians, in the unit that the metric names.
	Tombolo   float64 `json:"tombolo"`
	Reference float64 `json:"reference"`
	Ratio     float64 `json:"ratio"`
	// Target is such as ">= 0.95", or "figure <= 10" where it is about Tombolo's figure and there is no reference; "figure" or empty where
	// there is none.
	Target string `json:"target"`
	// Met is whether the ratio is as the target wants it; true where there is none.
	Met bool `json:"met"`
	// Spread is what the rounds differed by: (max-min)/median of Tombolo's and of the reference's, in percent.
	Spread string `json:"spread,omitempty"`
}

// Target is what a ratio should be.
type Target struct {
	Bound   float64
	AtLeast bool
}

// AtLeast returns a target that larger ratios meet.
func AtLeast(bound float64) *Target { return &Target{bound, true} }

// AtMost returns a target that smaller ratios meet.
func AtMost(bound float64) *Target { return &Target{bound, false} }

func (t *Target) String() string {
	switch {
	case t == nil:
		return ""
	case t.AtLeast:
		return ">= " + number(t.Bound)
	}
	return "<= " + number(t.Bound)
}

func (t *Target) metBy(ratio float64) bool {
	switch {
	case t == nil:
		return true
	case t.AtLeast:
		return ratio >= t.Bound
	}
	return ratio <= t.Bound
}

// Compare returns the row of two series of rounds; a nil target is none.
func Compare(metric string, tombolo, reference []float64, target *Target) Row {
	row := Row{
		Metric: metric, Tombolo: Median(tombolo), Reference: Median(reference), Target: target.String(),
		Spread: fmt.Sprintf("%.0f/%.0f", spread(tombolo), spread(reference)),
	}
	if row.Reference != 0 {
		row.Ratio = row.Tombolo / row.Reference
	}
	row.Met = target.metBy(row.Ratio)
	return row
}

// alone begins the target of a row that has no reference.
const alone = "figure"

// Within returns the row of a figure that is not compared with another one but has a bound of its own.
func Within(metric string, tombolo []float64, target *Target) Row {
	row := Row{Metric: metric, Tombolo: Median(tombolo), Target: alone + " " + target.String(), Spread: fmt.Sprintf("%.0f", spread(tombolo))}
	row.Met = target.metBy(row.Tombolo)
	return row
}

// Figure returns the row of a figure that has neither a reference nor a target.
func Figure(metric string, tombolo []float64) Row {
	return Row{Metric: metric, Tombolo: Median(tombolo), Target: alone, Met: true, Spread: fmt.Sprintf("%.0f", spread(tombolo))}
}

// Median returns the middle of the values, the mean of the two in the middle, or 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Quantile returns the value that a share q, 0 to 1, of the sorted values do not exceed, or 0 of none.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// spread is in percent of the median.
func spread(values []float64) float64 {
	m := Median(values)
	if m == 0 {
		return 0
	}
	return 100 * (slices.Max(values) - slices.Min(values)) / m
}

// Markdown writes rows as a table for people.
func Markdown(w io.Writer, rows []Row) error {
	lines := []string{"| metric | Tombolo | reference | ratio | target | verdict | spread of rounds, % |", "| --- | ---: | ---: | ---: | ---: | --- | ---: |"}
	for _, r := range rows {
		verdict, target := "met", r.Target
		switch {
		case target == "" || target == alone:
			verdict, target = "", ""
		case !r.Met:
			verdict = "MISSED"
		}
		reference, ratio := number(r.Reference), fmt.Sprintf("%.2f", r.Ratio)
		if strings.HasPrefix(r.Target, alone) {
			reference, ratio = "", ""
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |", r.Metric, number(r.Tombolo), reference, ratio, target, verdict, r.Spread))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// number returns a figure with three digits or all before the point.
func number(f float64) string {
	switch {
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 1:
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

// WriteJSON writes rows as an array to a file, whose folder it makes.
func WriteJSON(path string, rows []Row) error {
	content, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}
