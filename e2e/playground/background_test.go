// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestState(t *testing.T) {
	h := home(t.TempDir())
	if got, err := h.read(); !cmp.Equal(got, state{}) || err != nil {
		t.Errorf("no state yet: %v, %v", got, err)
	}
	want := state{PID: 7, Guide: "Try this.\n", Variables: map[string]string{"A": "b"}}
	lab.Must(t, h.write(want))
	if got, err := h.read(); !cmp.Equal(got, want) || err != nil {
		t.Errorf("read %v, %v; want %v", got, err, want)
	}
	lab.Must(t, os.WriteFile(h.path("state.json"), []byte("{"), 0o600))
	if _, err := h.read(); err == nil {
		t.Error("half a state is read without an error")
	}
	for range 2 { // clearing nothing is no error
		if err := h.clear(); err != nil {
			t.Error(err)
		}
	}
	if got, err := h.read(); !cmp.Equal(got, state{}) || err != nil {
		t.Errorf("cleared: %v, %v", got, err)
	}
}
