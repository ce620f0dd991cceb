// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

func TestHomeHasOneOwner(t *testing.T) {
	h := home(t.TempDir())
	lock, err := h.claim()
	lab.Must(t, err)
	if _, err := h.claim(); !errors.Is(err, errRuns) {
		t.Errorf("a second claim: %v, want %v", err, errRuns)
	}
	lab.Must(t, lock.Close())
	if lock, err = h.claim(); err != nil {
		t.Fatalf("a claim after the owner has gone: %v", err)
	}
	lab.Must(t, lock.Close())
}
