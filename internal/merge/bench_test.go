// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset/clustersettest"
)

// BenchmarkMerge merges exports, which do not contain endpoints.
func BenchmarkMerge(b *testing.B) {
	for _, size := range clustersettest.Sizes() {
		b.Run(size.String(), func(b *testing.B) {
			exports := size.Exports()
			b.ReportAllocs()
			for b.Loop() {
				if merged, ok := merge.Merge(exports); !ok || len(merged.Clusters) != size.Exporters {
					b.Fatal(merged)
				}
			}
		})
	}
}
