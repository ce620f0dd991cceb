// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scraped is what was told: the labels of each series' name, and the names of metrics.
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
