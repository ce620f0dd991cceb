// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Field is a field in which exports of a service should not differ, for messages.
type Field struct {
	// Reason is the reason of the conflict if they differ.
	Reason mcsv1beta1.ServiceExportConditionReason
	Name   string
	// Using is the value that is used.
	Using string
	// Values are the values of each export.
	Values map[clusterset.ClusterID]string
	// Disagree are the clusters whose export differs from the oldest, sorted.
	Disagree []clusterset.ClusterID
}

// Fields returns all fields in which the exports of one service should not differ, in the order in which conflicts are reported; nil
// if there are no exports.
func Fields(exports []clusterset.Export) []Field {
	merged, ok := Merge(exports)
	if !ok {
		return nil
	}
	disagree := map[mcsv1beta1.ServiceExportConditionReason][]clusterset.ClusterID{}
	for _, c := range merged.Conflicts {
		disagree[c.Reason] = c.Disagree
	}
	var result []Field
	for _, f := range fields() {
		field := Field{Reason: f.reason, Name: f.name, Values: map[clusterset.ClusterID]string{}, Disagree: disagree[f.reason]}
		for _, export := range exports {
			single, _ := Merge([]clusterset.Export{export})
			field.Values[export.Cluster] = f.using(export, single)
			if export.Cluster == merged.Oldest {
				field.Using = f.using(export, merged)
			}
		}
		result = append(result, field)
	}
	return result
}
