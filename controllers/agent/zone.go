// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// NoClusterDNS is the value of Options.ClusterDNS for no queries.
const NoClusterDNS = "none"

// versionRecord is a name that each DNS server of the clusterset's zone has (spec N1).
const versionRecord = "dns-version.clusterset.local."

// zoneInterval is the time between two queries, and zoneTimeout the time in which one must be answered: resolvers of pods wait as long.
const (
	zoneInterval = 30 * time.Second
	zoneTimeout  = 10 * time.Second
)

// txtResolver looks up TXT records.
type txtResolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// zoneProbe queries the DNS that the cluster's pods use for the clusterset's zone, as any pod does. So it needs no rights, and it notices
// whatever is wrong between a pod and the zone: a Corefile that does not forward, or to an address of the past.
type zoneProbe struct {
	resolver txtResolver
	gauge    prometheus.Gauge
	log      logr.Logger
}

// NeedLeaderElection returns false: each replica queries the DNS of its node.
func (p *zoneProbe) NeedLeaderElection() bool { return false }

// Start queries until ctx ends.
func (p *zoneProbe) Start(ctx context.Context) error {
	last := ""
	for {
		if result := p.query(ctx); ctx.Err() == nil && result != last {
			last = result
			p.log.Info("the cluster's DNS and the names of the clusterset", "result", result)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(zoneInterval):
		}
	}
}

// query sets the metric, and returns what to log.
func (p *zoneProbe) query(ctx context.Context) string {
	asking, cancel := context.WithTimeout(ctx, zoneTimeout)
	defer cancel()
	found, err := p.resolver.LookupTXT(asking, versionRecord)
	switch {
	case ctx.Err() != nil:
		return ""
	case err == nil && len(found) > 0:
		p.gauge.Set(1)
		return "they resolve"
	}
	p.gauge.Set(0)
	return "they do not resolve; if applications use these names: kubectl clusterset dns"
}

// addZoneProbe adds the probe, unless it is not known which DNS the cluster's pods use: then there is no metric.
func (s *starter) addZoneProbe(m metrics) error {
	resolver := clusterResolver(s.options)
	if resolver == nil {
		return nil
	}
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tombolo_dns_zone_resolves",
		Help: "1 if the DNS of the agent's pod resolves the names of the clusterset, else 0. It is missing if that is not the DNS of the cluster's pods.",
	})
	if err := m.register(gauge); err != nil {
		return err
	}
	return s.manager.Add(&zoneProbe{resolver, gauge, s.options.Log.WithName("dns")})
}

// clusterResolver returns a resolver that queries the DNS of the cluster's pods, nil if it is not known.
func clusterResolver(options Options) txtResolver {
	switch options.ClusterDNS {
	case NoClusterDNS:
		return nil
	case "":
		config, err := os.ReadFile("/etc/resolv.conf")
		if err != nil || options.AgentCluster != nil || !isOfCluster(string(config)) {
			return nil
		}
		return &net.Resolver{PreferGo: true}
	}
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, options.ClusterDNS)
	}}
}

// isOfCluster reports whether a resolv.conf is one that kubelets write for pods with the policy ClusterFirst: it searches the Services of the
// cluster. The agent's pod may have another policy, or be in the host network.
func isOfCluster(config string) bool {
	for line := range strings.Lines(config) {
		words := strings.Fields(line)
		if len(words) > 0 && words[0] == "search" && slices.ContainsFunc(words[1:], func(domain string) bool { return strings.HasPrefix(domain, "svc.") }) {
			return true
		}
	}
	return false
}
