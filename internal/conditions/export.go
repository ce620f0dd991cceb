// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions computes the conditions of ServiceExports and ServiceImports (spec C1-C6). It is pure: the caller passes the
// time of a transition.
package conditions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// maxMessage is the limit of the message of a metav1.Condition, in characters. All reasons together are far below their limit.
const maxMessage = 32768

// Publication is the state of an export's publication.
type Publication struct {
	// Hub is the state of the hub's objects in this cluster.
	Hub HubState
	// Published is set if the hub stores the current version of the export.
	Published bool
	// Unreached is the time since which the hub is not reached; zero if it is. Unanswered is set if the hub has not answered the last attempt to
	// store the export.
	Unreached  time.Time
	Unanswered bool
	// Failure is the reason why the hub refused the export, and NotAllowed why this cluster's Member does not allow it; empty if not.
	Failure, NotAllowed string
	// GrantedTo are the other clusters to which the service is exported, sorted; nil if it is exported to all. GrantSurplus is the number of
	// those that the record cannot name (A1).
	GrantedTo    []clusterset.ClusterID
	GrantSurplus int
	// NoMembers are those of GrantedTo that are no members, sorted.
	NoMembers []clusterset.ClusterID
	// LeftOut are the addresses that the Member does not allow, and NotPods those to which no export may lead (W5), with the reasons. At most
	// three of each are named.
	LeftOut, NotPods []string
	// Surplus describes the slices that exceed the limits of a service; empty if there are none.
	Surplus string
	// Reserved are the keys of exported labels and annotations that are left out because they are reserved. At most three are named.
	Reserved []string
	// HostNames are the EndpointSlices that have host names instead of addresses. At most three are named.
	HostNames []string
}

// HubState is the state of the hub's objects in this cluster.
type HubState string

// The states of the hub's objects.
const (
	// HubUnknown: the agent has not listed the hub's objects since it started.
	HubUnknown HubState = "Unknown"
	// HubSynced: the agent has listed them. The connection may be down at present.
	HubSynced HubState = "Synced"
)

// Valid returns the export's condition Valid (spec C1). rejection is nil for a valid export.
func Valid(rejection *export.Rejection) metav1.Condition {
	if rejection != nil {
		return condition(mcsv1beta1.ServiceExportConditionValid, metav1.ConditionFalse, rejection.Reason, rejection.Message)
	}
	return condition(mcsv1beta1.ServiceExportConditionValid, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonValid,
		"The Service can be exported.")
}

// ReasonNotAllowed is the reason of Ready if the hub's administrator does not allow the export. No cluster imports it, even if the hub
// still stores it.
const ReasonNotAllowed mcsv1beta1.ServiceExportConditionReason = "NotAllowed"

// IsRefused reports whether a condition Ready says that the hub refuses the export.
func IsRefused(ready metav1.Condition) bool {
	return ready.Status == metav1.ConditionFalse &&
		(ready.Reason == string(mcsv1beta1.ServiceExportReasonFailed) || ready.Reason == string(ReasonNotAllowed))
}

// TypeOutdated is the type of a condition of an export that is not Ready while other clusters use an older version of it. The condition is
// absent if they use none, or the current one.
const TypeOutdated = "Outdated"

// The reasons of TypeOutdated.
const (
	// ReasonUpdateRefused: the hub stores an older version, and refuses the current one.
	ReasonUpdateRefused = "UpdateRefused"
	// ReasonRecordLost: the hub has lost what it stored. Other clusters keep what they have imported (E3).
	ReasonRecordLost = "RecordLost"
)

// WasStored reports whether the conditions of an export say that the hub has stored a version of it.
func WasStored(conditions []metav1.Condition) bool {
	return meta.IsStatusConditionTrue(conditions, string(mcsv1beta1.ServiceExportConditionReady)) || meta.IsStatusConditionTrue(conditions, TypeOutdated)
}

// Outdated returns the export's condition Outdated.
func Outdated(reason string) metav1.Condition {
	text := "Other clusters use the version of the export that the hub stores. See condition Ready for why it refuses the current one."
	if reason == ReasonRecordLost {
		text = "The hub no longer stores the export. Other clusters keep what they have imported of it until it is published again or deleted."
	}
	return condition(TypeOutdated, metav1.ConditionTrue, reason, text)
}

// Exported returns the export's condition Ready (spec C2): whether the hub stores the export.
func Exported(rejection *export.Rejection, p Publication) metav1.Condition {
	ready := mcsv1beta1.ServiceExportConditionReady
	switch {
	case rejection != nil:
		return condition(ready, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonPending,
			"Nothing is exported until the export is valid; see condition Valid.")
	case p.NotAllowed != "":
		return condition(ready, metav1.ConditionFalse, ReasonNotAllowed, "The hub refuses the export: "+p.NotAllowed)
	case p.Failure != "":
		return condition(ready, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed,
			"The hub refuses the export: "+p.Failure)
	case p.Hub == HubUnknown:
		return condition(ready, metav1.ConditionUnknown, mcsv1beta1.ServiceExportReasonPending, notReached(p.Unreached))
	case !p.Published && (p.Unanswered || !p.Unreached.IsZero()):
		return condition(ready, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonPending, notReached(p.Unreached))
	case !p.Published:
		return condition(ready, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonPending,
			"The export is on its way to the hub.")
	}
	return condition(ready, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported,
		"The service is exported to "+GrantedTo(p.GrantedTo)+"."+NoMembers(p.NoMembers)+grantSurplus(p.GrantSurplus)+leftOut(p.LeftOut)+notPods(p.NotPods)+surplus(p.Surplus)+hostNames(p.HostNames)+reserved(p.Reserved))
}

// IsPending reports whether a condition Ready says that the hub does not store the export yet.
func IsPending(ready metav1.Condition) bool {
	return ready.Status != metav1.ConditionTrue && !IsRefused(ready)
}

// notReached returns the message of an export that waits for the hub, which is not reached since a time; zero if that is not known. The time is
// that of the agent's cluster, and the same for the whole outage.
func notReached(since time.Time) string {
	if since.IsZero() {
		return "The hub does not answer at present. The export is published when it does."
	}
	return fmt.Sprintf("The hub has not been reached since %s. The export is published when it is.", since.UTC().Format("2006-01-02 15:04:05Z"))
}

// GrantedTo says to which other clusters a service is exported: all if clusters is nil. At most ten are named (A1).
func GrantedTo(clusters []clusterset.ClusterID) string {
	const named = 10
	switch n := len(clusters); {
	case clusters == nil:
		return "the clusterset"
	case n == 0:
		return "no other cluster: no ServiceExportGrant names one"
	case n == 1:
		return "cluster " + string(clusters[0])
	case n > named:
		return fmt.Sprintf("clusters %s and %d more", join(clusters[:named]), n-named)
	}
	return "clusters " + join(clusters)
}

// NoMembers returns the sentence about clusters to which a service is exported and that are no members, after a space; empty if there are none.
// At most ten are named.
func NoMembers(clusters []clusterset.ClusterID) string {
	if len(clusters) == 0 {
		return ""
	}
	return fmt.Sprintf(" Not a member: %s. See the ServiceExportGrants of the namespace.", strings.Join(firstTen(clusters), ", "))
}

func join(clusters []clusterset.ClusterID) string {
	texts := make([]string, len(clusters))
	for i, id := range clusters {
		texts[i] = string(id)
	}
	return strings.Join(texts, ", ")
}

// grantSurplus returns the sentence about clusters that the record cannot name.
func grantSurplus(clusters int) string {
	if clusters == 0 {
		return ""
	}
	return fmt.Sprintf(" Left out: %d more clusters, because an export can be granted to at most %d. Grant it to all clusters, and restrict namespaces.",
		clusters, hubv1alpha1.MaxGrantedTo)
}

// surplus returns the sentence about slices that exceed the limits.
func surplus(what string) string {
	if what == "" {
		return ""
	}
	return " Left out: " + what + ". Spread the endpoints over several services."
}

// leftOut returns the sentence about addresses that are not published.
func leftOut(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return " Left out: " + firstFew(reasons) + ". If these addresses are right, the hub's administrator adds their range to this cluster's Member."
}

// notPods returns the sentence about addresses to which no export may lead.
func notPods(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return " Left out: " + firstFew(reasons) + ". An export leads only to pods of its cluster: to their addresses, or to the ports that pods of its namespace in the host network declare."
}

// hostNames returns the sentence about slices that have no addresses.
func hostNames(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " Left out: EndpointSlices of host names (address type FQDN): " + firstFew(names) + ". Give IP addresses instead, which can be exported."
}

// reserved returns the sentence about labels and annotations that are never exported.
func reserved(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return " Left out: reserved labels and annotations, on which other clusters could act: " + firstFew(keys) + ". Use keys of a domain of your own."
}

// firstFew returns the first three of a list, sorted, and the number of the others.
func firstFew(list []string) string {
	const named = 3
	sorted := slices.Sorted(slices.Values(list))
	text := strings.Join(sorted[:min(named, len(sorted))], "; ")
	if more := len(sorted) - named; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Conflict returns the export's condition Conflict (spec C3-C5), which is the same in all exporters. For an export that is not part
// of the merged service, pass the zero Merged.
func Conflict(merged merge.Merged) metav1.Condition {
	conflict := mcsv1beta1.ServiceExportConditionConflict
	if len(merged.Conflicts) == 0 {
		return condition(conflict, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonNoConflicts,
			"No other cluster exports this service differently.")
	}
	reasons := make([]string, len(merged.Conflicts))
	messages := make([]string, len(merged.Conflicts))
	for i, c := range merged.Conflicts {
		reasons[i] = string(c.Reason)
		messages[i] = message(c, merged.Oldest, len(merged.Clusters))
	}
	return condition(conflict, metav1.ConditionTrue,
		mcsv1beta1.ServiceExportConditionReason(strings.Join(reasons, ",")), strings.Join(messages, " "))
}

// message returns the message of a conflict, in the form that the KEP suggests (spec C5).
func message(c merge.Conflict, oldest clusterset.ClusterID, exporters int) string {
	source := fmt.Sprintf("from oldest service export in %q", oldest)
	if c.Reason == mcsv1beta1.ServiceExportReasonPortConflict || c.Reason == mcsv1beta1.ServiceExportReasonIPFamilyConflict {
		source = fmt.Sprintf("from all service exports, that in %q first", oldest)
	}
	return fmt.Sprintf("Conflicting %s. Using %q %s. %d/%d clusters disagree.",
		c.Field, shorten(c.Using), source, len(c.Disagree), exporters)
}

// shorten limits the length of a value, so that one value does not fill the message.
func shorten(value string) string {
	const most = 256
	if runes := []rune(value); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return value
}

func condition[T, R ~string](kind T, status metav1.ConditionStatus, reason R, text string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: status, Reason: string(reason), Message: shortenTo(text, maxMessage)}
}

// shortenTo returns a text that is cut to a number of bytes, at the end of a character.
func shortenTo(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
