// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bounds of the text of an API server's error.
const (
	maxCauses = 5
	maxCause  = 300
	maxReason = 2000
)

// noField is the field of a cause which reports that not everything was checked, because of the other causes.
const noField = "<nil>"

// Reason returns the reason why a write failed, as the API server reports it, in at most 2,000 bytes. API servers list invalid
// fields in random order. They are sorted, so that the same error always gives the same text (spec C2).
func Reason(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return shortened(err.Error(), maxReason)
	}
	status := answer.Status()
	fields := invalidFields(status)
	if status.Reason != metav1.StatusReasonInvalid || len(fields) == 0 {
		return shortened(status.Message, maxReason)
	}
	if more := len(fields) - maxCauses; more > 0 {
		fields = append(fields[:maxCauses], fmt.Sprintf("and %d more", more))
	}
	text := strings.Join(fields, ", ")
	if len(fields) > 1 {
		text = "[" + text + "]"
	}
	kind := schema.GroupKind{Group: status.Details.Group, Kind: status.Details.Kind}
	return shortened(fmt.Sprintf("%s %q is invalid: %s", kind, status.Details.Name, text), maxReason)
}

// writeError is the error of a failed write. Its text is that of Reason, because it may become the message of a condition.
type writeError struct{ error }

func (r writeError) Error() string { return Reason(r.error) }

func (r writeError) Unwrap() error { return r.error }

// invalidFields returns the invalid fields and the reasons, sorted; nil if the API server names no fields.
func invalidFields(status metav1.Status) []string {
	if status.Details == nil {
		return nil
	}
	var result []string
	for _, cause := range status.Details.Causes {
		if cause.Field != "" && cause.Field != noField {
			result = append(result, shortened(cause.Field+": "+cause.Message, maxCause))
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// shortened returns a text that is cut to a number of bytes, at the end of a character.
func shortened(text string, most int) string {
	const ellipsis = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}

// IsFinal reports whether the schema of the kind refuses the object, or the object is too large. Every retry fails until the object
// changes. Errors of admission policies name no field and are not final, because they depend on more than the object.
func IsFinal(err error) bool {
	return every(err, func(e error) bool {
		var answer apierrors.APIStatus
		return isInvalid(e) && errors.As(e, &answer) && (!apierrors.IsInvalid(e) || len(invalidFields(answer.Status())) > 0)
	})
}

func isInvalid(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// IsRefused reports whether each failed write was refused because of a schema, a policy, a quota, a permission or an unmanaged object.
// An early retry gives the same result.
func IsRefused(err error) bool {
	return every(err, func(e error) bool {
		return isInvalid(e) || apierrors.IsForbidden(e) || errors.Is(e, ErrUnmanaged)
	})
}

// IsUnmanaged reports whether all failures are ErrUnmanaged.
func IsUnmanaged(err error) bool {
	return every(err, func(e error) bool { return errors.Is(e, ErrUnmanaged) })
}

// every reports whether is returns true for each of the joined errors; false if err is nil.
func every(err error, is func(error) bool) bool {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return err != nil && is(err)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !every(e, is) })
}
