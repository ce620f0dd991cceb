// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import "testing"

func TestParseRequests(t *testing.T) {
	t.Parallel()
	const begin = `code="200",component="apiserver",dry_run="",group="multicluster.x-k8s.io",resource="serviceimports",scope="resource",`
	for line, want := range map[string]Requests{
		begin + `subresource="",verb="PUT",version="v1beta1"} 3`:           {"serviceimports", "PUT", "200", 3},
		begin + `subresource="status",verb="PUT",version="v1beta1"} 1e+06`: {"serviceimports/status", "PUT", "200", 1_000_000},
	} {
		s, err := parseSample(line)
		if got := requestsOf(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", line, got, err, want)
		}
	}
	if got, err := parseSample(begin + `verb="PUT"} many`); err == nil {
		t.Errorf("a value that is no number is taken for %+v", got)
	}
}
