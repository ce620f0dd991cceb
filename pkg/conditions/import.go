// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// ImportReady returns the condition of an import whose derived Service, slices and addresses are in place (spec C6).
func ImportReady() metav1.Condition {
	return condition(mcsv1beta1.ServiceImportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceImportReasonReady,
		"The service is imported.")
}

// FamilyNotSupported returns the condition of an import that this cluster has no IP family for (spec I5).
func FamilyNotSupported(exported, own []corev1.IPFamily) metav1.Condition {
	return condition(mcsv1beta1.ServiceImportConditionReady, metav1.ConditionFalse, mcsv1beta1.ServiceImportReasonIPFamilyNotSupported,
		fmt.Sprintf("The service is exported with IP families %v, this cluster's Services have %v. "+
			"Export it from a cluster with a common family, or make either side dual-stack.", exported, own))
}

// ImportPending returns the condition of an import that something stands in the way of, and what.
func ImportPending(obstacle string) metav1.Condition {
	return condition(mcsv1beta1.ServiceImportConditionReady, metav1.ConditionFalse, mcsv1beta1.ServiceImportReasonPending, obstacle)
}
