// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package preference

import (
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// maxListed is the number of clusters that a text lists.
const maxListed = 10

// Unmatched returns what sources name and no member has: clusters that are no members, and properties. Properties must have all members.
func (c Clusters) Unmatched(sources []policyv1alpha1.Source) []string {
	var result []string
	for i, source := range sources {
		var unknown []string
		for _, id := range source.Clusters {
			if _, ok := c.Properties[clusterset.ClusterID(id)]; !ok {
				unknown = append(unknown, string(id))
			}
		}
		name := string(source.SameProperty)
		switch {
		case len(unknown) > 0:
			result = append(result, fmt.Sprintf("source %d names clusters that are no members: %s", i+1, list(unknown)))
		case name != "" && c.Properties[c.Local][name] == "":
			result = append(result, fmt.Sprintf("source %d matches no cluster: this cluster has no property %s in its Member on the hub", i+1, name))
		case source.PropertySelector != nil && !c.matchesAny(source):
			result = append(result, fmt.Sprintf("source %d matches no cluster: no member has these properties in its Member on the hub", i+1))
		}
	}
	return result
}

func (c Clusters) matchesAny(source policyv1alpha1.Source) bool {
	for id := range c.Properties {
		if c.matches(source, id) {
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
