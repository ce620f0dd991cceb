// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// recorder is a test that notes how it failed.
type recorder struct{ failures []string }

func (*recorder) Helper() {}
func (r *recorder) Errorf(format string, arguments ...any) {
	r.failures = append(r.failures, "Errorf "+fmt.Sprintf(format, arguments...))
}

func (r *recorder) Fatal(arguments ...any) {
	r.failures = append(r.failures, "Fatal "+fmt.Sprint(arguments...))
}

// All other tests rely on it that a check fails.
func TestChecks(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	Equal(r, "same", []int{1}, []int{1})
	Must(r, nil)
	if len(r.failures) > 0 {
		t.Errorf("nothing is wrong, and yet: %q", r.failures)
	}
	Equal(r, "ports", []int{1}, []int{2})
	Must(r, errors.New("no"))
	if len(r.failures) != 2 || !strings.HasPrefix(r.failures[0], "Errorf ports (-want +got):\n") || r.failures[1] != "Fatal no" {
		t.Errorf("failures: %q", r.failures)
	}
	if got := Messages([]error{errors.New("a"), errors.New("b")}); strings.Join(got, " ") != "a b" || Messages(nil) != nil {
		t.Errorf("messages %q", got)
	}
	if got := Message(nil) + Message(errors.New("a")); got != "a" {
		t.Errorf("message %q", got)
	}
}
