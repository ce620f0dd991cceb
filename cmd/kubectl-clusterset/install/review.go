// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Review is what an apply of an object would do.
type Review struct {
	// Object is what to apply: the desired object without the settings that stay.
	Object  *unstructured.Unstructured
	Outcome Outcome
	// Kept are settings of other field managers that stay. Overwritten are values of other field managers that an apply replaces: a
	// conflict, unless the Installer takes over fields.
	Kept, Overwritten []Difference
	// Refused is why the API server would refuse the object, nil if it would not. Unchecked is why that is not known.
	Refused, Unchecked error
}

// Review returns what Apply would do with the object, without a write: the API server checks it by a dry run, unless the Installer sends no
// request that writes. The error is not about the object, or the existing one cannot be read.
func (i Installer) Review(ctx context.Context, object *unstructured.Unstructured) (Review, error) {
	result := Review{Object: object.DeepCopy()}
	before, err := i.get(ctx, object)
	if err != nil {
		return result, fmt.Errorf("get %s: %w", NameOf(object), err)
	}
	var others []ownedField
	if before != nil {
		if others, err = fieldsOfOthers(before); err != nil {
			return result, err
		}
		result.keep(before, others)
	}
	if i.dryRun == ClientDryRun {
		result.Outcome = compare(before, result.Object)
		result.overwrite(before, result.Object, others)
		return result, nil
	}
	forced, err := i.simulate(ctx, result.Object, client.ForceOwnership)
	switch {
	case err != nil && before == nil && isAbsent(err):
		result.Outcome = Created // its namespace or its kind would have been created before it
		return result, nil
	case isDryRunUnsupported(err):
		result.Unchecked, result.Outcome = err, compare(before, result.Object)
		result.overwrite(before, result.Object, others)
		return result, nil
	case err != nil && isAnswer(err):
		result.Refused = err
		return result, nil
	case err != nil:
		return result, fmt.Errorf("dry run of %s: %w", NameOf(object), err)
	}
	result.overwrite(before, forced, others)
	result.respell(before, forced, others)
	result.Outcome = outcomeOf(before, forced)
	if i.force || len(others) == 0 || len(result.Overwritten) > 0 {
		return result, nil
	}
	_, err = i.simulate(ctx, result.Object)
	if apierrors.IsConflict(err) {
		result.Overwritten, err = conflictsIn(err), nil
	}
	if err != nil {
		return result, fmt.Errorf("dry run of %s: %w", NameOf(object), err)
	}
	return result, nil
}

// conflictsIn returns the fields of an API server's answer, of which the values are not known.
func conflictsIn(err error) []Difference {
	var result []Difference
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			result = append(result, Difference{strings.TrimPrefix(cause.Field, "."), cause.Message, unknownValue, unknownValue})
		}
	}
	if len(result) == 0 {
		result = append(result, Difference{"a field", err.Error(), unknownValue, unknownValue})
	}
	return result
}

// unknownValue stands in a message for a value that is not known.
const unknownValue = "(not known)"

// simulate returns the object as it would be after an apply.
func (i Installer) simulate(ctx context.Context, object *unstructured.Unstructured, options ...client.ApplyOption) (*unstructured.Unstructured, error) {
	after := object.DeepCopy()
	options = append(options, installerOwner, client.DryRunAll)
	return after, i.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(after), options...)
}

// keep removes the settings of others from the object to apply, if they have other values.
func (r *Review) keep(before *unstructured.Unstructured, others []ownedField) {
	for _, field := range others {
		difference, differs := differenceAt(before, r.Object, field)
		if !differs || !isSetting(before.GetKind(), field.path) {
			continue
		}
		if at, found := locate(r.Object.Object, field.path); found && at.parent != nil {
			delete(at.parent, at.name)
			r.Kept = append(r.Kept, difference)
		}
	}
}

// overwrite sets what an apply overwrites. after is the existing object after it.
func (r *Review) overwrite(before, after *unstructured.Unstructured, others []ownedField) {
	for _, field := range others {
		if difference, differs := differenceAt(before, after, field); differs {
			r.Overwritten = append(r.Overwritten, difference)
		}
	}
}

// respell replaces values of the object to apply that the API server stores as the existing ones, such as 1000 for 1k: to the API server,
// another spelling is a conflict.
func (r *Review) respell(before, after *unstructured.Unstructured, others []ownedField) {
	for _, field := range others {
		if _, differs := differenceAt(before, r.Object, field); !differs {
			continue
		}
		present, isPresent := locate(before.Object, field.path)
		next, isNext := locate(after.Object, field.path)
		desired, isDesired := locate(r.Object.Object, field.path)
		if isPresent && isNext && isDesired && desired.parent != nil && equality.Semantic.DeepEqual(present.value, next.value) {
			desired.parent[desired.name] = present.value
		}
	}
}

// outcomeOf returns the outcome of a write, from the objects before and after it.
func outcomeOf(before, after *unstructured.Unstructured) Outcome {
	switch {
	case before == nil:
		return Created
	case equality.Semantic.DeepEqual(content(before), content(after)):
		return Unchanged
	}
	return Configured
}

// isAnswer reports whether an error is an API server's answer to an object, which it gives again.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsServerTimeout(err) && !apierrors.IsTimeout(err) && !apierrors.IsTooManyRequests(err) &&
		!apierrors.IsServiceUnavailable(err) && !apierrors.IsUnauthorized(err)
}

// isDryRunUnsupported reports whether an admission webhook has side effects, so that the API server refuses every dry run. The answer has
// no reason of its own.
func isDryRunUnsupported(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}
