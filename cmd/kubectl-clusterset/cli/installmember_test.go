// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestAgentArgs: the argument has all ranges, in a form that the agent parses.
func TestAgentArgs(t *testing.T) {
	var services []netip.Prefix
	for i := range 12 {
		services = append(services, netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", 100+i)))
	}
	services = append(services, netip.MustParsePrefix("fd00:100::/108"))
	j := &joinCommand{own: ranges{services: services}}
	args := j.agentArgs()
	if len(args) != 1 {
		t.Fatalf("%d arguments: %q", len(args), args)
	}
	value, found := strings.CutPrefix(args[0], "--service-cidrs=")
	got, err := clusterset.ParsePrefixes(strings.Split(value, ","))
	if !found || err != nil {
		t.Fatalf("%q: %v", args[0], err)
	}
	check.Equal(t, fmt.Sprintf("%q", args[0]), services, got, cmpopts.EquateComparable(netip.Prefix{}))
	j.hasServiceCIDRs = true
	check.Equal(t, "arguments of a cluster that reports its ranges itself", []string{}, j.agentArgs(), cmpopts.EquateEmpty())
}
