// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Values of the label source: where the source slice is.
const (
	sourceLocal  = "local"
	sourceRemote = "remote"
)

// Metrics are the metrics of imports. The zero value records nothing.
type Metrics struct {
	latency    *prometheus.HistogramVec
	refused    *sumGauge
	obstructed *sumGauge
	since      time.Time
}

// NewMetrics registers and returns the metrics of imports. since is the start of the agent: earlier changes are not measured.
func NewMetrics(registry prometheus.Registerer, since time.Time) (Metrics, error) {
	m := Metrics{
		since: since,
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tombolo_propagation_seconds",
			Help: "Time from the change that a source EndpointSlice reflects to the mirrored slice written here, by where the source is. " +
				"Across clusters it holds the difference between their clocks.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"source"}),
		refused: newSumGauge("tombolo_refused_records",
			"Records and endpoints of other members, for services of namespaces that are here, that are refused."),
		obstructed: newSumGauge("tombolo_obstructed_imports",
			"Imports that cannot be written because a ServiceImport that is not ours has their name."),
	}
	for _, location := range []string{sourceLocal, sourceRemote} {
		m.latency.WithLabelValues(location) // creates the series, so that 0 differs from missing data
	}
	for _, collector := range []prometheus.Collector{m.latency, m.refused.gauge, m.obstructed.gauge} {
		if err := registry.Register(collector); err != nil {
			return Metrics{}, err
		}
	}
	return m, nil
}

// observePropagation observes the age of the changes in the written slices.
func (m Metrics) observePropagation(own clusterset.ClusterID, slices []clusterset.Slice, written []*discoveryv1.EndpointSlice, now time.Time) {
	if m.latency == nil {
		return
	}
	for _, slice := range written {
		for _, s := range slices {
			mirrors := clusterset.MirroredSliceName(slice.Labels[discoveryv1.LabelServiceName], s.Cluster, s.ID) == slice.Name
			if !mirrors || s.Trigger.Before(m.since) {
				continue
			}
			location := sourceRemote
			if slice.Labels[mcsv1beta1.LabelSourceCluster] == string(own) {
				location = sourceLocal
			}
			m.latency.WithLabelValues(location).Observe(now.Sub(s.Trigger).Seconds())
		}
	}
}

// update sets the metrics of one service.
func (m Metrics) update(key clusterset.ServiceKey, v view, d decision) {
	if m.refused == nil {
		return
	}
	m.refused.set(key, v.sources.Hub.RefusedTotal)
	blocked := 0
	if d.state == exported && v.isObstructed() {
		blocked = 1
	}
	m.obstructed.set(key, blocked)
}

// sumGauge is the sum of a count over all services. Services are no labels, because there may be thousands.
type sumGauge struct {
	gauge prometheus.Gauge

	mu    sync.Mutex
	count map[clusterset.ServiceKey]int
	sum   int
}

func newSumGauge(name, help string) *sumGauge {
	return &sumGauge{
		gauge: prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}),
		count: map[clusterset.ServiceKey]int{},
	}
}

// set sets the count of a service.
func (g *sumGauge) set(key clusterset.ServiceKey, count int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sum += count - g.count[key]
	g.count[key] = count
	if count == 0 {
		delete(g.count, key)
	}
	g.gauge.Set(float64(g.sum))
}
