// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Set returns the existing conditions with the desired ones added or replaced. The transition time of a condition changes to now
// only if its status changes, so that setting the same conditions again changes nothing (spec C).
func Set(existing, desired []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	result := slices.Clone(existing)
	for _, condition := range desired {
		condition.ObservedGeneration = generation
		condition.LastTransitionTime = now
		at := slices.IndexFunc(result, func(c metav1.Condition) bool { return c.Type == condition.Type })
		if at < 0 {
			result = append(result, condition)
			continue
		}
		if result[at].Status == condition.Status {
			condition.LastTransitionTime = result[at].LastTransitionTime
		}
		result[at] = condition
	}
	return result
}

// Without returns the existing conditions except the one of this type.
func Without(existing []metav1.Condition, kind string) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(existing), func(c metav1.Condition) bool { return c.Type == kind })
}
