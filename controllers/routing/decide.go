// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/preference"
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

// view is what the conditions of policies depend on.
type view struct {
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
func (v view) decide(policy *policyv1alpha1.ServiceImportRoutingPolicy, others []*policyv1alpha1.ServiceImportRoutingPolicy) []metav1.Condition {
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
		remarks = append(remarks, fmt.Sprintf("the older policy %s decides for %s", name, list(superseded[name])))
	}
	if len(headless) > 0 {
		remarks = append(remarks, "headless imports have no policy: "+list(headless))
	}
	if len(selected) > 0 {
		remarks = append(remarks, "imports whose derived Service has a selector have no policy: "+list(selected))
	}
	return []metav1.Condition{v.accepted(policy, len(decides) > 0, len(superseded) > 0, remarks)}
}

// accepted returns the condition of a policy that decides for some imports or for none, with remarks about the others.
func (v view) accepted(policy *policyv1alpha1.ServiceImportRoutingPolicy, decides, superseded bool, remarks []string) metav1.Condition {
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
	remarks = append(remarks, v.unknown(policy)...)
	if len(remarks) == 0 {
		remarks = []string{"the policy is in effect"}
	}
	result.Message = strings.Join(remarks, "; ")
	return result
}

// unknown returns the clusters and properties of a policy that no member has, before the hub was read none.
func (v view) unknown(policy *policyv1alpha1.ServiceImportRoutingPolicy) []string {
	if !v.synced {
		return nil
	}
	var result []string
	for i, source := range policy.Spec.Sources {
		var strangers []string
		for _, id := range source.Clusters {
			if _, ok := v.properties[clusterset.ClusterID(id)]; !ok {
				strangers = append(strangers, string(id))
			}
		}
		name := string(source.SameProperty)
		switch {
		case len(strangers) > 0:
			result = append(result, fmt.Sprintf("source %d names clusters that are no members: %s", i+1, list(strangers)))
		case name != "" && v.properties[v.own][name] == "":
			result = append(result, fmt.Sprintf("source %d matches no cluster: this cluster has no property %s in its Member on the hub", i+1, name))
		case source.PropertySelector != nil && !v.matchesAny(policy.Spec.Sources[i:i+1]):
			result = append(result, fmt.Sprintf("source %d matches no cluster: no member has these properties in its Member on the hub", i+1))
		}
	}
	return result
}

func (v view) matchesAny(sources []policyv1alpha1.Source) bool {
	clusters := preference.Clusters{Local: v.own, Properties: v.properties}
	for id := range v.properties {
		if _, ok := clusters.Level(sources, id); ok {
			return true
		}
	}
	return false
}

// list returns the first names, sorted, and the number of the others.
func list(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}
