// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tombolo-mcs/tombolo/internal/plan"
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

// Cause returns Reason without the name of the object, which is the same for all objects that are refused for one reason, such as a quota.
func Cause(err error) string {
	reason := Reason(err)
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return reason
	}
	d := answer.Status().Details
	forbidden := fmt.Sprintf("%s %q is forbidden: ", schema.GroupResource{Group: d.Group, Resource: d.Kind}, d.Name)
	invalid := fmt.Sprintf("%s %q is invalid: ", schema.GroupKind{Group: d.Group, Kind: d.Kind}, d.Name)
	return strings.TrimPrefix(strings.TrimPrefix(reason, forbidden), invalid)
}

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

// refusal is why an API server has refused a write. It is the only place that decides whether a write can succeed later.
type refusal int

const (
	// notRefused: there was no answer, or it was none about the object, such as a timeout, a conflict, or an internal error.
	notRefused refusal = iota
	// unmanaged: see ErrUnmanaged.
	unmanaged
	// byContent: the schema of the kind refuses the content of the object, or it is too large.
	byContent
	// byCluster: the state of the cluster does not allow the write now: a quota, a right, an admission policy or webhook, an allocator, the
	// stored object, or a CRD that is missing or replaced.
	byCluster
)

// classify returns why an API server has refused one write.
func classify(err error) refusal {
	var answer apierrors.APIStatus
	switch {
	case errors.Is(err, ErrUnmanaged):
		return unmanaged
	case errors.Is(err, plan.ErrChanged):
		return byCluster
	case !errors.As(err, &answer):
		return notRefused
	case apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsInvalid(err) && isAboutContent(answer.Status()):
		return byContent
	case isKindMissing(err) || isRefusal(answer.Status().Code):
		return byCluster
	}
	return notRefused
}

// isRefusal reports whether the status code of an answer says that the write is refused as it is: that of an admission webhook that sets none
// is 400. The other codes of this range say that the credentials are not valid, the object is missing, slow or has changed, or that there are
// too many requests.
func isRefusal(code int32) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	}
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError
}

// isOfSchema reports whether an answer names the invalid fields, and begins as that of apierrors.NewInvalid. Answers of admission policies
// name no field, and those of webhooks begin with the name of the webhook.
func isOfSchema(status metav1.Status) bool {
	if len(invalidFields(status)) == 0 {
		return false
	}
	kind := schema.GroupKind{Group: status.Details.Group, Kind: status.Details.Kind}
	return strings.HasPrefix(status.Message, fmt.Sprintf("%s %q is invalid", kind, status.Details.Name))
}

// isAboutContent reports whether an Invalid error (422) is the fault of the object alone. Other causes depend on what else is stored, or on a
// part of the API server that fails: while it starts, it refuses Services because it cannot allocate an address ("failed to allocate IP:
// connection refused").
func isAboutContent(status metav1.Status) bool {
	return isOfSchema(status) && len(contentCauses(status)) == len(status.Details.Causes)
}

// contentCauses returns the causes that are about the content of the object.
func contentCauses(status metav1.Status) []metav1.StatusCause {
	return slices.DeleteFunc(slices.Clone(status.Details.Causes), func(c metav1.StatusCause) bool {
		return !slices.Contains(contentTypes, c.Type) || status.Details.Kind == "Service" && allocatedField.MatchString(c.Field) || storedField.MatchString(c.Field)
	})
}

// contentTypes are the types of causes that the content of an object can have. Others are for example an internal error, or a reference to
// an object that does not exist.
var contentTypes = []metav1.CauseType{
	metav1.CauseTypeFieldValueInvalid, metav1.CauseTypeFieldValueRequired, metav1.CauseTypeFieldValueNotSupported, metav1.CauseTypeTypeInvalid,
	metav1.CauseTypeTooLong, metav1.CauseTypeTooMany, metav1.CauseTypeFieldValueDuplicate, metav1.CauseTypeForbidden,
	metav1.CauseType(field.ErrorTypeTooFew), metav1.CauseType(field.ErrorTypeTooShort),
}

var (
	// allocatedField are the fields of a Service whose values the API server allocates from a range that all Services share.
	allocatedField = regexp.MustCompile(`^spec[.](clusterIPs?|healthCheckNodePort|ports.*[.]nodePort)\b`)
	// storedField are fields that the API server compares with the stored object.
	storedField = regexp.MustCompile(`^metadata[.](resourceVersion|uid|deletionTimestamp|finalizers)\b`)
)

// IsFinal reports whether the content of each object is refused, so that every retry fails until the object changes.
func IsFinal(err error) bool {
	return every(err, func(e error) bool { return classify(e) == byContent })
}

// IsRefused reports whether each failed write was refused: because of the content of the object, the state of the cluster, or an unmanaged
// object. An early retry gives the same result.
func IsRefused(err error) bool {
	return every(err, func(e error) bool { return classify(e) != notRefused })
}

// IsUnmanaged reports whether all failures are ErrUnmanaged.
func IsUnmanaged(err error) bool {
	return every(err, func(e error) bool { return classify(e) == unmanaged })
}

// RefusedFields returns the fields whose content an API server has refused, sorted.
func RefusedFields(err error) []string {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) || !isOfSchema(answer.Status()) {
		return nil
	}
	var fields []string
	for _, cause := range contentCauses(answer.Status()) {
		fields = append(fields, cause.Field)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// every reports whether is returns true for each of the joined errors; false if err is nil.
func every(err error, is func(error) bool) bool {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return err != nil && is(err)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !every(e, is) })
}
