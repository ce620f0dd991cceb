// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// HeldImports returns, for each member whose losses a cluster does not believe, the imports that it keeps for its sake.
func (h *Hub) HeldImports(s Sight) map[clusterset.ClusterID][]clusterset.ServiceKey {
	result := map[clusterset.ClusterID][]clusterset.ServiceKey{}
	for i := range s.Imports {
		object := &s.Imports[i]
		if !clusterset.IsManaged(object.Labels) || !isHeld(object) {
			continue
		}
		key := clusterset.ServiceKey{Namespace: object.Namespace, Name: object.Name}
		for _, id := range h.heldFor(key, s.ID, object.Status.Clusters) {
			result[id] = append(result[id], key)
		}
	}
	return result
}

// heldFor returns for whose sake a cluster holds an import: the exporters that it names and the hub has no record of. Where
// the hub has one of each, it lacks endpoints: then it is those without any.
func (h *Hub) heldFor(key clusterset.ServiceKey, own clusterset.ClusterID, exporters []mcsv1beta1.ClusterStatus) []clusterset.ClusterID {
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
