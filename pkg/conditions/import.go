// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TypeDeletionPending is the type of a condition that an import has while the hub lacks records of an exporter, and that
// exporter has not confirmed their deletion. ReasonAwaitingConfirmation is its reason.
const (
	TypeDeletionPending        = "DeletionPending"
	ReasonAwaitingConfirmation = "AwaitingConfirmation"
)

// DeletionPending returns the condition of an import of which records of these members are missing on the hub.
func DeletionPending(members []clusterset.ClusterID) metav1.Condition {
	const most = 10
	var names []string
	for _, id := range members[:min(most, len(members))] {
		names = append(names, string(id))
	}
	if more := len(members) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	awaited := "the heartbeat of each"
	gone := "If one of them is gone for good, run \"kubectl clusterset leave --from hub --cluster-id ID\" with its ID."
	if len(names) == 1 {
		awaited = names[0] + "'s heartbeat"
		gone = fmt.Sprintf("If %s is gone for good, run \"kubectl clusterset leave --from hub --cluster-id %s\".", names[0], names[0])
	}
	return condition(TypeDeletionPending, metav1.ConditionTrue, ReasonAwaitingConfirmation, fmt.Sprintf(
		"The hub no longer lists what %s exported. What this cluster has of it is kept until %s confirms that it is gone. %s",
		strings.Join(names, ", "), awaited, gone))
}

// ImportReady returns the condition of an import whose derived Service, slices and addresses are in place (spec C6).
// settings are left out because this cluster's API server does not know them (spec D6), and metadata of these domains because
// this cluster does not admit them.
func ImportReady(settings []clusterset.Setting, domains []string) metav1.Condition {
	said := slices.DeleteFunc([]string{"The service is imported.", SettingsLeftOut(settings), MetadataLeftOut(domains)}, func(s string) bool { return s == "" })
	return condition(mcsv1beta1.ServiceImportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceImportReasonReady, strings.Join(said, " "))
}

// SettingsLeftOut returns what is to be said of settings that this cluster's API server does not know; nothing if there are none.
func SettingsLeftOut(settings []clusterset.Setting) string {
	if len(settings) == 0 {
		return ""
	}
	words := make([]string, len(settings))
	for i, setting := range settings {
		words[i] = fmt.Sprintf("%s %q", setting.Field, setting.Value)
	}
	return fmt.Sprintf("Left out: %s, which this cluster's API server does not know. "+
		"Upgrade this cluster and restart the agent, or export the service without it.", strings.Join(words, " and "))
}

// maxDomains is how many domains are named. Of 253 characters each, they fit into an Event's 1,024.
const maxDomains = 3

// MetadataLeftOut returns what is to be said of labels and annotations whose domains, which are sorted, this cluster does not admit;
// nothing if there are none.
func MetadataLeftOut(domains []string) string {
	if len(domains) == 0 {
		return ""
	}
	named := strings.Join(domains[:min(len(domains), maxDomains)], ", ")
	if more := len(domains) - maxDomains; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("Left out: labels and annotations of these domains: %s. "+
		"To import them, add the domains to --allow-metadata-domains of this cluster's agent.", named)
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
