// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"testing"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestFields: each field has the used value and the value of each export, also if all are equal.
//
// spec: R1, R3
func TestFields(t *testing.T) {
	t.Parallel()
	type byCluster = map[clusterset.ClusterID]string
	old, young := exported("a", 1, ports(tcp("http", 80))), exported("b", 2, ports(tcp("http", 80), tcp("admin", 90)))
	young.Type = mcsv1beta1.Headless
	got := merge.Fields([]clusterset.Export{young, old})
	want := []merge.Field{
		{Reason: "PortConflict", Name: "ports", Using: "http:80/TCP, admin:90/TCP", Values: byCluster{"a": "http:80/TCP", "b": "http:80/TCP, admin:90/TCP"}, Disagree: []clusterset.ClusterID{"b"}},
		{Reason: "TypeConflict", Name: "type", Using: "ClusterSetIP", Values: byCluster{"a": "ClusterSetIP", "b": "Headless"}, Disagree: []clusterset.ClusterID{"b"}},
	}
	check.Equal(t, "the first fields", want, got[:2])
	var names []string
	for _, f := range got {
		names = append(names, f.Name)
	}
	all := []string{
		"ports", "type", "session affinity", "session affinity config", "exported labels", "exported annotations",
		"internal traffic policy", "traffic distribution", "IP families",
	}
	check.Equal(t, "fields", all, names)
	if none := merge.Fields(nil); none != nil {
		t.Errorf("of no exports: %v", none)
	}
}
