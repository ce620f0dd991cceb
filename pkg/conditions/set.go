// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Set returns existing with the desired conditions set, and others as they were. A condition's transition time is
// now where its status changes, else it stays as it was, so that saying the same again changes nothing (spec C).
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

// Without returns existing less the condition of a type.
func Without(existing []metav1.Condition, kind string) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(existing), func(c metav1.Condition) bool { return c.Type == kind })
}
