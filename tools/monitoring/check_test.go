// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// sampleScrape is a scrape of everything that the manifests of these tests ask for.
const sampleScrape = `# TYPE tombolo_up gauge
tombolo_up{member="b"} 1
# TYPE tombolo_seconds histogram
tombolo_seconds_bucket{source="remote",le="1"} 1
tombolo_seconds_bucket{source="remote",le="+Inf"} 1
tombolo_seconds_sum{source="remote"} 1
tombolo_seconds_count{source="remote"} 1
# TYPE other_total counter
other_total 1
`

const book = "# Runbook\n\n## TomboloDown\n\nDo something.\n"

// sound returns manifests with which nothing is wrong.
func sound() manifests {
	return manifests{
		groups: map[string][]byte{"tombolo": []byte("groups: [{name: a, rules: [{alert: TomboloDown, expr: tombolo_up == 0}]}]")},
		jobs:   map[string]bool{"ns/agent": true},
		rules: []rule{{
			Alert: "TomboloDown", Expr: intstr.FromString(`tombolo_up == 0 or max by (namespace) (up{job="ns/agent"}) == 0`),
			Labels: map[string]string{"severity": "critical"},
			Annotations: map[string]string{
				"summary": "Down.", "description": "{{ $labels.member }} is down in {{ $labels.namespace }}.", "runbook_url": runbookURL + "tombolodown",
			},
		}},
		panels: []panel{
			{"slow", `histogram_quantile(0.99, sum by (source, le) (rate(tombolo_seconds_bucket{namespace=~"$namespace"}[5m])))`, "{{source}}"},
			{"age", `time() - sum without (pod) (other_total)`, "{{instance}}"},
		},
		variables: []string{"label_values(tombolo_up, namespace)"},
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		query, problem string // of panel age
		spoil          func(*manifests)
		want           []string
	}{
		"sound":                                  {},
		"a misspelt metric":                      {query: "other_totals", problem: `no scrape has metric "other_totals"`},
		"a label that is not emitted":            {query: `other_total{member="b"}`, problem: `other_total has no label "member"`},
		"a group that is not emitted":            {query: `sum by (source) (tombolo_up)`, problem: `nothing there has a label "source"`},
		"a group that an inner one has dropped":  {query: `sum by (pod) (sum by (member) (tombolo_up))`, problem: `nothing there has a label "pod"`},
		"a match on a label that one side lacks": {query: `tombolo_up * on (member) other_total`, problem: `nothing there has a label "member"`},
		"a quantile without buckets":             {query: `histogram_quantile(0.5, other_total)`, problem: `nothing there has a label "le"`},
		"a broken query":                         {query: "sum by (", problem: `1:9: parse error: unclosed left parenthesis`},
		"a legend of what is not there": {
			spoil: func(m *manifests) { m.panels[0].legend = "{{ source }} {{le}}" },
			want:  []string{`panel "slow": nothing there has a label "le"`},
		},
		"a text of what is not there": {
			spoil: func(m *manifests) { m.rules[0].Annotations["description"] = "{{ $labels.source }}" },
			want:  []string{`TomboloDown: nothing there has a label "source"`},
		},
		"a job that no configuration defines": {
			spoil: func(m *manifests) { m.jobs = map[string]bool{"ns/other": true} },
			want:  []string{`TomboloDown: no PodMonitor makes the job job="ns/agent"`},
		},
		"a variable of what is not there": {
			spoil: func(m *manifests) { m.variables = []string{"label_values(tombolo_up, source)", "metrics(x)"} },
			want:  []string{`variable: "metrics(x)" is not label_values(metric, label)`, `variable: nothing there has a label "source"`},
		},
		"a metric that nothing reads": {
			spoil: func(m *manifests) { m.panels = m.panels[1:] },
			want:  []string{"tombolo_seconds is used by no alert and no panel"},
		},
		"no entry in the runbook": {
			spoil: func(m *manifests) {
				m.rules[0].Alert = "TomboloUp"
				m.rules[0].Annotations["runbook_url"] = runbookURL + "tomboloup"
			},
			want: []string{"TomboloUp: docs/runbook.md has no such heading", "docs/runbook.md: there is no alert TomboloDown"},
		},
		"an alert that says nothing": {
			spoil: func(m *manifests) { m.rules[0].Labels, m.rules[0].Annotations = nil, nil },
			want: []string{
				"TomboloDown: it has no description", "TomboloDown: it has no summary",
				`TomboloDown: runbook_url is "", must be ` + runbookURL + "tombolodown",
				`TomboloDown: severity is "", must be critical or warning`,
			},
		},
		"no rule file": {
			spoil: func(m *manifests) {
				m.groups["tombolo"] = []byte("groups: [{name: a, rules: [{alert: TomboloDown, expr: up, for: soon}]}]")
			},
			want: []string{`tombolo: not a valid duration string: "soon"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, s := sound(), scraped{series: map[string]labelSet{}, metrics: map[string]string{}}
			must(t, s.add([]byte(sampleScrape)))
			if test.query != "" {
				m.panels[1] = panel{"age", test.query, ""}
				test.want = []string{`panel "age": ` + test.problem}
			}
			if test.spoil != nil {
				test.spoil(&m)
			}
			if diff := cmp.Diff(test.want, m.check(s, book)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestRun: a field that a kind does not have, a missing scrape and a problem each fail the command.
func TestRun(t *testing.T) {
	t.Parallel()
	root, scrapes := t.TempDir(), t.TempDir()
	write := func(text string, path ...string) {
		t.Helper()
		file := filepath.Join(path...)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)))
	}
	const header = "apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: agent, namespace: ns}\nspec:\n  selector: {}\n"
	monitor := []string{root, "manifests", "monitoring", "monitor.yaml"}
	write("resources: [monitor.yaml]", root, "manifests", "monitoring", "kustomization.yaml")
	write(header, monitor...)
	write("", root, "docs", "runbook.md")
	var out bytes.Buffer
	command := func() error {
		out.Reset()
		return run([]string{"-root=" + root, "-scrapes=" + scrapes}, &out)
	}
	if err := command(); err == nil || !strings.Contains(err.Error(), "there is no scrape in") {
		t.Errorf("without a scrape: %v", err)
	}
	write("other_total 1\n", scrapes, "agent.prom")
	if err := command(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	write("tombolo_new 1\n", scrapes, "dns.prom")
	if err := command(); !errors.Is(err, errProblems) || out.String() != "tombolo_new is used by no alert and no panel\ndocs/runbook.md: tombolo_new is missing\n" {
		t.Errorf("with a metric that nothing uses: %v\n%s", err, out.String())
	}
	write("| Metric |\n| `tombolo_new` | gauge |\n| `tombolo_old` | gauge |\n", root, "docs", "runbook.md")
	if err := command(); !errors.Is(err, errProblems) || out.String() != "tombolo_new is used by no alert and no panel\ndocs/runbook.md: there is no metric tombolo_old\n" {
		t.Errorf("with a metric in the document that there is not: %v\n%s", err, out.String())
	}
	write(header+"  podMetricsEndpoint: []\n", monitor...)
	if err := command(); err == nil || !strings.Contains(err.Error(), `unknown field "podMetricsEndpoint"`) {
		t.Errorf("with a field that there is not: %v", err)
	}
}
