// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// GrantedTo returns the other clusters that may import an export of the cluster own, sorted; nil if all may, and empty if none may. These
// are the clusters that the grants of the export name, or select by their properties; an entry that does neither names all (A1). grants
// are those of the namespace. A record names at most hubv1alpha1.MaxGrantedTo clusters; surplus is the number of those that are left out.
func GrantedTo(
	own clusterset.ClusterID, service Service, grants []policyv1alpha1.ServiceExportGrant, properties Properties,
) (clusters []clusterset.ClusterID, surplus int) {
	granted := service.GrantedOnly
	clusters = []clusterset.ClusterID{}
	for i := range grants {
		if !selects(&grants[i], service.Key.Name) {
			continue
		}
		granted = true
		for _, p := range peersOf(grants[i].Spec.To) {
			switch {
			case len(p.clusters) == 0 && len(p.properties) == 0:
				return nil, 0
			case len(p.properties) == 0:
				for _, id := range p.clusters {
					clusters = append(clusters, clusterset.ClusterID(id))
				}
			default:
				for id := range properties {
					if matches, _ := properties.match(id, p.properties); matches && containsOrEmpty(p.clusters, string(id)) {
						clusters = append(clusters, id)
					}
				}
			}
		}
	}
	if !granted {
		return nil, 0
	}
	slices.Sort(clusters)
	clusters = slices.DeleteFunc(slices.Compact(clusters), func(id clusterset.ClusterID) bool { return id == own })
	bounded := min(len(clusters), hubv1alpha1.MaxGrantedTo)
	return clusters[:bounded], len(clusters) - bounded
}

// NoMembers returns the clusters that are no members. Properties have all members.
func NoMembers(clusters []clusterset.ClusterID, properties Properties) []clusterset.ClusterID {
	return slices.DeleteFunc(slices.Clone(clusters), func(id clusterset.ClusterID) bool {
		_, isMember := properties[id]
		return isMember
	})
}

// Selecting returns the names of the grants that select an export, as Rule of a Verdict has them, sorted.
func Selecting(export string, grants []policyv1alpha1.ServiceExportGrant) []string {
	var result []string
	for i := range grants {
		if selects(&grants[i], export) {
			result = append(result, ruleOf(&grants[i]))
		}
	}
	slices.Sort(result)
	return result
}

// NamespacesByCluster returns the namespaces whose grants name clusters, or select them by their properties: what these grants do depends on
// the members.
func NamespacesByCluster(grants []policyv1alpha1.ServiceExportGrant) sets.Set[string] {
	result := sets.New[string]()
	for i := range grants {
		if slices.ContainsFunc(grants[i].Spec.To, func(p policyv1alpha1.Peer) bool { return len(p.Clusters) > 0 || p.PropertySelector != nil }) {
			result.Insert(grants[i].Namespace)
		}
	}
	return result
}

func selects(grant *policyv1alpha1.ServiceExportGrant, export string) bool {
	return containsOrEmpty(strings(grant.Spec.Exports), export)
}

func ruleOf(grant *policyv1alpha1.ServiceExportGrant) string {
	return fmt.Sprintf("ServiceExportGrant %s/%s", grant.Namespace, grant.Name)
}
