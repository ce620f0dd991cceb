// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Conflict is a field in which exports of the same service differ.
type Conflict struct {
	Reason mcsv1beta1.ServiceExportConditionReason
	// Field is the name of the field in messages.
	Field string
	// Using is the value that is used, for messages.
	Using string
	// Disagree are the clusters whose export differs from the oldest, sorted.
	Disagree []clusterset.ClusterID
}

// field is a field in which exports of a service should not differ.
type field struct {
	reason mcsv1beta1.ServiceExportConditionReason
	name   string
	equal  func(oldest, other clusterset.Export) bool
	using  func(oldest clusterset.Export, merged Merged) string
}

// fields returns the fields, in the order in which reasons are reported.
func fields() []field {
	return []field{
		{
			mcsv1beta1.ServiceExportReasonPortConflict, "ports", samePorts,
			func(_ clusterset.Export, merged Merged) string { return describePorts(merged.Ports) },
		},
		{
			mcsv1beta1.ServiceExportReasonTypeConflict, "type",
			func(a, b clusterset.Export) bool { return a.Type == b.Type },
			func(oldest clusterset.Export, _ Merged) string { return string(oldest.Type) },
		},
		{
			mcsv1beta1.ServiceExportReasonSessionAffinityConflict, "session affinity",
			func(a, b clusterset.Export) bool { return eitherHeadless(a, b) || a.Affinity.Mode == b.Affinity.Mode },
			func(oldest clusterset.Export, _ Merged) string { return string(oldest.Affinity.Mode) },
		},
		{
			mcsv1beta1.ServiceExportReasonSessionAffinityConfigConflict, "session affinity config",
			func(a, b clusterset.Export) bool {
				return eitherHeadless(a, b) || a.Affinity.TimeoutSeconds == b.Affinity.TimeoutSeconds
			},
			func(oldest clusterset.Export, _ Merged) string {
				return describeTimeout(oldest.Affinity.TimeoutSeconds)
			},
		},
		{
			mcsv1beta1.ServiceExportReasonLabelsConflict, "exported labels",
			func(a, b clusterset.Export) bool { return maps.Equal(a.Labels, b.Labels) },
			func(oldest clusterset.Export, _ Merged) string { return describeMetadata(oldest.Labels) },
		},
		{
			mcsv1beta1.ServiceExportReasonAnnotationsConflict, "exported annotations",
			func(a, b clusterset.Export) bool { return maps.Equal(a.Annotations, b.Annotations) },
			func(oldest clusterset.Export, _ Merged) string { return describeMetadata(oldest.Annotations) },
		},
		{
			mcsv1beta1.ServiceExportReasonInternalTrafficPolicyConflict, "internal traffic policy",
			func(a, b clusterset.Export) bool { return a.InternalTrafficPolicy == b.InternalTrafficPolicy },
			func(oldest clusterset.Export, _ Merged) string { return string(oldest.InternalTrafficPolicy) },
		},
		{
			mcsv1beta1.ServiceExportReasonTrafficDistributionConflict, "traffic distribution",
			func(a, b clusterset.Export) bool { return a.TrafficDistribution == b.TrafficDistribution },
			func(oldest clusterset.Export, _ Merged) string { return cmp.Or(oldest.TrafficDistribution, "none") },
		},
		{
			mcsv1beta1.ServiceExportReasonIPFamilyConflict, "IP families", sameFamilies,
			func(_ clusterset.Export, merged Merged) string { return describeFamilies(merged.IPFamilies) },
		},
	}
}

// conflicts returns the fields in which any export differs from the oldest.
func conflicts(oldest clusterset.Export, others []clusterset.Export, merged Merged) []Conflict {
	var found []Conflict
	for _, f := range fields() {
		var disagree []clusterset.ClusterID
		for _, other := range others {
			if !f.equal(oldest, other) {
				disagree = append(disagree, other.Cluster)
			}
		}
		if len(disagree) > 0 {
			slices.Sort(disagree)
			found = append(found, Conflict{Reason: f.reason, Field: f.name, Using: f.using(oldest, merged), Disagree: disagree})
		}
	}
	return found
}

// samePorts compares ports without regard to their order.
func samePorts(a, b clusterset.Export) bool {
	return len(a.Ports) == len(b.Ports) &&
		!slices.ContainsFunc(a.Ports, func(p clusterset.Port) bool { return !slices.Contains(b.Ports, p) })
}

// sameFamilies compares families without regard to their order: with equal sets, each family reaches every endpoint (spec R5).
func sameFamilies(a, b clusterset.Export) bool {
	return len(a.IPFamilies) == len(b.IPFamilies) &&
		!slices.ContainsFunc(a.IPFamilies, func(f corev1.IPFamily) bool { return !slices.Contains(b.IPFamilies, f) })
}

// eitherHeadless reports whether one of two exports is headless. Headless services have no session affinity, so there is no
// conflict.
func eitherHeadless(a, b clusterset.Export) bool {
	return a.Type == mcsv1beta1.Headless || b.Type == mcsv1beta1.Headless
}

func describePorts(ports []clusterset.Port) string {
	parts := make([]string, len(ports))
	for i, port := range ports {
		parts[i] = port.String()
	}
	return strings.Join(parts, ", ")
}

func describeFamilies(families []corev1.IPFamily) string {
	parts := make([]string, len(families))
	for i, family := range families {
		parts[i] = string(family)
	}
	return strings.Join(parts, ", ")
}

func describeTimeout(seconds int32) string {
	if seconds == 0 {
		return "no timeout"
	}
	return fmt.Sprintf("%ds", seconds)
}

// describeMetadata returns labels or annotations as "key=value" pairs, sorted.
func describeMetadata(metadata map[string]string) string {
	if len(metadata) == 0 {
		return "none"
	}
	parts := make([]string, 0, len(metadata))
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		parts = append(parts, key+"="+metadata[key])
	}
	return strings.Join(parts, ", ")
}
