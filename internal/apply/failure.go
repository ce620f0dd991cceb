// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/plan"
)

// WriteError is the error of a failed write. Its text is that of Reason, because it may become the message of a condition.
type WriteError struct {
	error
	Verb plan.Verb
	// Object is the object that was to be written or deleted.
	Object client.Object
}

func (f WriteError) Error() string { return Reason(f.error) }

// Unwrap returns the answer of the API server.
func (f WriteError) Unwrap() error { return f.error }

// incomplete is the error of writes of which some have failed with a WriteError, and others because the plan was stale.
type incomplete struct{ error }

// Unwrap returns the failures.
func (i incomplete) Unwrap() error { return i.error }

// EveryFailure reports whether each change that was not made has a WriteError for which is returns true; false if a plan was stale, if
// there is another error, or if err is nil.
func EveryFailure(err error, is func(WriteError) bool) bool {
	if errors.As(err, new(incomplete)) {
		return false
	}
	return every(err, func(e error) bool {
		var failure WriteError
		return errors.As(e, &failure) && is(failure)
	})
}

// WriteErrors returns the failed writes in an error of Do, or in several joined ones.
func WriteErrors(err error) []WriteError {
	var joined interface{ Unwrap() []error }
	var one WriteError
	switch {
	case errors.As(err, &joined):
		var result []WriteError
		for _, part := range joined.Unwrap() {
			result = append(result, WriteErrors(part)...)
		}
		return result
	case errors.As(err, &one):
		return []WriteError{one}
	}
	return nil
}
