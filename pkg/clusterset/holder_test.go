// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset_test

import (
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestLeaseHolder: a holderIdentity names the process that holds the Lease. That of an older agent names no process.
//
// spec: K2
func TestLeaseHolder(t *testing.T) {
	t.Parallel()
	for identity, want := range map[string]clusterset.LeaseHolder{
		"agent-x1_8a1f-77_0123456789abcdef":             {Pod: "agent-x1", PodUID: "8a1f-77", Nonce: "0123456789abcdef"},
		"agent-x1__0123456789abcdef":                    {Pod: "agent-x1", Nonce: "0123456789abcdef"},
		"agent-x1_b6b5e5f0-6f0c-4d1e-a9c3-3ad1a1d2a0aa": {Pod: "agent-x1"},
		"somebody-else":                                 {Pod: "somebody-else"},
		"a_b_c_d":                                       {Pod: "a"},
		"":                                              {},
		clusterset.LeaseHolder{Pod: "p", Nonce: "n"}.String(): {Pod: "p", Nonce: "n"},
	} {
		check.Equal(t, identity, want, clusterset.ParseLeaseHolder(identity))
	}
}
