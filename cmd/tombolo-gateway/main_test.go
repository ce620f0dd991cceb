// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// The access log is off by default. spec: G11
func TestAccessLogFlag(t *testing.T) {
	for args, want := range map[string]bool{"-v=0": false, "--access-log": true} {
		options, _ := parse([]string{args}) // the error is that there is no cluster
		if got := options.AccessLog != nil; got != want {
			t.Errorf("%s: access log %v, want %v", args, got, want)
		}
	}
}
