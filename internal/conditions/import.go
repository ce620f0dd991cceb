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

// TypeDeletionPending is the type of a condition of an import with pending deletions. ReasonAwaitingConfirmation is its reason.
const (
	TypeDeletionPending        = "DeletionPending"
	ReasonAwaitingConfirmation = "AwaitingConfirmation"
)

// DeletionPending returns the condition of an import with missing records of these members.
func DeletionPending(members []clusterset.ClusterID) metav1.Condition {
	names := firstTen(members)
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

// firstTen returns the first ten of a list, and the number of the others.
func firstTen[T ~string](list []T) []string {
	const most = 10
	var names []string
	for _, name := range list[:min(most, len(list))] {
		names = append(names, string(name))
	}
	if more := len(list) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return names
}

// TypeSourceUnusable is the type of a condition of an import that does not use the endpoints of all exporters. ReasonNetwork is its
// reason.
const (
	TypeSourceUnusable = "SourceUnusable"
	ReasonNetwork      = "Network"
)

// SourceUnusable returns the condition of an import that does not use all sources, with the reasons and what to do.
func SourceUnusable(obstacles []error) metav1.Condition {
	const most = 5
	var sentences []string
	for _, err := range obstacles[:min(most, len(obstacles))] {
		text := err.Error()
		sentences = append(sentences, strings.ToUpper(text[:1])+text[1:]+".")
	}
	if more := len(obstacles) - most; more > 0 {
		sentences = append(sentences, fmt.Sprintf("The same applies to %d more.", more))
	}
	return condition(TypeSourceUnusable, metav1.ConditionTrue, ReasonNetwork, strings.Join(sentences, " "))
}

// ImportReady returns the condition of an import whose derived Service, slices and addresses exist (spec C6). settings are left out
// because the local API server does not support them (spec D6), and labels and annotations of domains because this cluster does not
// allow them. remarks are further sentences; empty ones are left out.
func ImportReady(settings []clusterset.Setting, domains []string, remarks ...string) metav1.Condition {
	sentences := append([]string{"The service is imported.", SettingsLeftOut(settings), MetadataLeftOut(domains)}, remarks...)
	sentences = slices.DeleteFunc(sentences, func(s string) bool { return s == "" })
	return condition(mcsv1beta1.ServiceImportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceImportReasonReady, strings.Join(sentences, " "))
}

// SettingsLeftOut returns the sentence about settings that the local API server does not support; empty if there are none.
func SettingsLeftOut(settings []clusterset.Setting) string {
	if len(settings) == 0 {
		return ""
	}
	parts := make([]string, len(settings))
	for i, setting := range settings {
		parts[i] = fmt.Sprintf("%s %q", setting.Field, setting.Value)
	}
	return fmt.Sprintf("Left out: %s, which this cluster's API server does not know. "+
		"Upgrade this cluster and restart the agent, or export the service without it.", strings.Join(parts, " and "))
}

// maxDomains is the number of domains that are named. With 253 characters each, they fit into the 1,024 bytes of an Event.
const maxDomains = 3

// MetadataLeftOut returns the sentence about labels and annotations of domains that this cluster does not allow; empty if there are
// none. domains are sorted.
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

// FamilyNotSupported returns the condition of an import if this cluster has none of its IP families (spec I5).
func FamilyNotSupported(exported, own []corev1.IPFamily) metav1.Condition {
	return condition(mcsv1beta1.ServiceImportConditionReady, metav1.ConditionFalse, mcsv1beta1.ServiceImportReasonIPFamilyNotSupported,
		fmt.Sprintf("The service is exported with IP families %v, this cluster's Services have %v. "+
			"Export it from a cluster with a common family, or make either side dual-stack.", exported, own))
}

// Refusal are parts of an import that the API server refuses for one reason, such as "hostname web-0 of cluster b".
type Refusal struct {
	Parts []string
	// Reason is the answer of the API server, and Next what to do; empty if the reason says so.
	Reason, Next string
}

// ImportPending returns the condition of an import that is not complete, because parts of it are refused.
func ImportPending(refusals []Refusal) metav1.Condition {
	var sentences []string
	for _, r := range refusals {
		text := strings.Join(firstTen(r.Parts), ", ") + " cannot be written: " + strings.TrimSuffix(r.Reason, ".")
		if r.Next != "" {
			text += "; " + r.Next
		}
		sentences = append(sentences, strings.ToUpper(text[:1])+text[1:]+".")
	}
	return condition(mcsv1beta1.ServiceImportConditionReady, metav1.ConditionFalse, mcsv1beta1.ServiceImportReasonPending, strings.Join(sentences, " "))
}
