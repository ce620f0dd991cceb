// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"slices"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// GrantedTo returns the other clusters that may import an export of the cluster own, sorted; nil if all may, and empty if none may. These
// are the clusters that the grants of the export name; an entry without clusters names all (A1). grants are those of the namespace. A
// record names at most hubv1alpha1.MaxGrantedTo clusters; surplus is the number of those that are left out.
func GrantedTo(own clusterset.ClusterID, service Service, grants []policyv1alpha1.ServiceExportGrant) (clusters []clusterset.ClusterID, surplus int) {
	granted := service.GrantedOnly
	clusters = []clusterset.ClusterID{}
	for i := range grants {
		if !containsOrEmpty(strings(grants[i].Spec.Exports), service.Key.Name) {
			continue
		}
		granted = true
		for _, peer := range grants[i].Spec.To {
			if len(peer.Clusters) == 0 {
				return nil, 0
			}
			for _, id := range peer.Clusters {
				clusters = append(clusters, clusterset.ClusterID(id))
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
