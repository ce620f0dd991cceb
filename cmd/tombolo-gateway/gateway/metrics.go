// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import "github.com/prometheus/client_golang/prometheus"

// The metrics of a gateway as a whole (G11). Those of its streams are in package forward.
var (
	clusterReachable = prometheus.NewDesc("tombolo_gateway_cluster_reachable",
		"1 if the gateway reaches the gateways of a cluster in use, 0 if the last attempt has failed.", []string{"cluster"}, nil)
	certificateExpiry = prometheus.NewDesc("tombolo_gateway_certificate_expiry_timestamp_seconds",
		"Unix time at which the certificate of the gateway expires.", nil, nil)
)

// newUnknownClients returns the counter of the clients of this cluster that are no known pod (A3).
func newUnknownClients() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tombolo_gateway_unknown_clients_total", Help: "Clients of this cluster of which no pod is known, by the cluster that they use.",
	}, []string{"cluster"})
}

// Describe implements prometheus.Collector.
func (g *gateway) Describe(ch chan<- *prometheus.Desc) {
	ch <- clusterReachable
	ch <- certificateExpiry
}

// Collect implements prometheus.Collector.
func (g *gateway) Collect(ch chan<- prometheus.Metric) {
	for id, err := range g.reachable() {
		value := 1.0
		if err != nil {
			value = 0
		}
		ch <- prometheus.MustNewConstMetric(clusterReachable, prometheus.GaugeValue, value, string(id))
	}
	if leaf := g.leaf.Load(); leaf != nil {
		ch <- prometheus.MustNewConstMetric(certificateExpiry, prometheus.GaugeValue, float64(leaf.Leaf.NotAfter.Unix()))
	}
}
