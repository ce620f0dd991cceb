// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A trace with a hop that is not known says so and what was seen, and does not say that the service works.
func TestPrintTrace(t *testing.T) {
	t.Parallel()
	for state, want := range map[trace.Health]string{
		trace.OK:         "shop/web works, as far as can be seen from here.\n",
		trace.Broken:     "shop/web is broken at hop \"gateway\" of east:\n  seen\nWhat to do:\n  do\n",
		trace.NotKnown:   "It is not known whether shop/web works. This was seen at hop \"gateway\" of east:\n  seen\nWhat to do:\n  do\n",
		"of a later one": "It is not known whether shop/web works. This was seen at hop \"gateway\" of east:\n  seen\nWhat to do:\n  do\n",
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			printTrace(&out, trace.Result{
				Key:   clusterset.ServiceKey{Namespace: "shop", Name: "web"},
				Steps: []trace.Step{{Cluster: "east", Hop: trace.HopGateway, State: state, Found: "seen", Fix: "do"}},
			})
			if !strings.HasPrefix(out.String(), want) {
				t.Errorf("got\n%s", out.String())
			}
		})
	}
}
