// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package check compares what a test got with what it wants.
package check

import "github.com/google/go-cmp/cmp"

// T is a testing.TB or a rapid.T.
type T interface {
	Helper()
	Errorf(format string, arguments ...any)
	Fatal(arguments ...any)
}

// Must ends the test if there is an error.
func Must(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal fails the test if two values differ, by go-cmp. what names them in the message.
func Equal(t T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Message returns the message of an error, or nothing if there is none.
func Message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Messages returns the messages of errors: nil if there are none.
func Messages(errs []error) []string {
	var result []string
	for _, err := range errs {
		result = append(result, err.Error())
	}
	return result
}
