// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/e2e/framework/golden"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// read reads a golden file of cmd/kubectl-clusterset/survey, whose results are printed here.
func read(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "survey", "assess", "testdata", name))
	check.Must(t, err)
	check.Must(t, json.Unmarshal(content, into))
}

func printed(s assess.Status, format output.Format, services serviceFilter) string {
	var out bytes.Buffer
	printer{out: &out, paint: output.Paint(&out), output: format, services: services}.write(s)
	return out.String()
}

func TestStatusTables(t *testing.T) {
	var s assess.Status
	read(t, "status.json", &s)
	golden.Check(t, "status.txt", printed(s, output.Text, someServices))
	golden.Check(t, "status-wide.txt", printed(s, output.Wide, someServices))
}

// TestManyServices: of many services, a table lists those with problems, and the number of the others.
func TestManyServices(t *testing.T) {
	var s assess.Status
	for i := range 10_000 {
		service := assess.ServiceStatus{Namespace: "shop", Name: fmt.Sprintf("svc-%04d", i)}
		s.Services = append(s.Services, service)
		if i%400 == 0 {
			s.Problems = append(s.Problems, assess.Problem{Severity: assess.SeverityWarning, Reason: assess.ReasonConflict, Service: service.Key()})
		}
	}
	for _, test := range []struct {
		output   output.Format
		services serviceFilter
		lines    int
		says     string
	}{
		{output.Text, someServices, 25, "9975 more without problems are not shown: --services all lists them"},
		{output.Text, someServices, 25, "15 more of the same kinds are not shown: -o wide lists them"},
		{output.Text, allServices, 10_000, "SERVICES (10000)"},
		{output.Wide, someServices, 10_000, "SERVICES (10000)"},
	} {
		out := printed(s, test.output, test.services)
		if got := strings.Count(out, "\n  shop "); got != test.lines || !strings.Contains(out, test.says) {
			t.Errorf("-o %q --services %s lists %d services, want %d; must say %q", test.output, test.services, got, test.lines, test.says)
		}
	}
}

// TestManyConflicts: a table has a limited number of conflicts, and cuts long names.
func TestManyConflicts(t *testing.T) {
	service := assess.ServiceStatus{Namespace: "shop", Name: "web"}
	for i := range 60 {
		service.Conflicts = append(service.Conflicts, assess.ConflictStatus{Field: fmt.Sprintf("annotation %d %s", i, strings.Repeat("x", 300)), Using: strings.Repeat("y", 4096)})
	}
	out := printed(assess.Status{Services: []assess.ServiceStatus{service}}, output.Wide, allServices)
	if !strings.Contains(out, "x…, 55 more") || len(out) > 2000 {
		t.Errorf("%d bytes:\n%s", len(out), out)
	}
}

// TestNothingSteersTheTerminal: control characters in the data of members are replaced.
func TestNothingSteersTheTerminal(t *testing.T) {
	const evil = "v1\x1b[2J\x07\u202e\u009b31m\nmember"
	s := assess.Status{
		Problems: []assess.Problem{{Severity: assess.SeverityError, Reason: assess.ReasonRecordRefused, Service: evil, Message: evil, Next: evil}},
		Members:  []assess.MemberStatus{{ID: "a", Version: evil}},
		Services: []assess.ServiceStatus{{Namespace: "n", Name: "s", Ports: []string{evil}}},
	}
	out := printed(s, output.Wide, allServices)
	var changes bytes.Buffer
	printChanges(&changes, output.Paint(&changes), assess.ChangesBetween(assess.Status{}, s))
	for _, r := range []string{"\x1b", "\x07", "\u202e", "\u009b", "\nmember"} {
		if strings.Contains(out+changes.String(), r) {
			t.Errorf("%q reaches the terminal:\n%q", r, out+changes.String())
		}
	}
}

func TestPrintedChanges(t *testing.T) {
	var s assess.Status
	read(t, "status.json", &s)
	var out bytes.Buffer
	printChanges(&out, output.Paint(&out), assess.ChangesBetween(assess.Status{}, s))
	after := assess.Status{Time: s.Time}
	printChanges(&out, output.Paint(&out), assess.ChangesBetween(s, after))
	golden.Check(t, "status-changes.txt", out.String())
}
