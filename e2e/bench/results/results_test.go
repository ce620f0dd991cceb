// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package results_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

func TestResults(t *testing.T) {
	r := &results.Results{}
	r.Add("Rate/kind=A", "agent", "services/s", 90, 100, 95)
	r.Add("Rate/kind=A", "baseline", "services/s", 100, 90, 110)
	r.Add("Writes", "agent", "writes", 3)
	r.Compare("Rate/kind=A", "services/s", "agent", "baseline", results.AtLeast(0.95))
	r.Compare("Rate/kind=A", "services/s", "agent", "baseline", results.AtMost(0.9))
	r.Limit("Writes", "writes", "agent", results.AtMost(3))
	r.Limit("Writes", "writes", "agent", results.AtMost(2))
	r.Limit("Unknown", "s", "agent", results.AtMost(2))
	r.Compare("Writes", "writes", "agent", "baseline", results.AtMost(2))
	var table strings.Builder
	lab.Must(t, r.WriteTargets(&table))
	var got []string
	for line := range strings.Lines(table.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"figure value range ratio to ratio target",
		"Rate/kind=A of agent 95 services/s 90-100 baseline 0.95 at least 0.95 met",
		"Rate/kind=A of agent 95 services/s 90-100 baseline 0.95 at most 0.9 missed",
		"Writes of agent 3 writes at most 3 met",
		"Writes of agent 3 writes at most 2 missed",
		"Unknown of agent NaN s at most 2 missed",
		"Writes of agent 3 writes baseline NaN at most 2 missed",
	}
	lab.Equal(t, "targets", want, got)
	path := filepath.Join(t.TempDir(), "out", "bench.txt")
	lab.Must(t, r.Write(path))
	content, err := os.ReadFile(path)
	lab.Must(t, err)
	if first, _, _ := strings.Cut(string(content), "\n"); first != "BenchmarkRate/kind=A/who=agent 1 90 services/s" {
		t.Error(first)
	}
}

func TestQuantile(t *testing.T) {
	values := []float64{10, 2, 3, 4, 5, 6, 7, 8, 9, 1}
	for q, want := range map[float64]float64{0: 1, 0.5: 6, 0.99: 10, 1: 10} {
		if got := results.Quantile(values, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}
