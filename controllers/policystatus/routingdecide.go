// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/preference"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// The condition of a policy, and its reasons.
const (
	typeAccepted = "Accepted"
	// reasonAccepted: it decides for at least one import.
	reasonAccepted = "Accepted"
	// reasonNoImport: it selects no import.
	reasonNoImport = "NoImport"
	// reasonSuperseded: older policies decide for its imports.
	reasonSuperseded = "Superseded"
	// reasonNotSupported: its imports are headless or have a selector.
	reasonNotSupported = "NotSupported"
)

// maxListed is the number of names that a message lists.
const maxListed = 10

// routingView is what the conditions of policies depend on.
type routingView struct {
	own        clusterset.ClusterID
	properties map[clusterset.ClusterID]map[string]string
	// synced is set if properties has all members.
	synced  bool
	imports []imported
}

// imported is an import of this cluster.
type imported struct {
	key                clusterset.ServiceKey
	headless, selector bool
}

// decide returns the condition of a policy. others are the policies of its namespace, itself among them. It is pure.
func (v routingView) decide(policy *policyv1alpha1.ServiceImportRoutingPolicy, others []*policyv1alpha1.ServiceImportRoutingPolicy) []metav1.Condition {
	others = slices.DeleteFunc(slices.Clone(others), func(o *policyv1alpha1.ServiceImportRoutingPolicy) bool { return o.Namespace != policy.Namespace })
	var decides, headless, selected []string
	superseded := map[string][]string{} // by the policy that decides
	for _, i := range v.imports {
		alone := []*policyv1alpha1.ServiceImportRoutingPolicy{policy}
		if i.key.Namespace != policy.Namespace || preference.Select(alone, i.key.Name) == nil {
			continue
		}
		switch first := preference.Select(others, i.key.Name); {
		case first.Name != policy.Name:
			superseded[first.Name] = append(superseded[first.Name], i.key.Name)
		case i.headless:
			headless = append(headless, i.key.Name)
		case i.selector:
			selected = append(selected, i.key.Name)
		default:
			decides = append(decides, i.key.Name)
		}
	}
	var remarks []string
	for _, name := range slices.Sorted(maps.Keys(superseded)) {
		remarks = append(remarks, fmt.Sprintf("the older policy %s decides for %s", name, listed(superseded[name])))
	}
	if len(headless) > 0 {
		remarks = append(remarks, "headless imports have no policy: "+listed(headless))
	}
	if len(selected) > 0 {
		remarks = append(remarks, "imports whose derived Service has a selector have no policy: "+listed(selected))
	}
	accepted := v.accepted(policy, len(decides) > 0, len(superseded) > 0, remarks)
	if v.isKept(policy, accepted) {
		return nil
	}
	return []metav1.Condition{accepted}
}

// accepted returns the condition of a policy that decides for some imports or for none, with remarks about the others.
func (v routingView) accepted(policy *policyv1alpha1.ServiceImportRoutingPolicy, decides, superseded bool, remarks []string) metav1.Condition {
	result := metav1.Condition{Type: typeAccepted, Status: metav1.ConditionFalse, Reason: reasonNotSupported}
	switch {
	case decides:
		result.Status, result.Reason = metav1.ConditionTrue, reasonAccepted
	case superseded:
		result.Reason = reasonSuperseded
	case len(remarks) == 0:
		result.Reason = reasonNoImport
		remarks = []string{"it selects no ServiceImport of this namespace"}
	}
	if missing := v.missing(policy); len(missing) > 0 && result.Reason != reasonNoImport {
		remarks = append(remarks, "this namespace has no ServiceImport with the name "+listed(missing))
	}
	remarks = append(remarks, v.unmatched(policy)...)
	if len(remarks) == 0 {
		remarks = []string{"the policy is in effect"}
	}
	result.Message = strings.Join(remarks, "; ")
	return result
}

// unmatched returns what the sources of a policy name and no member has; before the hub was read nothing.
func (v routingView) unmatched(policy *policyv1alpha1.ServiceImportRoutingPolicy) []string {
	switch {
	case v.synced:
		return preference.Clusters{Local: v.own, Properties: v.properties}.Unmatched(policy.Spec.Sources)
	case dependsOnMembers(policy):
		return []string{"it is not known yet whether its sources match members, because the hub has not been read"}
	}
	return nil
}

// dependsOnMembers reports whether a source of the policy matches clusters by what members there are.
func dependsOnMembers(policy *policyv1alpha1.ServiceImportRoutingPolicy) bool {
	return slices.ContainsFunc(policy.Spec.Sources, func(s policyv1alpha1.Source) bool { return !s.SameCluster && !s.Any })
}

// isKept reports whether the existing condition stays, because the members are not known and it differs at most in what it says of them: so a
// restart of the agent while the hub is down changes no condition.
func (v routingView) isKept(policy *policyv1alpha1.ServiceImportRoutingPolicy, accepted metav1.Condition) bool {
	existing := meta.FindStatusCondition(policy.Status.Conditions, typeAccepted)
	return !v.synced && dependsOnMembers(policy) && existing != nil && existing.ObservedGeneration == policy.Generation &&
		existing.Status == accepted.Status && existing.Reason == accepted.Reason
}

// missing returns the names of the imports that a policy names and that do not exist.
func (v routingView) missing(policy *policyv1alpha1.ServiceImportRoutingPolicy) []string {
	var result []string
	for _, name := range policy.Spec.Imports {
		exists := func(i imported) bool { return i.key.Namespace == policy.Namespace && i.key.Name == string(name) }
		if !slices.ContainsFunc(v.imports, exists) {
			result = append(result, string(name))
		}
	}
	return result
}

// list returns the first names, sorted, and the number of the others.
func listed(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
