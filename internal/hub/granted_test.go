// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset/clustersettest"
)

// TestVisibleSet: what a cluster merges depends only on the exports that are granted to it. Neither the other exports, nor to which other
// clusters an export is granted, change its merge. The conflicts of all exports are those of a hub without grants.
//
// spec: A1, R7
func TestVisibleSet(t *testing.T) {
	t.Parallel()
	palette := clustersettest.Few()
	merged := func(t *rapid.T, exports []clusterset.Export, own clusterset.ClusterID) (visible, all merge.Merged) {
		s := NewStore(own, clusterset.AddressRanges{})
		for _, id := range palette.Clusters {
			s.put(memberOf(id), id)
		}
		for _, export := range exports {
			s.put(onTheHub(record.EncodeService(export)), export.Cluster)
		}
		known := s.Service(palette.Key)
		if len(known.Refused) > 0 {
			t.Fatal(known.Refused)
		}
		visible, _ = merge.Merge(known.Exports)
		all, _ = merge.Merge(slices.Concat(known.Exports, known.Ungranted))
		return visible, all
	}
	some := rapid.SliceOfNDistinct(rapid.SampledFrom(palette.Clusters), 0, len(palette.Clusters), rapid.ID)
	rapid.Check(t, func(t *rapid.T) {
		const own = "own"
		exports := palette.Exports(t)
		var visible, toAll, regranted []clusterset.Export
		for _, export := range exports {
			toAll = append(toAll, export)
			isGranted := rapid.Bool().Draw(t, "granted to this cluster")
			grant := func(name string) clusterset.Export {
				granted := export
				granted.GrantedTo = append([]clusterset.ClusterID{}, some.Draw(t, name)...)
				if isGranted {
					granted.GrantedTo = append(granted.GrantedTo, own)
				}
				return granted
			}
			if isGranted {
				visible = append(visible, export)
			}
			exports[len(toAll)-1] = grant("granted to")
			regranted = append(regranted, grant("granted later to"))
		}
		want, _ := merged(t, visible, own)
		_, wantAll := merged(t, toAll, own)
		for name, published := range map[string][]clusterset.Export{"granted": exports, "granted to others": regranted} {
			got, gotAll := merged(t, published, own)
			check.Equal(t, name+": merged without the others (want) and with them", want, got, cmpopts.EquateEmpty())
			check.Equal(t, name+": merged from all exports, without grants (want) and with them", wantAll, gotAll, cmpopts.EquateEmpty())
		}
	})
}
