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

// Bounds of what is kept of an API server's answer.
const (
	maxCauses = 5
	maxCause  = 300
	maxReason = 2000
)

// noField is the field of a cause that says that, because of the others, not everything was checked.
const noField = "<nil>"

// Reason returns why a write failed, as the API server says it, in at most 2,000 bytes. API servers list what is invalid in
// random order; the text is sorted, so that the same refusal always gives the same text (spec C2).
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

// refusal is why a write failed. Its text is Reason's, as it may become a condition.
type refusal struct{ error }

func (r refusal) Error() string { return Reason(r.error) }

func (r refusal) Unwrap() error { return r.error }

// invalidFields returns what is wrong with which fields, sorted; nothing where the API server names no fields.
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

// shortened returns as many whole characters as fit into most bytes.
func shortened(text string, most int) string {
	const ellipsis = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
}

// IsFinal reports whether the schema of the object's kind refuses it, or it is too large: until the object changes, each try is
// refused. A policy names no field; what it refuses depends on more than the object.
func IsFinal(err error) bool {
	return every(err, func(e error) bool {
		var answer apierrors.APIStatus
		return isInvalid(e) && errors.As(e, &answer) && (!apierrors.IsInvalid(e) || len(invalidFields(answer.Status())) > 0)
	})
}

func isInvalid(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// IsRefused reports whether an API server understood all that failed and said no, because of a schema, a policy, a quota or a
// right, or an object of somebody else is in the way. To ask again soon gives the same answer.
func IsRefused(err error) bool {
	return every(err, func(e error) bool {
		return isInvalid(e) || apierrors.IsForbidden(e) || errors.Is(e, ErrForeign)
	})
}

// IsForeign reports whether objects of somebody else, and nothing besides, are in the way.
func IsForeign(err error) bool {
	return every(err, func(e error) bool { return errors.Is(e, ErrForeign) })
}

// every reports whether each of the failures that an error joins is of a kind; false where there is none.
func every(err error, is func(error) bool) bool {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return err != nil && is(err)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !every(e, is) })
}
