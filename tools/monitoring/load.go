// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// manifests are what a kustomization creates for the Prometheus Operator and Grafana.
type manifests struct {
	// groups holds the specifications of PrometheusRules, by name: they are rule files of Prometheus.
	groups map[string][]byte
	rules  []rule
	// jobs are what Prometheus calls the pods that PodMonitors select.
	jobs   map[string]bool
	panels []panel
	// variables are the queries that fill the dashboard's variables.
	variables []string
}

// rule is a rule of a PrometheusRule.
type rule = monitoringv1.Rule

// panel is one query of a dashboard.
type panel struct {
	title, query, legend string
}

// loadManifests renders a kustomization and reads it strictly: a field that its kind does not have is an error.
func loadManifests(path string) (manifests, error) {
	m := manifests{groups: map[string][]byte{}, jobs: map[string]bool{}}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	if err != nil {
		return m, fmt.Errorf("render %s: %w", path, err)
	}
	for _, resource := range rendered.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return m, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
		switch resource.GetKind() {
		case monitoringv1.PodMonitorsKind:
			err = yaml.UnmarshalStrict(text, &monitoringv1.PodMonitor{})
			m.jobs[resource.GetNamespace()+"/"+resource.GetName()] = true
		case monitoringv1.PrometheusRuleKind:
			err = m.addRules(text)
		case "ConfigMap":
			err = m.addDashboards(resource.GetDataMap())
		default:
			err = errors.New("this kind is unknown")
		}
		if err != nil {
			return m, fmt.Errorf("%s: %w", resource.CurId(), err)
		}
	}
	return m, nil
}

func (m *manifests) addRules(text []byte) error {
	rule := &monitoringv1.PrometheusRule{}
	if err := yaml.UnmarshalStrict(text, rule); err != nil {
		return err
	}
	groups, err := yaml.Marshal(rule.Spec)
	if err != nil {
		return err
	}
	m.groups[rule.Name] = groups
	for _, group := range rule.Spec.Groups {
		m.rules = append(m.rules, group.Rules...)
	}
	return nil
}

// dashboard is the part of Grafana's model that asks.
type dashboard struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct {
			Type  string
			Query any
		}
	}
}

func (m *manifests) addDashboards(data map[string]string) error {
	for name, text := range data {
		d := dashboard{}
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				query := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m") // Grafana's other variables are in strings
				m.panels = append(m.panels, panel{p.Title, query, target.LegendFormat})
			}
		}
		for _, variable := range d.Templating.List {
			if variable.Type == "query" {
				m.variables = append(m.variables, fmt.Sprint(variable.Query))
			}
		}
	}
	return nil
}

// scraped is what was scraped: the labels of each series' name, and the names of metrics.
type scraped struct {
	series map[string]labelSet
	// metrics says, for each name of a series, of which metric it is: a histogram has three.
	metrics map[string]string
}

// labelSet is a set of names of labels.
type labelSet map[string]bool

// loadScrapes reads every scrape of a folder. A folder without one is an error.
func loadScrapes(folder string) (scraped, error) {
	s := scraped{series: map[string]labelSet{}, metrics: map[string]string{}}
	paths, err := filepath.Glob(filepath.Join(folder, "*.prom"))
	if err != nil {
		return s, err
	}
	if len(paths) == 0 {
		return s, fmt.Errorf("there is no scrape in %s: run make monitoring-check", folder)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return s, err
		}
		if err := s.add(text); err != nil {
			return s, fmt.Errorf("%s: %w", path, err)
		}
	}
	return s, nil
}

// add takes over a scrape in Prometheus' text format.
func (s scraped) add(text []byte) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return err
	}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetType() {
			case dto.MetricType_HISTOGRAM:
				s.note(name, name+"_bucket", metric, model.BucketLabel)
				s.note(name, name+"_count", metric)
				s.note(name, name+"_sum", metric)
			case dto.MetricType_SUMMARY:
				s.note(name, name, metric, model.QuantileLabel)
				s.note(name, name+"_count", metric)
				s.note(name, name+"_sum", metric)
			default:
				s.note(name, name, metric)
			}
		}
	}
	return nil
}

func (s scraped) note(family, series string, metric *dto.Metric, more ...string) {
	if s.series[series] == nil {
		s.series[series] = labelSet{}
	}
	s.metrics[series] = family
	for _, label := range metric.GetLabel() {
		s.series[series][label.GetName()] = true
	}
	for _, label := range more {
		s.series[series][label] = true
	}
}
