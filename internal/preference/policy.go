// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preference decides which of the clusters that export a service serve an import, by a ServiceImportRoutingPolicy (P1). It is
// pure: the caller passes the time.
package preference

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Select returns the policy that decides for an import of the policies' namespace: the oldest that selects it, and of those with the
// same age the one whose name comes first; nil if none selects it. The policies are not changed.
func Select(policies []*policyv1alpha1.ServiceImportRoutingPolicy, name string) *policyv1alpha1.ServiceImportRoutingPolicy {
	var result *policyv1alpha1.ServiceImportRoutingPolicy
	for _, p := range policies {
		selects := len(p.Spec.Imports) == 0 || slices.Contains(p.Spec.Imports, policyv1alpha1.ObjectName(name))
		if selects && (result == nil || compareAge(p, result) < 0) {
			result = p
		}
	}
	return result
}

func compareAge(a, b *policyv1alpha1.ServiceImportRoutingPolicy) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// ParseSources returns the sources of a flag, such as SameCluster, SameProperty=region and Any, with the rules of a policy.
func ParseSources(texts []string) ([]policyv1alpha1.Source, error) {
	var result []policyv1alpha1.Source
	for i, text := range texts {
		name, property, _ := strings.Cut(text, "=")
		var source policyv1alpha1.Source
		switch {
		case text == "SameCluster":
			source.SameCluster = true
		case text == "Any" && i == len(texts)-1:
			source.Any = true
		case name == "SameProperty" && len(validation.IsDNS1123Subdomain(property)) == 0:
			source.SameProperty = policyv1alpha1.PropertyName(property)
		default:
			return nil, fmt.Errorf("%q is not SameCluster, SameProperty=NAME, or Any as the last one", text)
		}
		result = append(result, source)
	}
	return result, nil
}

// Clusters are the clusters that a policy is evaluated for.
type Clusters struct {
	Local clusterset.ClusterID
	// Properties are those of each known cluster. A cluster without an entry is not known.
	Properties map[clusterset.ClusterID]map[string]string
	// Serving are the clusters that serve a port of the import at present.
	Serving map[clusterset.ClusterID]bool
}

// Level returns the index of the first source that matches a cluster, and false if none does. If a source depends on properties that
// are not known, because the hub was not read yet, it matches the clusters that serve at present: missing data changes nothing.
func (c Clusters) Level(sources []policyv1alpha1.Source, id clusterset.ClusterID) (int, bool) {
	i := slices.IndexFunc(sources, func(s policyv1alpha1.Source) bool { return c.matches(s, id) })
	return i, i >= 0
}

func (c Clusters) matches(source policyv1alpha1.Source, id clusterset.ClusterID) bool {
	properties, known := c.Properties[id]
	own, isLocalKnown := c.Properties[c.Local]
	switch {
	case source.SameCluster:
		return id == c.Local
	case len(source.Clusters) > 0:
		return slices.Contains(source.Clusters, policyv1alpha1.ClusterID(id))
	case source.Any:
		return true
	case source.SameProperty != "" && id == c.Local && known:
		return own[string(source.SameProperty)] != ""
	case !known || source.SameProperty != "" && !isLocalKnown:
		return c.Serving[id]
	case source.SameProperty != "":
		value := own[string(source.SameProperty)]
		return value != "" && properties[string(source.SameProperty)] == value
	case source.PropertySelector != nil:
		for name, value := range source.PropertySelector.MatchProperties {
			if properties[name] != string(value) {
				return false
			}
		}
		return true
	}
	return false // a newer agent may have written a source that this one does not know
}
