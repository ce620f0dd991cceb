// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
)

// check-network says what the gateways of a cluster report of another. spec: G12
func TestPrintGateway(t *testing.T) {
	for want, reach := range map[string]survey.GatewayReach{
		"note  a -> b: they are in different networks, and a has no gateways":        {},
		"ok    a -> b: 2 gateways reach it":                                          {Installed: true, Known: true, Reached: 2},
		"note  a -> b: 1 of 2 gateways reach it; g2: connection refused":             {Installed: true, Known: true, Reached: 1, Unreached: 1, Message: "g2: connection refused"},
		"FAIL  a -> b: no gateway reaches it; g1: connection refused":                {Installed: true, Known: true, Unreached: 1, Message: "g1: connection refused"},
		"note  a -> b: the gateways of a do not know those of b":                     {Installed: true},
		"note  a -> b: not tried, because no service of b is imported through gatew": {Installed: true, Known: true},
	} {
		var out bytes.Buffer
		n := &checkNetworkCommand{r: &report{out: &out}}
		n.printGateway("a", "b", reach)
		if !strings.HasPrefix(strings.TrimSpace(out.String()), want) {
			t.Errorf("got %s, want %s", out.String(), want)
		}
	}
}
