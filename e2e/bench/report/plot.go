// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Plot is a chart of curves, for figures of which a curve says more than a number. It is written as SVG by a few lines of our
// own: gonum.org/v1/plot would bring fonts, PDF and a matrix library into the product's module for it.
type Plot struct {
	Title string
	// X and Y name the axes, with their units.
	X, Y   string
	XScale Scale
	Curves []Curve
}

// Curve is a line through points.
type Curve struct {
	Name   string
	Points []Point
}

// Point is a point of a curve, in the units of the axes.
type Point struct{ X, Y float64 }

// Scale is how an axis is divided.
type Scale int

// The scales. On a logarithmic one what is not above 0 is left out.
const (
	Linear Scale = iota
	Logarithmic
)

// Distribution returns, for sorted values, the percentage of them that do not exceed each.
func Distribution(name string, sorted []float64) Curve {
	c := Curve{Name: name}
	for i, value := range sorted {
		c.Points = append(c.Points, Point{value, 100 * float64(i+1) / float64(len(sorted))})
	}
	return c
}

// The drawing, in pixels.
const (
	width, height                  = 720.0, 440.0
	left, right, top, bottom       = 70.0, 20.0, 40.0, 56.0
	xTicks, yTicks, mostTicks      = 8, 6, 100
	legendStep, legendDash, letter = 18.0, 24.0, 7.0
)

// colours tell curves apart, also for those who see few of them (Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// axis maps values to pixels.
type axis struct {
	low, high float64 // values, or their logarithms
	from, to  float64 // pixels
	scale     Scale
}

func (a axis) at(value float64) float64 {
	if a.scale == Logarithmic {
		value = math.Log10(value)
	}
	return a.from + (value-a.low)/(a.high-a.low)*(a.to-a.from)
}

// newAxis returns one that covers all values, from 0 on where it is linear.
func newAxis(scale Scale, values []float64, from, to float64) axis {
	a := axis{high: 1, from: from, to: to, scale: scale}
	switch {
	case len(values) == 0:
	case scale == Logarithmic:
		a.low, a.high = math.Floor(math.Log10(slices.Min(values))), math.Ceil(math.Log10(slices.Max(values)))
	default:
		a.low, a.high = min(0, slices.Min(values)), slices.Max(values)
	}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

// ticks returns round values all over the axis, about so many where it is linear.
func (a axis) ticks(about int) []float64 {
	var result []float64
	if a.scale == Logarithmic {
		for e := a.low; e <= a.high && len(result) < mostTicks; e++ {
			result = append(result, math.Pow(10, e))
		}
		return result
	}
	step := roundStep((a.high - a.low) / float64(about))
	for i := math.Ceil(a.low / step); i*step <= a.high*(1+1e-9) && len(result) < mostTicks; i++ {
		result = append(result, i*step)
	}
	return result
}

// roundStep returns the least of 1, 2, 5, 10 and so on, times a power of ten, that is not below a step.
func roundStep(step float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(step)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= step*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// SVG returns the chart as a picture of its own.
func (p Plot) SVG() string {
	var xs, ys []float64
	for _, c := range p.Curves {
		for _, point := range p.drawn(c) {
			xs, ys = append(xs, point.X), append(ys, point.Y)
		}
	}
	x := newAxis(p.XScale, xs, left, width-right)
	y := newAxis(Linear, ys, height-bottom, top)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="white"/>`+"\n", width, height)
	text(&b, width/2, top/2, "middle", p.Title)
	for _, tick := range x.ticks(xTicks) {
		line(&b, "#ddd", x.at(tick), top, x.at(tick), height-bottom)
		text(&b, x.at(tick), height-bottom+legendStep, "middle", strconv.FormatFloat(tick, 'g', 4, 64))
	}
	for _, tick := range y.ticks(yTicks) {
		line(&b, "#ddd", left, y.at(tick), width-right, y.at(tick))
		text(&b, left-letter, y.at(tick)+letter/2, "end", strconv.FormatFloat(tick, 'g', 4, 64))
	}
	text(&b, (left+width-right)/2, height-letter*2, "middle", p.X)
	fmt.Fprintf(&b, `<g transform="rotate(-90)">`)
	text(&b, -(top+height-bottom)/2, 2*letter, "middle", p.Y)
	b.WriteString("</g>\n")
	for i, c := range p.Curves {
		colour := colours[i%len(colours)]
		p.draw(&b, c, x, y, colour)
		at := top + legendStep*float64(i+1)
		line(&b, colour, left+letter, at, left+letter+legendDash, at)
		text(&b, left+2*letter+legendDash, at+letter/2, "start", c.Name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// drawn returns the points that the scale can show: those that are finite.
func (p Plot) drawn(c Curve) []Point {
	return slices.DeleteFunc(slices.Clone(c.Points), func(point Point) bool {
		return p.XScale == Logarithmic && point.X <= 0 || !isFinite(point.X) || !isFinite(point.Y)
	})
}

func isFinite(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }

func (p Plot) draw(b *strings.Builder, c Curve, x, y axis, colour string) {
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, colour)
	for _, point := range p.drawn(c) {
		fmt.Fprintf(b, "%.1f,%.1f ", x.at(point.X), y.at(point.Y))
	}
	b.WriteString(`"/>` + "\n")
}

func line(b *strings.Builder, colour string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(b, `<line stroke="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", colour, x1, y1, x2, y2)
}

func text(b *strings.Builder, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">`, x, y, anchor)
	_ = xml.EscapeText(b, []byte(s)) // a builder takes everything
	b.WriteString("</text>\n")
}

// Write writes the chart to a file, whose folder it makes.
func (p Plot) Write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(p.SVG()), 0o644) //nolint:gosec // figures are for all to read
}
