// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset_test

import (
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func TestCompareVersions(t *testing.T) {
	t.Parallel()
	inverse := map[clusterset.Age]clusterset.Age{clusterset.Older: clusterset.Newer, clusterset.Newer: clusterset.Older}
	for pair, want := range map[[2]string]clusterset.Age{
		{"v1.2.3", "v1.2.3"}:      clusterset.Same,
		{"v1.2.3", "1.2.3"}:       clusterset.Same,
		{"v1.2.3", "v1.10.0"}:     clusterset.Older,
		{"v1.2.3", "v1.2.4"}:      clusterset.Older,
		{"v1.2.3-rc.1", "v1.2.3"}: clusterset.Older,
		{"v0.9.0", "v1.0.0"}:      clusterset.Older,
		{"dev", "dev"}:            clusterset.Same,
		{"dev", "v1.2.3"}:         clusterset.UnknownAge,
		{"", "v1.2.3"}:            clusterset.UnknownAge,
		{"", ""}:                  clusterset.UnknownAge,
		{"latest", "v1"}:          clusterset.UnknownAge,
	} {
		check.Equal(t, pair[0]+" compared with "+pair[1], want, clusterset.CompareVersions(pair[0], pair[1]))
		back := want
		if inverse[want] != "" {
			back = inverse[want]
		}
		check.Equal(t, pair[1]+" compared with "+pair[0], back, clusterset.CompareVersions(pair[1], pair[0]))
	}
}
