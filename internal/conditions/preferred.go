// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/preference"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TypePreferred is the condition of an import for which a ServiceImportRoutingPolicy decides.
const TypePreferred = "Preferred"

// The reasons of TypePreferred.
const (
	// ReasonFirstSource: the first source of the policy serves all ports.
	ReasonFirstSource = "FirstSource"
	// ReasonFallback: a later source serves some ports, because no earlier one has an available endpoint.
	ReasonFallback = "Fallback"
	// ReasonNoSource: no source has an available endpoint.
	ReasonNoSource = "NoSource"
)

// maxListed is the number of clusters that a message lists.
const maxListed = 10

// Preferred returns the condition Preferred of an import (P1). policy describes its policy, serving are the clusters of each level that
// serves, and unmatched is what its sources name and no member has: that may be why the first source does not serve.
func Preferred(policy string, choice preference.Choice, serving map[int][]clusterset.ClusterID, unmatched []string) metav1.Condition {
	result := metav1.Condition{Type: TypePreferred, Status: metav1.ConditionTrue, Reason: ReasonFirstSource}
	ports := map[int][]string{}
	for _, port := range slices.SortedFunc(maps.Keys(choice.Ports), preference.ComparePorts) {
		chosen := choice.Ports[port]
		if chosen.Availability == preference.Unavailable {
			continue
		}
		ports[chosen.Level] = append(ports[chosen.Level], cmp.Or(port.Name, "unnamed")+"/"+string(port.Family))
		if chosen.Level > 0 {
			result.Status, result.Reason = metav1.ConditionFalse, ReasonFallback
		}
	}
	if len(ports) == 0 {
		result.Status, result.Reason = metav1.ConditionFalse, ReasonNoSource
		result.Message = strings.Join(slices.Concat([]string{fmt.Sprintf("no source of %s has an available endpoint", policy)}, unmatched), "; ")
		return result
	}
	var texts []string
	for _, level := range slices.Sorted(maps.Keys(ports)) {
		texts = append(texts, fmt.Sprintf("source %d serves %s from %s", level+1, strings.Join(ports[level], ", "), listClusters(serving[level])))
	}
	result.Message = fmt.Sprintf("%s: %s", policy, strings.Join(texts, "; "))
	if result.Status == metav1.ConditionFalse && len(unmatched) > 0 {
		result.Message += "; " + strings.Join(unmatched, "; ")
	}
	if len(choice.Waiting) > 0 {
		result.Message += fmt.Sprintf("; an earlier source is available, and serves when it has been so for %s", preference.ReturnDelay)
	}
	return result
}

func listClusters(ids []clusterset.ClusterID) string {
	var names []string
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		names = append(names, string(id))
	}
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
