// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TypeDeletionHeld is the type of a condition that an import has while the hub has lost so much of an exporter that it
// is not believed. ReasonMassDeletion is its reason.
const (
	TypeDeletionHeld   = "DeletionHeld"
	ReasonMassDeletion = "MassDeletion"
)

// DeletionHeld returns the condition of an import that would lose the endpoints of these members, were it believed.
func DeletionHeld(members []clusterset.ClusterID) metav1.Condition {
	names := make([]string, len(members))
	for i, id := range members {
		names[i] = string(id)
	}
	return condition(TypeDeletionHeld, metav1.ConditionTrue, ReasonMassDeletion, fmt.Sprintf(
		"The hub has lost most of what %s exported, and what this cluster has of it is kept until the member has confirmed it for a while. "+
			"If it is right, the hub's administrator adds the member to acceptDeletionsOf in this cluster's Member.", strings.Join(names, ", ")))
}

// ImportReady returns the condition of an import whose derived Service, slices and addresses are in place (spec C6).
// leftOut is what it does without, because this cluster's API server does not know it (spec D6).
func ImportReady(leftOut []clusterset.Setting) metav1.Condition {
	message := "The service is imported."
	if len(leftOut) > 0 {
		message += " " + SettingsLeftOut(leftOut)
	}
	return condition(mcsv1beta1.ServiceImportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceImportReasonReady, message)
}

// SettingsLeftOut returns what is to be said of settings that this cluster's API server does not know.
func SettingsLeftOut(settings []clusterset.Setting) string {
	words := make([]string, len(settings))
	for i, setting := range settings {
		words[i] = fmt.Sprintf("%s %q", setting.Field, setting.Value)
	}
	return fmt.Sprintf("Left out: %s, which this cluster's API server does not know. "+
		"Upgrade this cluster and restart the agent, or export the service without it.", strings.Join(words, " and "))
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
