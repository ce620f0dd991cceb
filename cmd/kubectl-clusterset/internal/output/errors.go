// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"errors"
)

// ErrIncomplete is returned if something could not be read. It has been named.
var ErrIncomplete = errors.New("not everything could be read: see above")

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage returns an error in the command line.
func Usage(err error) error { return usageError{err} }

// IsUsage reports whether an error is in the command line.
func IsUsage(err error) bool { return errors.As(err, &usageError{}) }

// diffError is an error of the command diff.
type diffError struct{ error }

func (e diffError) Unwrap() error { return e.error }

// DiffFailed returns an error of the command diff, which has its own exit code.
func DiffFailed(err error) error { return diffError{err} }

// IsDiffFailed reports whether an error is one of the command diff.
func IsDiffFailed(err error) bool { return errors.As(err, &diffError{}) }
