// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tombolo-mcs/tombolo/controllers/presence"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	liveDesc = prometheus.NewDesc("tombolo_member_live",
		"1 while another member renews its heartbeat on the hub, 0 while it does not, or has not since this agent began to lead.", []string{"member"}, nil)
	refusedDesc = prometheus.NewDesc("tombolo_identity_refused",
		"1 while another cluster, or a copy of this one, uses the ID of this cluster, so that this one publishes nothing, else 0.", nil, nil)
	contestsDesc = prometheus.NewDesc("tombolo_identity_contests_total",
		"How often another process with the identity of this cluster has replaced its heartbeat, and this agent has continued: a copy of the cluster runs.", nil, nil)
	unconfirmedDesc = prometheus.NewDesc("tombolo_unconfirmed_services",
		"Imported services of which the hub lacks records of another member, until that member's heartbeat confirms their deletion.", []string{"member"}, nil)
)

// memberMetrics are the metrics of the other members, and of the identity of this one. A standby does not track members, and has no such metrics. The hub's
// administrator limits the number of series, by admitting members.
type memberMetrics struct {
	presence *presence.Presence
	store    *hub.Store
}

// registerMembers registers the metrics of the other members.
func (m metrics) registerMembers(p *presence.Presence, store *hub.Store) error {
	if err := m.registry.Register(memberMetrics{p, store}); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Describe sends the descriptions of the metrics.
func (memberMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- liveDesc
	descriptions <- unconfirmedDesc
	descriptions <- refusedDesc
	descriptions <- contestsDesc
}

// Collect sends the state of each member, and the number of its unconfirmed services.
func (m memberMetrics) Collect(values chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value int, id clusterset.ClusterID) {
		values <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(value), string(id))
	}
	refused := 0.0
	if m.presence.Refusal() != "" {
		refused = 1
	}
	values <- prometheus.MustNewConstMetric(refusedDesc, prometheus.GaugeValue, refused)
	values <- prometheus.MustNewConstMetric(contestsDesc, prometheus.CounterValue, float64(m.presence.Contests()))
	unconfirmed := m.store.Unconfirmed()
	for id, state := range m.presence.RemoteStates() {
		unconfirmed[id] += 0 // so that alerts can distinguish 0 from missing data
		gauge(liveDesc, map[liveness.State]int{liveness.Live: 1}[state], id)
	}
	for id, count := range unconfirmed {
		gauge(unconfirmedDesc, count, id)
	}
}
