// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustersettest generates exports for property tests and benchmarks.
package clustersettest

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Palette contains the values from which exports are generated. A real Service and ServiceExport can have any of them.
type Palette struct {
	Key   clusterset.ServiceKey
	Start time.Time // the age of the oldest
	// Clusters are the possible exporters: one or more of them export.
	Clusters                         []clusterset.ClusterID
	PortNames                        []string
	PortNumbers                      []int32
	Protocols                        []corev1.Protocol
	AppProtocols                     []string
	Affinities                       []clusterset.Affinity
	TrafficDistributions             []string
	LabelKeys, LabelValues           []string
	AnnotationKeys, AnnotationValues []string
	// TargetPorts are the target ports of exporters that export their selection (spec D8).
	TargetPorts []intstr.IntOrString
}

// Few returns a palette with few values, so that exports often conflict.
func Few() Palette {
	return Palette{
		Key:                  clusterset.ServiceKey{Namespace: "shop", Name: "web"},
		Start:                time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC),
		Clusters:             []clusterset.ClusterID{"a", "b", "c", "d", "e", "f"},
		PortNames:            []string{"", "p", "q", "r"},
		PortNumbers:          []int32{1, 2, 3},
		Protocols:            []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP},
		AppProtocols:         []string{"", "http"},
		Affinities:           []clusterset.Affinity{{Mode: "None"}, {Mode: "ClientIP", TimeoutSeconds: 1}, {Mode: "ClientIP", TimeoutSeconds: 2}},
		TrafficDistributions: []string{"", corev1.ServiceTrafficDistributionPreferClose},
		LabelKeys:            []string{"x", "y"},
		LabelValues:          []string{"", "1", "2"},
		AnnotationKeys:       []string{"x", "y"},
		AnnotationValues:     []string{"", "1", "2"},
		TargetPorts:          []intstr.IntOrString{intstr.FromInt32(1), intstr.FromString("p"), intstr.FromString("q")},
	}
}

// Extreme returns a palette with values at the limits of the API, few enough to conflict.
func Extreme() Palette {
	p := Few()
	longest := strings.Repeat("x", 63)
	p.Key.Name = "web" + strings.Repeat("-x", 30)
	p.Clusters = []clusterset.ClusterID{"a", "0", clusterset.ClusterID(strings.Repeat("c", 56)), "d-d"}
	p.PortNames = []string{"", "unnamed", "unnamed-2", "http", "0", clusterset.ShortDerivedName("x"), longest}
	p.PortNumbers = []int32{1, 80, 65535}
	p.Protocols = append(p.Protocols, corev1.ProtocolSCTP)
	p.AppProtocols = []string{"", "http", "kubernetes.io/h2c", "example.com/" + longest}
	p.Affinities = []clusterset.Affinity{{Mode: "None"}, {Mode: "ClientIP", TimeoutSeconds: 1}, {Mode: "ClientIP", TimeoutSeconds: 86400}}
	p.TrafficDistributions = []string{
		"", corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode,
	}
	domain := strings.Repeat(strings.Repeat("d", 49)+".", 4) + strings.Repeat("d", 53)
	p.LabelKeys = []string{"team", "example.com/Team", domain + "/" + longest, "0"}
	p.LabelValues = []string{"", "A.b_c-9", longest}
	p.AnnotationKeys = []string{"docs", "Example.Com/Docs", domain + "/" + longest}
	p.AnnotationValues = []string{"", "\"\n\t\x00\u00fc\U0001f600", strings.Repeat("\u00fc", 4096)}
	p.TargetPorts = []intstr.IntOrString{
		intstr.FromInt32(1), intstr.FromInt32(65535), intstr.FromString("p"), intstr.FromString("8080-" + strings.Repeat("p", 10)),
	}
	return p
}

// Exports generates the exports of some clusters.
func (p Palette) Exports(t *rapid.T) []clusterset.Export {
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom(p.Clusters), 1, len(p.Clusters), rapid.ID).Draw(t, "clusters")
	exports := make([]clusterset.Export, len(ids))
	for i, id := range ids {
		exports[i] = p.Export(t, id)
	}
	return exports
}

// Export generates the export of one cluster.
func (p Palette) Export(t *rapid.T, id clusterset.ClusterID) clusterset.Export {
	v4, v6 := corev1.IPv4Protocol, corev1.IPv6Protocol
	metadata := func(name string, keys, values []string) map[string]string {
		return rapid.MapOfN(rapid.SampledFrom(keys), rapid.SampledFrom(values), 0, 2).Draw(t, name)
	}
	export := clusterset.Export{
		Cluster:               id,
		Key:                   p.Key,
		Age:                   p.Start.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Minute),
		Type:                  rapid.SampledFrom([]mcsv1beta1.ServiceImportType{mcsv1beta1.ClusterSetIP, mcsv1beta1.Headless}).Draw(t, "type"),
		IPFamilies:            rapid.SampledFrom([][]corev1.IPFamily{{v4}, {v6}, {v4, v6}, {v6, v4}}).Draw(t, "families"),
		InternalTrafficPolicy: rapid.SampledFrom([]corev1.ServiceInternalTrafficPolicy{"Cluster", "Local"}).Draw(t, "policy"),
		TrafficDistribution:   rapid.SampledFrom(p.TrafficDistributions).Draw(t, "distribution"),
		Labels:                metadata("labels", p.LabelKeys, p.LabelValues),
		Annotations:           metadata("annotations", p.AnnotationKeys, p.AnnotationValues),
	}
	fewest := 0 // ports
	if export.Type == mcsv1beta1.ClusterSetIP {
		fewest = 1
		export.Affinity = rapid.SampledFrom(p.Affinities).Draw(t, "affinity")
	}
	export.Ports = p.ports(t, fewest)
	if export.Type == mcsv1beta1.ClusterSetIP && rapid.Bool().Draw(t, "selection") {
		export.Selection = p.selection(t, export.Ports)
	}
	return export
}

// selection generates the selection of a Service with these ports.
func (p Palette) selection(t *rapid.T, ports []clusterset.Port) *clusterset.Selection {
	drawn := &clusterset.Selection{
		Labels:      rapid.MapOfN(rapid.SampledFrom(p.LabelKeys), rapid.SampledFrom(p.LabelValues), 1, 2).Draw(t, "selector"),
		TargetPorts: map[clusterset.PortID]intstr.IntOrString{},
	}
	for _, port := range ports {
		drawn.TargetPorts[port.ID()] = rapid.SampledFrom(p.TargetPorts).Draw(t, "target port")
	}
	return drawn
}

// ports generates the ports of a valid Service: names are unique, and so are pairs of protocol and number; if there are several
// ports, each has a name.
func (p Palette) ports(t *rapid.T, fewest int) []clusterset.Port {
	port := rapid.Custom(func(t *rapid.T) clusterset.Port {
		return clusterset.Port{
			Name:        rapid.SampledFrom(p.PortNames).Draw(t, "name"),
			Protocol:    rapid.SampledFrom(p.Protocols).Draw(t, "protocol"),
			Port:        rapid.SampledFrom(p.PortNumbers).Draw(t, "number"),
			AppProtocol: rapid.SampledFrom(p.AppProtocols).Draw(t, "application protocol"),
		}
	})
	drawn := rapid.SliceOfNDistinct(port, fewest, 4, func(p clusterset.Port) string { return p.Name }).Draw(t, "ports")
	seen := map[clusterset.PortID]bool{}
	drawn = slices.DeleteFunc(drawn, func(p clusterset.Port) bool {
		twice := seen[p.ID()]
		seen[p.ID()] = true
		return twice
	})
	if len(drawn) < 2 {
		return drawn
	}
	return slices.DeleteFunc(drawn, func(p clusterset.Port) bool { return p.Name == "" })
}
