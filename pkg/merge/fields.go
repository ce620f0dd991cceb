// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Field is one of the things that exports of a service should agree on, for people.
type Field struct {
	// Reason is that of the conflict where they do not.
	Reason mcsv1beta1.ServiceExportConditionReason
	Name   string
	// Using is the value that counts.
	Using string
	// Said is what each export says.
	Said map[clusterset.ClusterID]string
	// Disagree are the clusters whose export differs from the oldest, sorted.
	Disagree []clusterset.ClusterID
}

// Fields returns all things that these exports of one service should agree on, in the order in which their conflicts are
// reported; nil where there are no exports.
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
		field := Field{Reason: f.reason, Name: f.name, Said: map[clusterset.ClusterID]string{}, Disagree: disagree[f.reason]}
		for _, export := range exports {
			alone, _ := Merge([]clusterset.Export{export})
			field.Said[export.Cluster] = f.using(export, alone)
			if export.Cluster == merged.Oldest {
				field.Using = f.using(export, merged)
			}
		}
		result = append(result, field)
	}
	return result
}
