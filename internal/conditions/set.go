// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// known are the types of the conditions that this version of the agent sets in a status that is its own.
var known = []string{
	string(mcsv1beta1.ServiceExportConditionValid), string(mcsv1beta1.ServiceExportConditionReady), string(mcsv1beta1.ServiceExportConditionConflict),
	TypeOutdated, TypeProxyProtocol, TypeDeletionPending, TypeSourceUnusable, TypePreferred, policyv1alpha1.ConditionAccepted, policyv1alpha1.ConditionEnforced,
}

// isLeftOver reports whether another version of the agent has set a condition: this one neither sets nor removes its type. Types with a domain
// belong to other programs.
func isLeftOver(condition metav1.Condition) bool {
	return !strings.Contains(condition.Type, "/") && !slices.Contains(known, condition.Type)
}

// Set returns the existing conditions of a status that only the agent writes, with the desired ones added or replaced, and without those of
// another version of the agent, which would stay forever after a downgrade. The transition time of a condition changes to now only if its
// status changes, so that setting the same conditions again changes nothing (spec C).
func Set(existing, desired []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	result := slices.DeleteFunc(slices.Clone(existing), isLeftOver)
	for _, condition := range desired {
		result = SetOne(result, condition, generation, now)
	}
	return result
}

// SetOne is Set for one condition in a status with conditions of other programs, all of which stay.
func SetOne(existing []metav1.Condition, desired metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	result := slices.Clone(existing)
	desired.ObservedGeneration, desired.LastTransitionTime = generation, now
	meta.SetStatusCondition(&result, desired)
	return result
}
