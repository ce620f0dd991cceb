// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package results collects the figures of a benchmark, writes them in Go's benchmark format for benchstat
// (https://go.dev/design/14313-benchmark-format), and compares their medians with targets.
package results

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/prometheus/procfs"
)

// Results are the figures of a run and its targets.
type Results struct {
	lines   []string
	figures map[string][]float64
	targets []target
}

// Bound is what a figure, or the ratio of two, should be.
type Bound struct {
	limit    float64
	smallest bool // the limit is the smallest value that is allowed
}

// AtLeast returns a bound that larger values meet.
func AtLeast(limit float64) Bound { return Bound{limit, true} }

// AtMost returns a bound that smaller values meet.
func AtMost(limit float64) Bound { return Bound{limit, false} }

func (b Bound) String() string {
	if b.smallest {
		return fmt.Sprintf("at least %.4g", b.limit)
	}
	return fmt.Sprintf("at most %.4g", b.limit)
}

func (b Bound) metBy(value float64) bool {
	return b.smallest && value >= b.limit || !b.smallest && value <= b.limit
}

type target struct {
	name, unit, who string
	baseline        string // empty: the figure itself is compared with the bound
	bound           Bound
}

func key(name, who, unit string) string { return name + "/who=" + who + " " + unit }

// Add records figures of one or more rounds: name is as in Latency/case=idle, and who was measured.
func (r *Results) Add(name, who, unit string, values ...float64) {
	if r.figures == nil {
		r.figures = map[string][]float64{}
	}
	k := key(name, who, unit)
	for _, value := range values {
		r.lines = append(r.lines, fmt.Sprintf("Benchmark%s/who=%s 1 %.6g %s", name, who, value, unit))
		r.figures[k] = append(r.figures[k], value)
	}
}

// Median returns the median of a figure, and NaN if it was not measured.
func (r *Results) Median(name, who, unit string) float64 {
	return Median(r.figures[key(name, who, unit)])
}

// Compare sets a target for the ratio of the medians of a figure and of the same figure of a baseline.
func (r *Results) Compare(name, unit, who, baseline string, bound Bound) {
	r.targets = append(r.targets, target{name, unit, who, baseline, bound})
}

// Limit sets a target for the median of a figure.
func (r *Results) Limit(name, unit, who string, bound Bound) {
	r.targets = append(r.targets, target{name, unit, who, "", bound})
}

// Write writes the figures to a file, for benchstat, and makes its folder.
func (r *Results) Write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Join(r.lines, "\n")+"\n"), 0o644) //nolint:gosec // figures are public
}

// WriteTargets writes a table of the targets, with the smallest and the largest value of each figure. A figure that was not measured misses its target.
func (r *Results) WriteTargets(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "figure\tvalue\trange\tratio to\tratio\ttarget\t")
	for _, t := range r.targets {
		value := r.Median(t.name, t.who, t.unit)
		compared, ratio := value, ""
		if t.baseline != "" {
			compared = value / r.Median(t.name, t.baseline, t.unit)
			ratio = fmt.Sprintf("%.2f", compared)
		}
		verdict := "missed"
		if t.bound.metBy(compared) {
			verdict = "met"
		}
		fmt.Fprintf(table, "%s of %s\t%.4g %s\t%s\t%s\t%s\t%s\t%s\n", t.name, t.who, value, t.unit, r.spread(t), t.baseline, ratio, t.bound, verdict)
	}
	return table.Flush()
}

// spread returns the smallest and the largest value of a figure; empty if it was measured once.
func (r *Results) spread(t target) string {
	values := r.figures[key(t.name, t.who, t.unit)]
	if len(values) < 2 {
		return ""
	}
	return fmt.Sprintf("%.4g-%.4g", slices.Min(values), slices.Max(values))
}

// Median returns the middle of the values or the mean of the two in the middle, and NaN of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Quantile returns the value that a share q, 0 to 1, of the values do not exceed, and NaN of none.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// ExitOn ends the program of a benchmark if there is an error.
func ExitOn(program string, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, program+":", err)
		os.Exit(1)
	}
}

// StatOf returns what the kernel knows of a process.
func StatOf(pid int) (procfs.ProcStat, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return process.Stat()
}
