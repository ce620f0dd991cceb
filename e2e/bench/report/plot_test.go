// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
)

// drawing is what a chart shows: its texts, and the points of its curves in pixels.
type drawing struct {
	texts  []string
	curves [][][2]float64
}

// parse fails where a picture is no well-formed XML.
func parse(t *testing.T, svg string) drawing {
	t.Helper()
	var d drawing
	decoder, inText := xml.NewDecoder(strings.NewReader(svg)), false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			inText = e.Name.Local == "text"
			if e.Name.Local == "polyline" {
				d.curves = append(d.curves, points(t, e))
			}
		case xml.CharData:
			if inText {
				d.texts = append(d.texts, string(e))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

func points(t *testing.T, e xml.StartElement) [][2]float64 {
	t.Helper()
	var result [][2]float64
	for _, a := range e.Attr {
		if a.Name.Local != "points" {
			continue
		}
		for _, pair := range strings.Fields(a.Value) {
			x, y, _ := strings.Cut(pair, ",")
			fx, errX := strconv.ParseFloat(x, 64)
			fy, errY := strconv.ParseFloat(y, 64)
			if errX != nil || errY != nil {
				t.Fatalf("%q is no point", pair)
			}
			result = append(result, [2]float64{fx, fy})
		}
	}
	return result
}

func TestPlot(t *testing.T) {
	p := report.Plot{Title: "a < b & c", X: "time, s", Y: "done, %", Curves: []report.Curve{
		{Name: "agents", Points: []report.Point{{0, 0}, {5, 50}, {10, 100}}},
		{Name: "floor", Points: []report.Point{{0, 0}, {10, 50}}},
	}}
	path := filepath.Join(t.TempDir(), "out", "plot.svg")
	if err := p.Write(path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := parse(t, string(content))
	want := []string{"a < b & c", "0", "2", "4", "6", "8", "10", "0", "20", "40", "60", "80", "100", "time, s", "done, %", "agents", "floor"}
	if diff := cmp.Diff(want, d.texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if len(d.curves) != 2 || len(d.curves[0]) != 3 {
		t.Fatalf("curves: %v", d.curves)
	}
	first, last := d.curves[0][0], d.curves[0][2]
	if middle := d.curves[0][1]; middle[0] != (first[0]+last[0])/2 || middle[1] != (first[1]+last[1])/2 {
		t.Errorf("a straight line is bent: %v", d.curves[0])
	}
	if last[0] <= first[0] || last[1] >= first[1] {
		t.Errorf("a line that rises goes from %v to %v", first, last)
	}
	if got, want := d.curves[1][1][1], (first[1]+last[1])/2; got != want {
		t.Errorf("half of the other curve's height is at %v, not at %v", got, want)
	}
}

// TestLogarithmic: each decade is as wide as the next, and what has no logarithm is left out.
func TestLogarithmic(t *testing.T) {
	p := report.Plot{XScale: report.Logarithmic, Curves: []report.Curve{{Points: []report.Point{{0, 1}, {1, 1}, {10, 2}, {100, 3}}}}}
	got := parse(t, p.SVG()).curves[0]
	if len(got) != 3 {
		t.Fatalf("points: %v", got)
	}
	if a, b := got[1][0]-got[0][0], got[2][0]-got[1][0]; math.Abs(a-b) > 0.2 || a <= 0 {
		t.Errorf("one decade is %v wide, the next %v", a, b)
	}
}

// TestEmptyPlot: a chart of nothing, of what is everywhere the same or of what is no number is a chart nevertheless.
func TestEmptyPlot(t *testing.T) {
	for name, curves := range map[string][]report.Curve{
		"none": nil, "no points": {{Name: "x"}}, "all 0": {{Points: []report.Point{{0, 0}, {0, 0}}}}, "all the same": {{Points: []report.Point{{5, 5}}}},
		"no numbers": {{Points: []report.Point{{math.Inf(1), 1}, {1, math.NaN()}, {math.NaN(), math.Inf(-1)}}}},
	} {
		for _, scale := range []report.Scale{report.Linear, report.Logarithmic} {
			svg := report.Plot{XScale: scale, Curves: curves}.SVG()
			parse(t, svg)
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Errorf("%s:\n%s", name, svg)
			}
		}
	}
}

func TestDistribution(t *testing.T) {
	want := report.Curve{Name: "x", Points: []report.Point{{1, 25}, {2, 50}, {2, 75}, {9, 100}}}
	if diff := cmp.Diff(want, report.Distribution("x", []float64{1, 2, 2, 9})); diff != "" {
		t.Error(diff)
	}
}
