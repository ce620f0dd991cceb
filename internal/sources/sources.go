// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sources has the values from which every controller decides about one service: the local export, and what the hub has of the
// exports of the other members.
package sources

import (
	"slices"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Sources is the data of one service.
type Sources struct {
	Key clusterset.ServiceKey
	// Export is this cluster's ServiceExport, nil if there is none or it is being deleted.
	Export *mcsv1beta1.ServiceExport
	// Local is the local export; nil if there is none. Its age is the effective one (spec R8): until the hub has recorded the
	// export, it is younger than any other, so it displaces nothing before all members can see it.
	Local *clusterset.Export
	// GrantSurplus is the number of clusters to which the local export is granted and that the record cannot name.
	GrantSurplus int
	// NoMembers are the clusters to which the local export is granted and that are no members; none if the members are not known.
	NoMembers []clusterset.ClusterID
	// Direct are the other members that connect to the pods without a gateway, sorted. It is read only if the export has the annotation
	// clusterset.AnnotationProxyProtocol (G14).
	Direct []clusterset.ClusterID
	// Rejection is why a ServiceExport exports nothing; nil if it exports, or if there is none.
	Rejection *export.Rejection
	// Hub has the exports of the other members, and this cluster's own records.
	Hub Hub
	// Gateways are the gateways of this cluster; nil if it has none.
	Gateways *Gateways
}

// Gateways are the gateways of this cluster.
type Gateways struct {
	// Slices are the EndpointSlices of their Service.
	Slices []clusterset.Slice
}

// PublishesAvailability reports whether the record of the local export contains the availability of its ports: other clusters need it
// to reach its endpoints through gateways (W2).
func (s Sources) PublishesAvailability() bool { return s.Gateways != nil || !s.PublishesAddresses() }

// PublishesAddresses reports whether this cluster publishes the addresses of its endpoints.
func (s Sources) PublishesAddresses() bool {
	return s.Hub.LocalMember == nil || s.Hub.LocalMember.Spec.Publish != hubv1alpha1.PublishAvailability
}

// Exports returns the accepted exports of the service that this cluster imports: those granted to it, and the local one.
func (s Sources) Exports() []clusterset.Export { return s.withLocal(s.Hub.Exports) }

// AllExports returns all accepted exports of the service, whomever they are granted to. Conflicts are computed from them (A1).
func (s Sources) AllExports() []clusterset.Export {
	return s.withLocal(slices.Concat(s.Hub.Exports, s.Hub.Ungranted))
}

func (s Sources) withLocal(others []clusterset.Export) []clusterset.Export {
	if s.Local == nil || s.Hub.NotAllowed != nil { // no other member accepts it (spec R7)
		return others
	}
	return append(slices.Clone(others), s.acceptedLocal())
}

// acceptedLocal returns the local export as other members accept it. If they would refuse it, for example for an invalid label,
// that is the record that the hub still stores, so that all members agree (spec R7), and the import of other exports is not blocked
// (spec C7). Without a record, it is the export without its metadata, the only part that can be invalid.
func (s Sources) acceptedLocal() clusterset.Export {
	own := *s.Local
	if record.Check(own) == nil {
		return own
	}
	if s.Hub.LocalExport != nil {
		return *s.Hub.LocalExport
	}
	own.Labels, own.Annotations = nil, nil
	return own
}

// Record returns the record of the local export as the hub should store it, with the age that the ServiceExport claims: importers
// bound the age themselves (spec R8). There must be a local export.
func (s Sources) Record() *hubv1alpha1.PublishedService {
	own := *s.Local
	own.Age = s.Export.CreationTimestamp.UTC()
	return record.EncodeService(own)
}

// IsPublished reports whether the hub stores the record of the local export as it should be. It does not compare endpoints and
// their availability.
func (s Sources) IsPublished() bool {
	if s.Local == nil || s.Hub.Local == nil {
		return false
	}
	return len(plan.PublishedService(s.Record(), record.WithoutAvailability(s.Hub.Local))) == 0
}
