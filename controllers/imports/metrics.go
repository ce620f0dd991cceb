// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Metrics are what imports tell Prometheus. The zero value tells nothing.
type Metrics struct {
	latency     *prometheus.HistogramVec
	refusals    prometheus.Counter
	obstruction prometheus.Counter
	since       time.Time
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
		refusals: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tombolo_refused_records_total",
			Help: "Records and endpoints of other members that were refused, counted when what is refused of a service changes.",
		}),
		obstruction: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tombolo_obstructed_imports_total",
			Help: "Imports that could not be written because a ServiceImport that is not ours has their name, each time that was seen.",
		}),
	}
	for _, collector := range []prometheus.Collector{m.latency, m.refusals, m.obstruction} {
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
			where := "remote"
			if slice.Labels[mcsv1beta1.LabelSourceCluster] == string(own) {
				where = "local"
			}
			m.latency.WithLabelValues(where).Observe(now.Sub(s.Trigger).Seconds())
		}
	}
}

func (m Metrics) refused(count int) {
	if m.refusals != nil {
		m.refusals.Add(float64(count))
	}
}

func (m Metrics) obstructed() {
	if m.obstruction != nil {
		m.obstruction.Inc()
	}
}
