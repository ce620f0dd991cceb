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

// Where a source slice is: the values of label source.
const (
	sourceLocal  = "local"
	sourceRemote = "remote"
)

// Metrics are what imports tell Prometheus. The zero value tells nothing.
type Metrics struct {
	latency    *prometheus.HistogramVec
	refused    *tally
	obstructed *tally
	since      time.Time
}

// NewMetrics returns the metrics of imports, registered. since is when the agent started: changes that happened before
// say nothing about how fast it is.
func NewMetrics(registry prometheus.Registerer, since time.Time) (Metrics, error) {
	m := Metrics{
		since: since,
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tombolo_propagation_seconds",
			Help: "Time from the change that a source EndpointSlice reflects to the mirrored slice written here, by where the source is. " +
				"Across clusters it holds the difference between their clocks.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"source"}),
		refused: newTally("tombolo_refused_records",
			"Records and endpoints of other members, for services of namespaces that are here, that are refused."),
		obstructed: newTally("tombolo_obstructed_imports",
			"Imports that cannot be written because a ServiceImport that is not ours has their name."),
	}
	for _, where := range []string{sourceLocal, sourceRemote} {
		m.latency.WithLabelValues(where) // which tells that nothing was slow from nothing
	}
	for _, collector := range []prometheus.Collector{m.latency, m.refused.gauge, m.obstructed.gauge} {
		if err := registry.Register(collector); err != nil {
			return Metrics{}, err
		}
	}
	return m, nil
}

// propagated observes how old the changes are that the written slices brought.
func (m Metrics) propagated(own clusterset.ClusterID, slices []clusterset.Slice, written []*discoveryv1.EndpointSlice, now time.Time) {
	if m.latency == nil {
		return
	}
	for _, slice := range written {
		for _, s := range slices {
			mirrors := clusterset.MirroredSliceName(slice.Labels[discoveryv1.LabelServiceName], s.Cluster, s.ID) == slice.Name
			if !mirrors || s.Trigger.Before(m.since) {
				continue
			}
			where := sourceRemote
			if slice.Labels[mcsv1beta1.LabelSourceCluster] == string(own) {
				where = sourceLocal
			}
			m.latency.WithLabelValues(where).Observe(now.Sub(s.Trigger).Seconds())
		}
	}
}

// found tells what is the matter with one service, now that it has been looked at.
func (m Metrics) found(key clusterset.ServiceKey, v view, d decision) {
	if m.refused == nil {
		return
	}
	m.refused.set(key, v.known.Hub.RefusedTotal)
	blocked := 0
	if d.verdict == exported && v.isObstructed() {
		blocked = 1
	}
	m.obstructed.set(key, blocked)
}

// tally counts something of each service, and tells the sum: names of services are no labels, as there may be thousands.
type tally struct {
	gauge prometheus.Gauge

	mu    sync.Mutex
	count map[clusterset.ServiceKey]int
	sum   int
}

func newTally(name, help string) *tally {
	return &tally{
		gauge: prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}),
		count: map[clusterset.ServiceKey]int{},
	}
}

// set notes how much there is of a service now.
func (t *tally) set(key clusterset.ServiceKey, count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum += count - t.count[key]
	t.count[key] = count
	if count == 0 {
		delete(t.count, key)
	}
	t.gauge.Set(float64(t.sum))
}
