// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Set returns the existing conditions with the desired ones added or replaced. The transition time of a condition changes to now
// only if its status changes, so that setting the same conditions again changes nothing (spec C).
func Set(existing, desired []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	result := slices.Clone(existing)
	for _, condition := range desired {
		condition.ObservedGeneration, condition.LastTransitionTime = generation, now
		meta.SetStatusCondition(&result, condition)
	}
	return result
}
