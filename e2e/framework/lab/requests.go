// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// Requests are how many requests of one sort a cluster's API server has answered.
type Requests struct {
	// Resource is as in "services", or "services/status" for a subresource. Verb is as in "POST", Code as in "201".
	Resource, Verb, Code string
	Count                int
}

// Requests returns how many requests the API server has answered since it was started, by its own metrics. A sort may
// occur several times.
func (c *Cluster) Requests(ctx context.Context) ([]Requests, error) {
	samples, err := c.samples(ctx, "apiserver_request_total")
	if err != nil {
		return nil, err
	}
	var result []Requests
	for _, s := range samples {
		result = append(result, requestsOf(s))
	}
	return result, nil
}

func requestsOf(s sample) Requests {
	r := Requests{Resource: s.labels["resource"], Verb: s.labels["verb"], Code: s.labels["code"], Count: s.value}
	if s.labels["subresource"] != "" {
		r.Resource += "/" + s.labels["subresource"]
	}
	return r
}

// Denials returns how often each ValidatingAdmissionPolicy has denied a request since the API server was started, by its
// own metrics.
func (c *Cluster) Denials(ctx context.Context) (map[string]int, error) {
	samples, err := c.samples(ctx, "apiserver_validating_admission_policy_check_total")
	if err != nil {
		return nil, err
	}
	result := map[string]int{}
	for _, s := range samples {
		if s.labels["enforcement_action"] == "deny" {
			result[s.labels["policy"]] += s.value
		}
	}
	return result, nil
}

// sample is one line of a counter.
type sample struct {
	labels map[string]string
	value  int
}

// samples returns the lines of a counter of the API server.
func (c *Cluster) samples(ctx context.Context, name string) ([]sample, error) {
	connection, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		return nil, err
	}
	defer connection.CloseIdleConnections()
	all, err := Get(ctx, connection, c.Config().Host+"/metrics")
	if err != nil {
		return nil, err
	}
	text := &bytes.Buffer{} // the counter alone: the API server has megabytes of others
	for line := range bytes.Lines(all) {
		if bytes.HasPrefix(line, []byte(name+"{")) {
			text.Write(line)
		}
	}
	result, err := parseSamples(text, name)
	if err != nil {
		return nil, fmt.Errorf("metrics of %s: %w", c.Name, err)
	}
	return result, nil
}

// parseSamples returns the lines of a counter, which have no type, in Prometheus' text format.
func parseSamples(text io.Reader, name string) ([]sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, err
	}
	var result []sample
	for _, metric := range families[name].GetMetric() {
		s := sample{labels: map[string]string{}, value: int(metric.GetUntyped().GetValue())}
		for _, label := range metric.GetLabel() {
			s.labels[label.GetName()] = label.GetValue()
		}
		result = append(result, s)
	}
	return result, nil
}
