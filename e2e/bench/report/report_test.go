// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

func TestRows(t *testing.T) {
	rows := []report.Row{
		report.Compare("fast", []float64{90, 100, 95}, []float64{100, 100, 100}, report.AtLeast(0.95)),
		report.Compare("slow", []float64{90}, []float64{100}, report.AtLeast(0.95)),
		report.Compare("small", []float64{0.2, 0.3, 0.4}, []float64{1}, report.AtMost(0.3)),
		report.Compare("large", []float64{31}, []float64{100}, report.AtMost(0.3)),
		report.Compare("for information", []float64{1}, nil, nil),
		report.Within("on its own", []float64{3, 2, 4}, report.AtMost(3)),
		report.Within("too much", []float64{3.1}, report.AtMost(3)),
		report.Figure("told", []float64{7}),
	}
	var table strings.Builder
	if err := report.Markdown(&table, rows); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"| fast | 95.00 | 100 | 0.95 | >= 0.95 | met | 11/0 |",
		"| slow | 90.00 | 100 | 0.90 | >= 0.95 | MISSED | 0/0 |",
		"| small | 0.3 | 1.00 | 0.30 | <= 0.3 | met | 67/0 |",
		"| large | 31.00 | 100 | 0.31 | <= 0.3 | MISSED | 0/0 |",
		"| for information | 1.00 | 0 | 0.00 |  |  | 0/0 |",
		"| on its own | 3.00 |  |  | figure <= 3.00 | met | 67 |",
		"| too much | 3.10 |  |  | figure <= 3.00 | MISSED | 0 |",
		"| told | 7.00 |  |  |  |  | 0 |",
	} {
		if got := strings.Split(table.String(), "\n")[i+2]; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	path := filepath.Join(t.TempDir(), "out", "bench.json")
	if err := report.WriteJSON(path, rows); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), `"metric": "slow"`) || !strings.Contains(string(content), `"met": false`) {
		t.Errorf("%s", content)
	}
}

func TestQuantile(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for q, want := range map[float64]float64{0: 1, 0.5: 6, 0.99: 10, 1: 10} {
		if got := report.Quantile(values, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}
