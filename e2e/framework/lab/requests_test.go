// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"strings"
	"testing"
)

func TestParseRequests(t *testing.T) {
	t.Parallel()
	const begin = `requests{code="200",group="multicluster.x-k8s.io",resource="serviceimports",`
	for line, want := range map[string]Requests{
		begin + `subresource="",verb="PUT"} 3`:           {"serviceimports", "PUT", "200", 3},
		begin + `subresource="status",verb="PUT"} 1e+06`: {"serviceimports/status", "PUT", "200", 1_000_000},
	} {
		samples, err := parseSamples(strings.NewReader(line+"\n"), "requests")
		if err != nil || len(samples) != 1 || requestsOf(samples[0]) != want {
			t.Errorf("%s: %+v, %v, want %+v", line, samples, err, want)
		}
	}
	if got, err := parseSamples(strings.NewReader(begin+`verb="PUT"} many`+"\n"), "requests"); err == nil {
		t.Errorf("a value that is no number is taken for %+v", got)
	}
}
