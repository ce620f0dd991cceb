// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset/clustersettest"
)

// drawExports generates the exports of up to six clusters. There are few values, so that they often conflict.
func drawExports(t *rapid.T) []clusterset.Export { return clustersettest.Few().Exports(t) }

func clone(exports []clusterset.Export) []clusterset.Export {
	result := slices.Clone(exports)
	for i, export := range result {
		result[i].Ports, result[i].IPFamilies = slices.Clone(export.Ports), slices.Clone(export.IPFamilies)
		result[i].Labels, result[i].Annotations = maps.Clone(export.Labels), maps.Clone(export.Annotations)
		if s := export.Selection; s != nil {
			result[i].Selection = &clusterset.Selection{Labels: maps.Clone(s.Labels), TargetPorts: maps.Clone(s.TargetPorts)}
		}
	}
	return result
}

// spec: R7
func TestMergeIsAFunctionOfTheSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exports := drawExports(t)
		before := clone(exports)
		want := mustMergeDrawn(t, exports)
		check.Equal(t, "the order matters", want, mustMergeDrawn(t, rapid.Permutation(exports).Draw(t, "permutation")))
		check.Equal(t, "the input is changed", before, exports)
	})
}

// The merged service, exported by the oldest cluster, merges to itself without conflicts.
// spec: R1, R7
func TestMergeIsIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := mustMergeDrawn(t, drawExports(t))
		again := mustMergeDrawn(t, []clusterset.Export{{
			Cluster: first.Oldest, Key: first.Key, Age: start,
			Type: first.Type, Ports: first.Ports, IPFamilies: first.IPFamilies, Affinity: first.Affinity,
			InternalTrafficPolicy: first.InternalTrafficPolicy, TrafficDistribution: first.TrafficDistribution,
			Labels: first.Labels, Annotations: first.Annotations, Selection: first.Selection,
		}})
		if len(again.Conflicts) > 0 {
			t.Errorf("conflicts %v", again.Conflicts)
		}
		first.Clusters, first.PortNames, first.Conflicts = nil, nil, nil
		again.Clusters, again.PortNames, again.Conflicts = nil, nil, nil
		check.Equal(t, "merged again", first, again)
	})
}

// spec: R1, R2, R5
func TestPortsAreUnited(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exports := drawExports(t)
		checkInvariants(t, exports, mustMergeDrawn(t, exports))
	})
}

// checkInvariants checks the ports and families of the union, and the ports that each cluster serves.
func checkInvariants(t check.T, exports []clusterset.Export, merged merge.Merged) {
	names, ids := map[string]bool{}, map[clusterset.PortID]string{}
	for _, port := range merged.Ports {
		if _, twice := ids[port.ID()]; twice || names[port.Name] {
			t.Errorf("port %s is there twice or its name is: %v", port, merged.Ports)
		}
		names[port.Name], ids[port.ID()] = true, port.Name
	}
	serves := map[clusterset.ClusterID]map[string]string{}
	for _, export := range exports {
		serves[export.Cluster] = map[string]string{}
		for _, port := range export.Ports {
			name, served := ids[port.ID()]
			if served {
				serves[export.Cluster][port.Name] = name
			} else if !names[port.Name] {
				t.Errorf("port %s of %s is missing from %v, and nothing took its name", port, export.Cluster, merged.Ports)
			}
		}
		for _, family := range export.IPFamilies {
			if !slices.Contains(merged.IPFamilies, family) {
				t.Errorf("family %s of %s is missing from %v", family, export.Cluster, merged.IPFamilies)
			}
		}
	}
	// A cluster serves a merged port if and only if its Service has that very protocol and number (spec R2).
	check.Equal(t, fmt.Sprintf("port names of %v", exports), serves, merged.PortNames)
	if sorted := slices.Sorted(maps.Keys(serves)); !slices.Equal(sorted, merged.Clusters) {
		t.Errorf("clusters %v, want %v", merged.Clusters, sorted)
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(merged.IPFamilies))); len(distinct) != len(merged.IPFamilies) || len(distinct) > 2 {
		t.Errorf("families %v", merged.IPFamilies)
	}
}

// spec: R6
func TestALaterExportDisplacesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exports := drawExports(t)
		before := mustMergeDrawn(t, exports)
		late := clustersettest.Few().Export(t, "z")
		late.Age = start.Add(time.Hour)
		after := mustMergeDrawn(t, append(exports, late))

		if got := after.Ports[:min(len(before.Ports), len(after.Ports))]; !slices.Equal(got, before.Ports) {
			t.Errorf("ports %v became %v", before.Ports, after.Ports)
		}
		if got := after.IPFamilies[:min(len(before.IPFamilies), len(after.IPFamilies))]; !slices.Equal(got, before.IPFamilies) {
			t.Errorf("families %v became %v", before.IPFamilies, after.IPFamilies)
		}
		for id, served := range before.PortNames {
			for name, merged := range served {
				if after.PortNames[id][name] != merged {
					t.Errorf("port %q of %s was served as %q, now as %q", name, id, merged, after.PortNames[id][name])
				}
			}
		}
		ignored := cmpopts.IgnoreFields(merge.Merged{}, "Clusters", "Ports", "IPFamilies", "PortNames", "Conflicts")
		check.Equal(t, "merged", before, after, ignored)
	})
}

// The conflicts are computed a second time, in another form: sorted lists instead of sets, one reason after another.
// spec: C3, C4, R1, R3, R4, R5
func TestConflictsNameWhoDisagrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exports := drawExports(t)
		merged := mustMergeDrawn(t, exports)
		oldest := exports[slices.IndexFunc(exports, func(e clusterset.Export) bool { return e.Cluster == merged.Oldest })]
		want := map[string][]clusterset.ClusterID{}
		for _, other := range exports {
			for reason, pair := range statements(other, oldest) {
				if pair[0] != pair[1] {
					want[reason] = append(want[reason], other.Cluster)
				}
			}
		}
		got := map[string][]clusterset.ClusterID{}
		for _, conflict := range merged.Conflicts {
			got[string(conflict.Reason)] = conflict.Disagree
		}
		for _, ids := range want {
			slices.Sort(ids)
		}
		check.Equal(t, fmt.Sprintf("who disagrees with %s", merged.Oldest), want, got)
	})
}

// statements returns the values of an export and of the oldest for each reason, in a form that can be compared.
func statements(other, oldest clusterset.Export) map[string][2]string {
	sorted := func(list any) string {
		switch list := list.(type) {
		case []clusterset.Port:
			return fmt.Sprint(slices.SortedFunc(slices.Values(list), func(a, b clusterset.Port) int {
				return slices.Compare([]string{fmt.Sprint(a, a.AppProtocol)}, []string{fmt.Sprint(b, b.AppProtocol)})
			}))
		case []corev1.IPFamily:
			return fmt.Sprint(slices.Sorted(slices.Values(list)))
		}
		return fmt.Sprint(list) // fmt sorts maps
	}
	appProtocols := func(e clusterset.Export) string {
		protocols := map[clusterset.PortID]string{}
		for _, port := range e.Ports {
			protocols[port.ID()] = port.AppProtocol
		}
		return fmt.Sprint(protocols)
	}
	result := map[string][2]string{
		"PortConflict":                  {sorted(other.Ports) + appProtocols(other), sorted(oldest.Ports) + appProtocols(oldest)},
		"TypeConflict":                  {string(other.Type), string(oldest.Type)},
		"LabelsConflict":                {sorted(other.Labels), sorted(oldest.Labels)},
		"AnnotationsConflict":           {sorted(other.Annotations), sorted(oldest.Annotations)},
		"InternalTrafficPolicyConflict": {string(other.InternalTrafficPolicy), string(oldest.InternalTrafficPolicy)},
		"TrafficDistributionConflict":   {other.TrafficDistribution, oldest.TrafficDistribution},
		"IPFamilyConflict":              {sorted(other.IPFamilies), sorted(oldest.IPFamilies)},
	}
	if other.Type == mcsv1beta1.ClusterSetIP && oldest.Type == mcsv1beta1.ClusterSetIP {
		result["SessionAffinityConflict"] = [2]string{string(other.Affinity.Mode), string(oldest.Affinity.Mode)}
		result["SessionAffinityConfigConflict"] = [2]string{fmt.Sprint(other.Affinity.TimeoutSeconds), fmt.Sprint(oldest.Affinity.TimeoutSeconds)}
	}
	return result
}

// FuzzMerge draws exports from the fuzzer's bytes, so that coverage leads it to rare collisions of ports.
func FuzzMerge(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		exports := drawExports(t)
		merged := mustMergeDrawn(t, exports)
		checkInvariants(t, exports, merged)
		slices.Reverse(exports)
		check.Equal(t, "the order matters", merged, mustMergeDrawn(t, exports))
	}))
}

func mustMergeDrawn(t *rapid.T, exports []clusterset.Export) merge.Merged {
	merged, ok := merge.Merge(exports)
	if !ok {
		t.Fatalf("nothing is merged of %v", exports)
	}
	return merged
}
