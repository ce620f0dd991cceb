// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Metrics are the metrics of one direction of a gateway (G11). The label cluster is the other cluster, a member of the clusterset.
type Metrics struct {
	streams          *prometheus.GaugeVec
	openedTotal      *prometheus.CounterVec
	refusedTotal     *prometheus.CounterVec
	bytesTotal       *prometheus.CounterVec
	connections      *prometheus.GaugeVec
	openSeconds, rtt *prometheus.HistogramVec
	handshakesFailed prometheus.Counter
}

// NewMetrics returns metrics whose label direction has a value, import or export.
func NewMetrics(direction string) *Metrics {
	labels := prometheus.Labels{"direction": direction}
	counter := func(name, help string, names ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tombolo_gateway_" + name, Help: help, ConstLabels: labels}, names)
	}
	gauge := func(name, help string, names ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tombolo_gateway_" + name, Help: help, ConstLabels: labels}, names)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tombolo_gateway_" + name, Help: help, ConstLabels: labels, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"cluster"})
	}
	return &Metrics{
		streams:      gauge("streams", "Streams that are open.", "cluster"),
		openedTotal:  counter("streams_opened_total", "Streams that were opened.", "cluster"),
		refusedTotal: counter("streams_refused_total", "Streams that could not be opened, by reason.", "cluster", "reason"),
		bytesTotal:   counter("bytes_total", "Bytes of streams that were forwarded to the other cluster (sent) or from it (received).", "cluster", "flow"),
		connections:  gauge("connections", "Connections to gateways of the other cluster that are warm (idle) or used.", "cluster", "state"),
		openSeconds:  histogram("open_seconds", "Time from accepting a client until the backend of the other cluster is connected."),
		handshakesFailed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tombolo_gateway_handshakes_failed_total", Help: "Connections whose peer was not accepted as a gateway of another member.", ConstLabels: labels,
		}),
		rtt: histogram("round_trip_seconds", "Round-trip time to the gateways of the other cluster."),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.streams, m.openedTotal, m.refusedTotal, m.bytesTotal, m.connections, m.openSeconds, m.rtt, m.handshakesFailed}
}

// opened counts a stream that is open until the result is called.
func (m *Metrics) opened(cluster clusterset.ClusterID) func() {
	m.openedTotal.WithLabelValues(string(cluster)).Inc()
	open := m.streams.WithLabelValues(string(cluster))
	open.Inc()
	return open.Dec
}

// refused counts a stream. Unknown codes have one reason, because another cluster has chosen them.
func (m *Metrics) refused(cluster clusterset.ClusterID, code wire.Code) {
	reason := "Other"
	if code.IsKnown() {
		reason = code.String()
	}
	m.refusedTotal.WithLabelValues(string(cluster), reason).Inc()
}

// bytes returns a function that counts bytes of a stream.
func (m *Metrics) bytes(cluster clusterset.ClusterID) func(sent, received int) {
	out, in := m.bytesTotal.WithLabelValues(string(cluster), "sent"), m.bytesTotal.WithLabelValues(string(cluster), "received")
	return func(sent, received int) {
		if sent > 0 {
			out.Add(float64(sent))
		}
		if received > 0 {
			in.Add(float64(received))
		}
	}
}

// observe adds a duration to a histogram.
func observe(h *prometheus.HistogramVec, cluster clusterset.ClusterID, d time.Duration) {
	h.WithLabelValues(string(cluster)).Observe(d.Seconds())
}
