// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package picture_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/picture"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/e2e/framework/golden"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// drawn returns a clusterset with numbers of members and services, with everything that a picture can show.
func drawn(members, services int) assess.Status {
	s := assess.Status{Time: metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	var ids []clusterset.ClusterID
	imports, seconds := services, int64(312)
	for i := range members {
		m := assess.MemberStatus{ID: clusterset.ClusterID(fmt.Sprintf("%s-%d", []string{"eu-west", "us-east", "ap-southeast-production", "edge"}[i%4], i)), State: survey.StateConnected}
		if i%5 != 4 {
			m.Imports = &imports
		}
		switch i {
		case 2:
			m.State, m.SilentSeconds = survey.StateSilent, &seconds
		case 7:
			m.State = survey.StateNeverConnected
		}
		ids = append(ids, m.ID)
		s.Members = append(s.Members, m)
	}
	for i := range services {
		service := assess.ServiceStatus{
			Namespace: []string{"checkout", "identity", "search-and-recommendations"}[i*3/services], Name: fmt.Sprintf("%s-%d", []string{"api", "a-service-with-a-rather-long-name", "db"}[i%3], i),
			Type: "ClusterSetIP", Ports: []string{"http:80/TCP", "metrics:9090/TCP"}[:1+i%2], Importers: ids,
		}
		for j, id := range ids {
			if (i+j)%4 == 0 {
				service.Exporters = append(service.Exporters, assess.ExporterStatus{Cluster: id, Endpoints: 1 + (i*j)%13, ReadyEndpoints: min((i*j)%13, i%7)})
			}
		}
		if i%11 == 3 && len(service.Exporters) > 1 {
			service.Conflicts = []assess.ConflictStatus{
				{Field: "ports", Disagree: []clusterset.ClusterID{service.Exporters[1].Cluster}}, {Field: "session affinity", Disagree: []clusterset.ClusterID{service.Exporters[1].Cluster}},
			}
		}
		if i%17 == 5 {
			service.Type, service.Refused = "Headless", 2
		}
		s.Services = append(s.Services, service)
	}
	return s
}

// inNetworks returns a clusterset with two networks, and every path between an importer and an exporter. spec: G12
func inNetworks() assess.Status {
	s := assess.Status{Time: metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	imports := 5
	for i, id := range []clusterset.ClusterID{"east", "west", "north"} {
		network := []string{"home", "cloud", "home"}[i]
		s.Members = append(s.Members, assess.MemberStatus{ID: id, Network: network, State: survey.StateConnected, Imports: &imports})
	}
	for _, path := range []assess.Path{assess.PathGateways, assess.PathGatewaysUnreached, assess.PathNotKnown, assess.PathNone, "of a later version"} {
		s.Services = append(s.Services, assess.ServiceStatus{
			Namespace: "shop", Name: strings.ReplaceAll(string(path), " ", "-"), Ports: []string{"http:80/TCP"}, Importers: []clusterset.ClusterID{"east", "north", "west"},
			Exporters: []assess.ExporterStatus{{Cluster: "north", Endpoints: 1, ReadyEndpoints: 1}, {Cluster: "west", Endpoints: 2, ReadyEndpoints: 2}},
			Paths:     []assess.PathStatus{{Importer: "east", Exporter: "west", Path: path}, {Importer: "north", Exporter: "west", Path: path}},
		})
	}
	return s
}

// TestGolden compares pictures of a small clusterset. go test ./cmd/kubectl-clusterset/picture -update writes the files
// again.
func TestGolden(t *testing.T) {
	t.Parallel()
	small := drawn(4, 9)
	for name, got := range map[string][]byte{
		"small.svg": picture.SVG(small), "small.dot": picture.DOT(small),
		"networks.svg": picture.SVG(inNetworks()), "networks.dot": picture.DOT(inNetworks()),
	} {
		golden.Check(t, name, string(got))
	}
}

// elements returns the elements of an SVG picture, by name, and its text. It fails if the picture is not XML.
func elements(t *testing.T, svg []byte) (map[string]int, string) {
	t.Helper()
	count, text := map[string]int{}, ""
	decoder := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return count, text
		}
		check.Must(t, err)
		switch element := token.(type) {
		case xml.StartElement:
			count[element.Name.Local]++
			for _, a := range element.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" {
					t.Errorf("element %s has an attribute %s", element.Name.Local, a.Name.Local)
				}
			}
		case xml.CharData:
			text += string(element)
		default:
		}
	}
}

// TestNothingIsInjected: the data of members adds no elements to a picture.
func TestNothingIsInjected(t *testing.T) {
	t.Parallel()
	with := func(evil string) assess.Status {
		s := assess.Status{Members: []assess.MemberStatus{{ID: clusterset.ClusterID(evil), Network: evil}, {ID: "x", Network: "x"}, {ID: "y", Network: "y"}}}
		s.Services = []assess.ServiceStatus{{
			Namespace: evil, Name: evil, Ports: []string{evil}, Exporters: []assess.ExporterStatus{{Cluster: clusterset.ClusterID(evil)}},
			Conflicts: []assess.ConflictStatus{{Field: evil}}, Importers: []clusterset.ClusterID{"y"},
			Paths: []assess.PathStatus{{Importer: "y", Exporter: clusterset.ClusterID(evil), Path: assess.PathGateways}},
		}}
		return s
	}
	harmless, _ := elements(t, picture.SVG(with("z")))
	dotLines := strings.Count(string(picture.DOT(with("z"))), "\n")
	for _, evil := range []string{
		`<script>a()</script>`, `"><b/>`, `]]>`, `&amp;`, `'/>`, "\x00\x1b[2J", "\xff\xfe", `";}`, `\`, `\"]; evil [label="`, "a\nb -> c;",
	} {
		count, text := elements(t, picture.SVG(with(evil)))
		delete(count, "title") // the title has the full text of what is cut off
		delete(harmless, "title")
		check.Equal(t, fmt.Sprintf("%q changes what the SVG consists of", evil), harmless, count)
		if strings.ContainsAny(evil, "<&") && !strings.Contains(text, evil) {
			t.Errorf("%q is not in the SVG's text", evil)
		}
		dot := string(picture.DOT(with(evil)))
		if strings.Count(dot, "\n") != dotLines || strings.ContainsAny(dot, "\x00\x1b") {
			t.Errorf("%q steers the graph:\n%s", evil, dot)
		}
		for line := range strings.Lines(dot) {
			if open := openQuotes(line); open {
				t.Errorf("%q leaves a string open in the line\n%s", evil, line)
			}
		}
	}
}

// openQuotes reports whether a line of graphviz' language ends within a string, or has a closing brace after its first character.
func openQuotes(line string) bool {
	inside, escaped := false, false
	for i, r := range strings.TrimSpace(line) {
		switch {
		case escaped:
			escaped = false
		case inside && r == '\\':
			escaped = true
		case r == '"':
			inside = !inside
		case !inside && r == '}' && i > 0:
			return true
		}
	}
	return inside
}

// TestManyServices: of many services, a picture has those with problems, and the number of the others.
func TestManyServices(t *testing.T) {
	t.Parallel()
	s := drawn(2, 1000)
	s.Problems = []assess.Problem{{Service: s.Services[999].Key()}, {Service: s.Services[500].Key()}}
	for _, got := range [][]byte{picture.SVG(s), picture.DOT(s)} {
		for _, want := range []string{"800 more services are not shown", "-999", "-500", "1000 services"} {
			if !strings.Contains(string(got), want) {
				t.Errorf("the picture does not have %q", want)
			}
		}
		if strings.Contains(string(got), "-998") {
			t.Error("the picture has a service without problems that is not among the first")
		}
	}
}
