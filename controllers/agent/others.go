// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tombolo-mcs/tombolo/controllers/presence"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

var (
	liveDesc = prometheus.NewDesc("tombolo_member_live",
		"1 while another member renews its heartbeat on the hub, 0 while it does not, or has not since this agent began to lead.", []string{"member"}, nil)
	unconfirmedDesc = prometheus.NewDesc("tombolo_unconfirmed_services",
		"Imported services of which the hub lacks records of another member, until that member's heartbeat confirms their deletion.", []string{"member"}, nil)
)

// others tells of the other members whenever it is asked. A standby does not judge them, and has nothing to tell. There are
// as many series as the hub's administrator has admitted members.
type others struct {
	presence *presence.Presence
	store    *hub.Store
}

// tellOfOthers registers what is known of the other members.
func (m metrics) tellOfOthers(p *presence.Presence, store *hub.Store) error {
	if err := m.registry.Register(others{p, store}); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Describe announces the metrics.
func (others) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- liveDesc
	descriptions <- unconfirmedDesc
}

// Collect tells who lives, and how many services wait for each.
func (o others) Collect(values chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value int, id clusterset.ClusterID) {
		values <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(value), string(id))
	}
	unconfirmed := o.store.Unconfirmed()
	for id, state := range o.presence.Others() {
		unconfirmed[id] += 0 // so that an alert can tell none from unknown
		gauge(liveDesc, map[liveness.State]int{liveness.Live: 1}[state], id)
	}
	for id, count := range unconfirmed {
		gauge(unconfirmedDesc, count, id)
	}
}
