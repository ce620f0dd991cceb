// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
)

const subsystem = "clusterset"

var (
	servicesGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: "services",
		Help: "Number of multi-cluster services that are served, by type.",
	}, []string{"zones", "type"})
	endpointsGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: "endpoints",
		Help: "Number of ready endpoint addresses of headless services that are served.",
	}, []string{"zones"})
	syncedGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: "synced",
		Help: "1 once all objects have been read from the API server; until then the zones answer SERVFAIL.",
	}, []string{"zones"})
	crdGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: "crd_served",
		Help: "1 if the API server serves ServiceImports, 0 if their CustomResourceDefinition is missing.",
	}, []string{"zones"})
	eventGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: "last_event_timestamp_seconds",
		Help: "Unix time at which the API server last sent something (a list, an event or a bookmark), by resource.",
	}, []string{"zones", "resource"})
	watchErrorsCounter = promauto.NewCounterVec(prometheus.CounterOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: "watch_errors_total",
		Help: "Number of lists and watches that failed, by resource; what was read last is still served.",
	}, []string{"zones", "resource"})
	refusedGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: "refused_objects",
		Help: "Number of ServiceImports and EndpointSlices that are not served, or only in part, by reason; the log names them.",
	}, []string{"zones", "reason"})
	rebuildHistogram = promauto.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: plugin.Namespace, Subsystem: subsystem, Name: "rebuild_duration_seconds",
		Help:    "Time that it took to build and publish the services that changed.",
		Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5},
	}, []string{"zones"})
)

// gauges are the metrics of one instance of the plugin, which its zones identify.
type gauges struct{ zones string }

// start creates all series, so that alerts can distinguish 0 from missing data.
func (g gauges) start(kinds []kind) {
	syncedGauge.WithLabelValues(g.zones).Set(0)
	crdGauge.WithLabelValues(g.zones).Set(0)
	g.refused(nil)
	for _, k := range kinds {
		watchErrorsCounter.WithLabelValues(g.zones, string(k)).Add(0)
	}
}

// published records what is served after a publication.
func (g gauges) published(t totals, took time.Duration) {
	syncedGauge.WithLabelValues(g.zones).Set(1)
	servicesGauge.WithLabelValues(g.zones, "ClusterSetIP").Set(float64(t.clusterSetIP))
	servicesGauge.WithLabelValues(g.zones, "Headless").Set(float64(t.headless))
	endpointsGauge.WithLabelValues(g.zones).Set(float64(t.endpoints))
	rebuildHistogram.WithLabelValues(g.zones).Observe(took.Seconds())
}

func (g gauges) refused(counts map[zone.Reason]int) {
	for _, r := range zone.Reasons {
		refusedGauge.WithLabelValues(g.zones, string(r)).Set(float64(counts[r]))
	}
}

func (g gauges) received(k kind, now time.Time) {
	eventGauge.WithLabelValues(g.zones, string(k)).Set(float64(now.UnixMilli()) / 1000)
}

func (g gauges) watchError(k kind) { watchErrorsCounter.WithLabelValues(g.zones, string(k)).Inc() }

func (g gauges) crdServed() { crdGauge.WithLabelValues(g.zones).Set(1) }
func (g gauges) crdAbsent() { crdGauge.WithLabelValues(g.zones).Set(0) }
