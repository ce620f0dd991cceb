// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Hub is what the hub has of one service.
type Hub struct {
	// Exports and Slices are those of the other members that are not refused, sorted, and granted to this cluster. Without a local
	// cluster, they are all.
	Exports []clusterset.Export
	Slices  []clusterset.Slice
	// Ungranted are the exports of the other members that are not granted to this cluster, sorted. It does not import them (A1).
	Ungranted []clusterset.Export
	// Refused are the reasons why records and endpoints are refused: the first 10 of each member, and the number of the others.
	Refused []error
	// RefusedTotal is the number of all refused records and endpoints.
	RefusedTotal int
	// LocalMember is the local Member; nil if there is none. It must not be changed.
	LocalMember *hubv1alpha1.Member
	// Local and LocalEndpoints are the local records; nil if there are none. They must not be changed.
	Local          *hubv1alpha1.PublishedService
	LocalEndpoints []*hubv1alpha1.PublishedEndpoints
	// LocalExport is the export that other members decode from Local; nil if there is none or they refuse it.
	LocalExport *clusterset.Export
	// NotAllowed is the reason why the local Member does not allow this cluster to export the service, and what to do; nil if the
	// Member allows it or is not known.
	NotAllowed error
	// Exporters describe the exporters of Exports. Slices has no slices of those whose addresses this cluster must not use.
	Exporters map[clusterset.ClusterID]reach.Cluster
	// OwnRanges are the ranges of this cluster.
	OwnRanges clusterset.OwnRanges
	// LocalNetwork is the network of this cluster; empty for the default one.
	LocalNetwork string
	// Missing are the missing records of the imported service, by cluster.
	Missing map[clusterset.ClusterID]Missing
	// Listed is set if all kinds of the hub were listed.
	Listed bool
}

// Synced reports whether all kinds were listed and the local Member exists, at the time of the read. See hub.Store.Synced.
func (h Hub) Synced() bool { return h.Listed && h.LocalMember != nil }

// ForbidsNamespace reports whether the local Member does not allow this cluster to publish services of a namespace. The hub then refuses
// records of it, and importers do not use those that it stores.
func (h Hub) ForbidsNamespace(namespace string) bool {
	if h.LocalMember == nil {
		return false
	}
	p, err := record.NewPolicy(h.LocalMember, clusterset.AddressRanges{})
	return err == nil && !p.Allows(hubv1alpha1.NamespaceName(namespace))
}

// LocalRanges returns the address ranges of the local Member. They are empty if the Member is not known.
func (h Hub) LocalRanges() clusterset.AddressRanges {
	if h.LocalMember == nil {
		return clusterset.AddressRanges{}
	}
	p, err := record.NewPolicy(h.LocalMember, clusterset.AddressRanges{})
	if err != nil { // the hub's admission policies prevent this; no address is allowed
		return clusterset.AddressRanges{}
	}
	return p.Ranges
}

// Imported are the exporters that an import or its mirrored slices name, and the IDs of the mirrored slices of each.
type Imported map[clusterset.ClusterID][]string

// Missing are the records of a cluster for a service that the cluster has imported and the hub lacks, and that are not known to be
// deleted.
type Missing struct {
	// Export is set if the PublishedService is missing. Then all slices are missing too.
	Export bool
	// Slices are the IDs of the missing slices, sorted.
	Slices []string
}
