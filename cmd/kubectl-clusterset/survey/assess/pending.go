// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// pendingDeletions returns the imports that a cluster keeps until a member confirms their deletion, by that member.
func pendingDeletions(h *survey.Hub, s survey.MemberObjects) map[clusterset.ClusterID][]clusterset.ServiceKey {
	result := map[clusterset.ClusterID][]clusterset.ServiceKey{}
	for i := range s.Imports {
		object := &s.Imports[i]
		if !clusterset.IsManaged(object.Labels) || !isPending(object) {
			continue
		}
		key := clusterset.ServiceKey{Namespace: object.Namespace, Name: object.Name}
		for _, id := range unconfirmedExporters(h, key, s.ID, object.Status.Clusters) {
			result[id] = append(result[id], key)
		}
	}
	return result
}

// unconfirmedExporters returns the exporters of an import that the hub has no record of. If it has a record of each, it returns
// those without endpoints.
func unconfirmedExporters(h *survey.Hub, key clusterset.ServiceKey, own clusterset.ClusterID, exporters []mcsv1beta1.ClusterStatus) []clusterset.ClusterID {
	known := h.Records.Service(key)
	recorded, serving := map[clusterset.ClusterID]bool{own: true}, map[clusterset.ClusterID]bool{own: true}
	for _, export := range known.Exports {
		recorded[export.Cluster] = true
	}
	for _, slice := range known.Slices {
		serving[slice.Cluster] = true
	}
	var missing, silent []clusterset.ClusterID
	for _, c := range exporters {
		id := clusterset.ClusterID(c.Cluster)
		if !recorded[id] {
			missing = append(missing, id)
		}
		if !serving[id] {
			silent = append(silent, id)
		}
	}
	if len(missing) > 0 {
		return missing
	}
	return silent
}
