// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/importing"
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
	records    *sumGauge
	obstructed *sumGauge
	refused    *sumGauge
	since      time.Time
	triggers   *triggers
}

// NewMetrics registers and returns the metrics of imports. since is the start of the agent: earlier changes are not measured.
func NewMetrics(registry prometheus.Registerer, since time.Time) (Metrics, error) {
	m := Metrics{
		since:    since,
		triggers: &triggers{latest: map[clusterset.ServiceKey]map[clusterset.ClusterID]time.Time{}},
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tombolo_propagation_seconds",
			Help: "Time from the change that a source EndpointSlice reflects to the mirrored slice written here, by where the source is. " +
				"Across clusters it includes the difference between their clocks.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, []string{"source"}),
		records: newSumGauge("tombolo_refused_records",
			"Records and endpoints of other members that are refused, of services whose namespace exists in this cluster."),
		obstructed: newSumGauge("tombolo_obstructed_imports",
			"Imports that cannot be written because an unmanaged ServiceImport has their name."),
		refused: newSumGauge("tombolo_refused_imports",
			"Imports with objects that cannot be written, because the API server, a quota, a policy or a webhook refuses or changes them."),
	}
	for _, location := range []string{sourceLocal, sourceRemote} {
		m.latency.WithLabelValues(location) // creates the series, so that 0 differs from missing data
	}
	for _, collector := range []prometheus.Collector{m.latency, m.records.gauge, m.obstructed.gauge, m.refused.gauge} {
		if err := registry.Register(collector); err != nil {
			return Metrics{}, err
		}
	}
	return m, nil
}

// observePropagation observes the age of the changes in the written slices. all are the source slices of the service, also those that are
// not mirrored. A change that was known when the service was written before is not observed: its slice is written now because another
// source no longer serves, and not because it has changed.
func (m Metrics) observePropagation(own clusterset.ClusterID, key clusterset.ServiceKey, all []clusterset.Slice, written []*discoveryv1.EndpointSlice, now time.Time) {
	if m.latency == nil {
		return
	}
	known := m.triggers.of(key)
	for _, slice := range written {
		for _, s := range all {
			mirrors := clusterset.MirroredSliceName(slice.Labels[discoveryv1.LabelServiceName], s.Cluster, s.ID) == slice.Name
			if !mirrors || s.Trigger.Before(m.since) || !s.Trigger.After(known[s.Cluster]) {
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

// triggers stores the latest trigger time of the slices of each service and source cluster. Clusters have different clocks.
type triggers struct {
	mu     sync.Mutex
	latest map[clusterset.ServiceKey]map[clusterset.ClusterID]time.Time
}

// of returns the latest trigger times of a service, by source cluster. The result must not be changed.
func (t *triggers) of(key clusterset.ServiceKey) map[clusterset.ClusterID]time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.latest[key]
}

// update stores the trigger times of all source slices of a service from since on.
func (t *triggers) update(key clusterset.ServiceKey, since time.Time, all []clusterset.Slice) {
	latest := map[clusterset.ClusterID]time.Time{}
	for _, s := range all {
		if !s.Trigger.Before(since) && s.Trigger.After(latest[s.Cluster]) {
			latest[s.Cluster] = s.Trigger
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latest[key] = latest
	if len(latest) == 0 {
		delete(t.latest, key)
	}
}

// update sets the metrics of one service from what was observed and the last plan.
func (m Metrics) update(o importing.Observed, p importing.Plan) {
	if m.records == nil {
		return
	}
	key, isRefused := o.Sources.Key, len(p.Refused) > 0
	switch {
	case !p.IsImported:
		m.triggers.update(key, m.since, nil)
	case p.IsLast && !isRefused:
		m.triggers.update(key, m.since, o.SourceSlices())
	}
	m.records.set(key, o.Sources.Hub.RefusedTotal)
	m.obstructed.set(key, countOf(p.IsObstructed))
	m.refused.set(key, countOf(isRefused))
}

func countOf(is bool) int { //nolint:revive // the value to count, not a mode
	if is {
		return 1
	}
	return 0
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
