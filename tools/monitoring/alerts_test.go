// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

// step is the time between two scrapes, and between two evaluations of the alerts.
const step = 30 * time.Second

// story says which alerts fire on which series.
type story struct {
	Alert string
	// Series replace those of the healthy cluster that have the same labels; "gone" removes them.
	Series map[string]string
	// Silent is the last time at which the alert does not fire yet, Fires the first at which it does.
	Silent, Fires model.Duration
	// Labels are what it fires with, besides its name and severity.
	Labels map[string]string
	// Ends is a time at which it does not fire any more, 0 if it continues.
	Ends model.Duration
}

// TestAlerts evaluates the alerts with Prometheus' own engine on series of the tests: each fires when it should, with
// what its text speaks of, and none does without a reason.
func TestAlerts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "alerts.yaml"))
	must(t, err)
	var file struct {
		Healthy map[string]string
		// Quiet are changes of those series that no alert is for, by what they are.
		Quiet   map[string]map[string]string
		Stories []story
	}
	must(t, yaml.UnmarshalStrict(text, &file))
	m := load(t)
	for name, change := range file.Quiet {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if fired := evaluate(t, m, changed(t, file.Healthy, change), 80*time.Minute); len(fired) > 0 {
				t.Errorf("%v", fired)
			}
		})
	}
	covered := map[string]bool{}
	for i, s := range file.Stories {
		covered[s.Alert] = true
		t.Run(fmt.Sprintf("%s/%d", s.Alert, i), func(t *testing.T) {
			t.Parallel()
			s.check(t, m, file.Healthy)
		})
	}
	for _, rule := range m.rules {
		if !covered[rule.Alert] {
			t.Errorf("no story covers %s", rule.Alert)
		}
	}
}

func (s story) check(t *testing.T, m manifests, healthy map[string]string) {
	t.Helper()
	fired := evaluate(t, m, changed(t, healthy, s.Series), time.Duration(max(s.Fires, s.Ends)))
	if at := fired[s.Alert][time.Duration(s.Silent)]; len(at) > 0 {
		t.Errorf("at %s it fires already: %v", s.Silent, at)
	}
	at := fired[s.Alert][time.Duration(s.Fires)]
	if len(at) != 1 {
		t.Fatalf("at %s there are %d of it, want 1: %v", s.Fires, len(at), fired)
	}
	for name, want := range s.Labels {
		if got := at[0].Get(name); got != want {
			t.Errorf("label %s is %q, want %q", name, got, want)
		}
	}
	for _, name := range m.labelsInText(s.Alert) {
		if at[0].Get(name) == "" {
			t.Errorf("its text speaks of label %s, which is empty", name)
		}
	}
	if s.Ends > 0 && len(fired[s.Alert][time.Duration(s.Ends)]) > 0 {
		t.Errorf("at %s it still fires", s.Ends)
	}
	for name := range fired {
		if name != s.Alert {
			t.Errorf("%s fires too: %v", name, fired[name])
		}
	}
}

// changed returns the series of the healthy cluster with changes: each is of one that it has.
func changed(t *testing.T, healthy, changes map[string]string) map[string]string {
	t.Helper()
	series := maps.Clone(healthy)
	for name, values := range changes {
		if series[name] == "" {
			t.Errorf("the healthy cluster has no %s", name)
		}
		series[name] = values
	}
	maps.DeleteFunc(series, func(_, values string) bool { return values == "gone" })
	return series
}

// labelsInText returns the labels that the annotations of an alert name.
func (m manifests) labelsInText(alert string) []string {
	i := slices.IndexFunc(m.rules, func(r rule) bool { return r.Alert == alert })
	if i < 0 {
		return nil
	}
	return named(inAnnotation, m.rules[i].Annotations["description"])
}

// timeline holds the labels with which an alert fires, by the time since the beginning.
type timeline map[time.Duration][]labels.Labels

// evaluate returns when which alerts fire on series.
func evaluate(t *testing.T, m manifests, series map[string]string, end time.Duration) map[string]timeline {
	t.Helper()
	var script strings.Builder
	fmt.Fprintf(&script, "load %s\n", step)
	for _, name := range slices.Sorted(maps.Keys(series)) {
		fmt.Fprintf(&script, "  %s %s\n", name, series[name])
	}
	storage := promqltest.LoadedStorage(t, script.String())
	t.Cleanup(func() { _ = storage.Close() }) // the error does not matter
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery), storage)
	fired := map[string]timeline{}
	for _, r := range m.rules {
		alert := alerting(t, r)
		for at := time.Duration(0); at <= end; at += step {
			now := time.Unix(0, 0).Add(at)
			if _, err := alert.Eval(context.Background(), 0, now, query, nil, 0); err != nil {
				t.Fatalf("%s: %v", r.Alert, err)
			}
			for _, active := range alert.ActiveAlerts() {
				if active.State != rules.StateFiring {
					continue
				}
				if fired[r.Alert] == nil {
					fired[r.Alert] = timeline{}
				}
				fired[r.Alert][at] = append(fired[r.Alert][at], active.Labels)
			}
		}
	}
	return fired
}

// alerting returns the rule as Prometheus runs it.
func alerting(t *testing.T, r rule) *rules.AlertingRule {
	t.Helper()
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr.String())
	must(t, err)
	var hold model.Duration
	if r.For != nil {
		hold, err = model.ParseDuration(string(*r.For))
		must(t, err)
	}
	return rules.NewAlertingRule(r.Alert, expression, time.Duration(hold), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations),
		labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
}

// load returns the manifests of this repository.
func load(t *testing.T) manifests {
	t.Helper()
	m, err := loadManifests(filepath.Join("..", "..", "manifests", "monitoring"))
	must(t, err)
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
