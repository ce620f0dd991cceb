// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Sizes of the matrix, in pixels.
const (
	margin       = 24
	nameWidth    = 400
	columnWidth  = 62
	problemWidth = 330
	rowHeight    = 26
	headerHeight = 190
	titleHeight  = 40
	legendHeight = 40
	radius       = 10

	pathLegendHeight = 24
)

// Maximum numbers of characters.
const (
	maxMemberName  = 24
	maxServiceName = 34
	maxPorts       = 24
	maxProblemText = 50
)

// The colours, which are distinguishable with colour blindness.
const (
	ink, faint, line    = "#1b1f24", "#6a737d", "#e1e4e8"
	blue, orange, alarm = "#0b62c4", "#c25700", "#b00020"
	alarmed, conflicted = "#fdeaec", "#fff4e5"
)

// canvas collects the elements of an SVG picture.
type canvas struct{ bytes.Buffer }

// escaped returns text escaped for XML.
func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a strings.Builder never fails
	return out.String()
}

// text writes text. style are further attributes. If the text is cut, the tooltip has all of it.
func (c *canvas) text(x, y int, style, text string, most int) {
	fmt.Fprintf(c, `<text x="%d" y="%d" %s>`, x, y, style)
	if shortened := cut(text, most); shortened != text {
		fmt.Fprintf(c, `<title>%s</title>%s</text>`+"\n", escaped(cut(text, maxLabel)), escaped(shortened))
		return
	}
	fmt.Fprintf(c, "%s</text>\n", escaped(text))
}

func (c *canvas) rect(x, y, width, height int, fill string) {
	fmt.Fprintf(c, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", x, y, width, height, fill)
}

func (c *canvas) line(x1, y1, x2, y2 int) {
	fmt.Fprintf(c, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`+"\n", x1, y1, x2, y2, line)
}

// matrix is a picture with a row for each service and a column for each member.
type matrix struct {
	canvas
	status   assess.Status
	services []assess.ServiceStatus
	left     int
	// rows holds the y of each service's row, namespaces the y of each heading.
	rows       []int
	namespaces map[int]string
	end        int
}

// SVG returns the clusterset as a matrix: services are rows, members are columns.
func SVG(s assess.Status) []byte {
	s.Members = byNetwork(s.Members)
	m := &matrix{status: s, namespaces: map[int]string{}}
	m.services, m.left = shown(s)
	m.setRows()
	width, height := m.right()+problemWidth+margin, m.end+legendHeight+margin
	if hasPaths(s) {
		height += pathLegendHeight
	}
	fmt.Fprintf(m, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="13">`+"\n",
		width, height, width, height)
	m.rect(0, 0, width, height, "white")
	m.text(margin, margin+16, `font-size="18" font-weight="bold" fill="`+ink+`"`, "Clusterset: "+heading(s, len(s.Services)), maxLabel)
	m.drawColumns()
	m.drawNetworks()
	m.drawRows()
	m.drawLegend()
	fmt.Fprintln(m, "</svg>")
	return m.Bytes()
}

func (m *matrix) right() int { return margin + nameWidth + len(m.status.Members)*columnWidth }

// column returns the x of the middle of a member's column.
func (m *matrix) column(i int) int { return margin + nameWidth + i*columnWidth + columnWidth/2 }

// setRows sets the positions of the rows.
func (m *matrix) setRows() {
	y, namespace := titleHeight+headerHeight, ""
	for i, s := range m.services {
		if i == 0 || s.Namespace != namespace {
			namespace = s.Namespace
			m.namespaces[y] = namespace
			y += rowHeight
		}
		m.rows = append(m.rows, y)
		y += rowHeight
	}
	m.end = y
}

func (m *matrix) drawColumns() {
	top := titleHeight + headerHeight
	for i, member := range m.status.Members {
		x := m.column(i)
		colour, weight := ink, "normal"
		switch member.State {
		case survey.StateConnected:
		default:
			colour, weight = alarm, "bold"
			m.rect(x-columnWidth/2, top, columnWidth, m.end-top, alarmed)
		}
		slant := func(x, y int) string {
			return fmt.Sprintf(`transform="rotate(-50 %d %d)"`, x, y)
		}
		m.text(x, top-10, fmt.Sprintf(`%s fill="%s" font-weight="%s"`, slant(x, top-10), colour, weight), string(member.ID), maxMemberName)
		if text := stateText(member); text != "" {
			m.text(x+18, top-10, fmt.Sprintf(`%s fill="%s" font-size="10"`, slant(x+18, top-10), colour), text, maxMemberName)
		}
	}
	for i := range len(m.status.Members) + 1 {
		m.line(margin+nameWidth+i*columnWidth, top, margin+nameWidth+i*columnWidth, m.end)
	}
}

func (m *matrix) drawRows() {
	for i, s := range m.services {
		y := m.rows[i]
		if namespace, first := m.namespaces[y-rowHeight]; first {
			m.rect(margin, y-rowHeight, m.right()+problemWidth-margin, rowHeight, "#f0f3f6")
			m.text(margin+6, y-8, `font-weight="bold" fill="`+ink+`"`, namespace, maxServiceName+maxPorts)
		}
		text := problemText(s)
		if text != "" {
			m.rect(margin, y, nameWidth, rowHeight, conflicted)
			m.text(m.right()+12, y+18, `fill="`+orange+`"`, text, maxProblemText)
		}
		m.text(margin+18, y+18, `fill="`+ink+`"`, s.Name, maxServiceName)
		m.text(margin+nameWidth-6, y+17, `text-anchor="end" font-size="10" fill="`+faint+`"`, portsOf(s), maxPorts)
		for j, member := range m.status.Members {
			m.drawCell(s, member.ID, m.column(j), y+rowHeight/2)
		}
		m.line(margin, y+rowHeight, m.right()+problemWidth, y+rowHeight)
	}
	if m.left > 0 {
		m.text(margin+18, m.end+16, `font-style="italic" fill="`+faint+`"`, fmt.Sprintf("%d more services are not shown", m.left), maxLabel)
	}
}

// portsOf returns the first port of a service, the number of the others, and whether it is headless.
func portsOf(s assess.ServiceStatus) string {
	var words []string
	if s.Type == mcsv1beta1.Headless {
		words = append(words, "headless")
	}
	if len(s.Ports) > 0 {
		words = append(words, s.Ports[0])
	}
	if len(s.Ports) > 1 {
		words = append(words, fmt.Sprintf("+%d", len(s.Ports)-1))
	}
	return strings.Join(words, " ")
}

// drawCell draws whether a member exports or imports a service.
func (m *matrix) drawCell(s assess.ServiceStatus, id clusterset.ClusterID, x, y int) {
	if e, exports := exporter(s, id); exports {
		colour := blue
		if disagrees(s, id) {
			colour = orange
		}
		m.drawExporter(x, y, colour, fmt.Sprintf("%d/%d", e.ReadyEndpoints, e.Endpoints), e.ReadyEndpoints)
		if sources, worst := sourcesOf(s, id); worst > 0 {
			m.drawImporter(x+columnWidth/2-6, y-radius+2, worst, sources...)
		}
		return
	}
	if slices.Contains(s.Importers, id) {
		sources, worst := sourcesOf(s, id)
		m.drawImporter(x, y, worst, sources...)
	}
}

// drawExporter draws a member with endpoints of a service: filled if one is ready, otherwise hollow.
func (m *matrix) drawExporter(x, y int, colour, label string, ready int) {
	fill, letters := colour, "white"
	if ready == 0 {
		fill, letters = "white", colour
	}
	half := max(radius+4, 4*len(label))
	fmt.Fprintf(m, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n",
		x-half, y-radius, 2*half, 2*radius, radius, fill, colour)
	m.text(x, y+4, `text-anchor="middle" font-size="11" fill="`+letters+`"`, label, maxLabel)
}

func (m *matrix) drawLegend() {
	x, y := margin+18, m.end+legendHeight
	entry := func(width int, text string) {
		m.text(x+24, y+4, `font-size="11" fill="`+faint+`"`, text, maxLabel)
		x += width
	}
	m.drawExporter(x, y, blue, "2/3", 1)
	entry(235, "exports it: ready/all endpoints")
	m.drawExporter(x+10, y, blue, "0/3", 0)
	x += 10
	entry(195, "exports it, none is ready")
	m.drawExporter(x+10, y, orange, "1/1", 1)
	x += 10
	entry(250, "disagrees with the oldest export")
	m.drawImporter(x+12, y, 0)
	entry(100, "imports it")
	m.rect(x+16, y-radius, 2*radius, 2*radius, alarmed)
	x += 20
	entry(0, "silent")
	if hasPaths(m.status) {
		m.drawPathLegend(margin+18, y+pathLegendHeight)
	}
}
