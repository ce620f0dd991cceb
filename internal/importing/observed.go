// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Observed is all that the decision about one import depends on. Its objects must not be changed.
type Observed struct {
	// Cluster is this cluster, Families are the IP families of its Services, and MetadataDomains the domains whose labels and annotations
	// it imports.
	Cluster         clusterset.ClusterID
	Families        []corev1.IPFamily
	MetadataDomains []string
	// Unsupported are the settings that this cluster's API server does not support (D6).
	Unsupported map[clusterset.Setting]bool

	Namespace   NamespaceState
	Sources     sources.Sources
	LocalSlices []clusterset.Slice
	// States are the states of the other exporters, also of those whose records are missing, and Policies the policies for silent ones.
	States   map[clusterset.ClusterID]liveness.State
	Policies liveness.Policies
	// Routing decides which sources serve.
	Routing Routing

	// Reach is what is known of the gateways of this cluster, and Numbers are what is reserved for the import.
	Reach   reach.Seen
	Numbers Numbers
	// Retained are the addresses that the import has had until it was deleted, and may get again (I5). Last are the addresses that it had when it
	// was gathered before.
	Retained, Last []string
	// Now is the time of the observation.
	Now time.Time

	Existing
	// Added is the metadata that an admission policy has added to existing objects in the last write of each.
	Added map[Name]plan.Metadata
	// Refused are the changes that an API server has refused since the import was gathered.
	Refused []Refused
	// AddressesLost is set if the recorded addresses of the import cannot be granted again: another Service has one of them, or no
	// ServiceCIDR contains it.
	AddressesLost bool
}

// Existing are the existing objects of an import.
type Existing struct {
	// ServiceImport is the existing ServiceImport, nil if there is none. It may be unmanaged.
	ServiceImport *mcsv1beta1.ServiceImport
	// Services are the Services with one of the two possible names of the derived Service. They may be unmanaged.
	Services []*corev1.Service
	// TakenNames are those of the two names that other imports of the namespace have recorded.
	TakenNames []string
	// Selection is the selector of the existing derived Service; nil if it has none, or must not have one (D8).
	Selection *clusterset.Selection
	// Mirrored are the mirrored slices, condensed as in the cache.
	Mirrored []*discoveryv1.EndpointSlice
	// VirtualServices and VirtualSlices are the Services of the import's virtual IPs and their slices (G9), which are condensed.
	VirtualServices []*corev1.Service
	VirtualSlices   []*discoveryv1.EndpointSlice
}

// Numbers are what the allocators have reserved for an import.
type Numbers struct {
	// VirtualIPs are those that the import has, and VirtualIPsFor is the request that the allocator has answered with them; nil if it has
	// not been asked. HoldsVirtualIPs is set if the allocator counts some for the import.
	VirtualIPs      []clusterset.VirtualIP
	VirtualIPsFor   *VirtualIPRequest
	HoldsVirtualIPs bool
	// Ports are the listening ports of this cluster's gateways for the service. Since is when they were allocated; it lacks those that were
	// allocated before the start of the agent. PortsFor are the owners for which ports were requested; nil if no port was.
	Ports    map[ports.Owner]int32
	Since    map[ports.Owner]time.Time
	PortsFor []ports.Owner
	// Retry is the time after which an owner for which no port was free may get one.
	Retry time.Duration
}

// MaxVirtualIPs is the largest number of virtual IPs in a cluster (G9).
const MaxVirtualIPs = 1000

// VirtualIPRequest are the virtual IPs that an import uses, first those that exist, and existing ones that it does not use at present.
type VirtualIPRequest struct{ Used, Unused []clusterset.VirtualIP }

func (r VirtualIPRequest) isEmpty() bool { return len(r.Used)+len(r.Unused) == 0 }

func (r VirtualIPRequest) equal(other VirtualIPRequest) bool {
	return slices.Equal(r.Used, other.Used) && slices.Equal(r.Unused, other.Unused)
}

// NamespaceState says whether services of a namespace are imported.
type NamespaceState string

const (
	// NamespaceAllowed means that services are imported.
	NamespaceAllowed NamespaceState = "allowed"
	// NamespaceDenied means that no services are imported. Existing imports are deleted.
	NamespaceDenied NamespaceState = "denied"
	// NamespaceNotFound means that the namespace does not exist, or is being deleted.
	NamespaceNotFound NamespaceState = "not found"
)

// isObstructed reports whether an unmanaged ServiceImport has the import's name.
func (e Existing) isObstructed() bool {
	return e.ServiceImport != nil && !clusterset.IsManaged(e.ServiceImport.Labels)
}

// managedImport returns the ServiceImport if it is managed, else nil.
func (e Existing) managedImport() *mcsv1beta1.ServiceImport {
	if e.ServiceImport == nil || !clusterset.IsManaged(e.ServiceImport.Labels) {
		return nil
	}
	return e.ServiceImport
}

// Derived returns the managed derived Services of the import of a service: one, unless its name was changed by hand.
func (e Existing) Derived(service string) []*corev1.Service {
	var ours []*corev1.Service
	for _, s := range e.Services {
		if render.IsDerivedFor(s, service) {
			ours = append(ours, s)
		}
	}
	return ours
}

func (o Observed) derivedServices() []*corev1.Service { return o.Derived(o.Sources.Key.Name) }

// Imported returns what this cluster has imported: the clusters that the import's status or its slices name, with the IDs of the slices. If
// they name no cluster, any of the members may be the exporter.
func (o Observed) Imported(members []clusterset.ClusterID) sources.Imported {
	have := sources.Imported{}
	if i := o.managedImport(); i != nil {
		for _, status := range i.Status.Clusters {
			have[clusterset.ClusterID(status.Cluster)] = nil
		}
	}
	for _, slice := range o.Mirrored {
		source := keyOf(slice)
		ids := have[source.cluster]
		if !IsGatewaySlice(slice) { // the hub has no record of a slice of gateways
			ids = append(ids, source.id)
		}
		have[source.cluster] = ids
	}
	for ip := range o.existingVirtualIPs() {
		if _, known := have[ip.Cluster]; !known {
			have[ip.Cluster] = nil
		}
	}
	if o.hasUnknownExporters() {
		for _, id := range members {
			have[id] = nil
		}
	}
	return have
}

// hasUnknownExporters reports whether a part of the import exists but names no exporter: a derived Service whose ServiceImport was deleted, or
// a ServiceImport that was restored from it.
func (o Observed) hasUnknownExporters() bool {
	i := o.managedImport()
	return len(o.Mirrored) == 0 && (i != nil && len(i.Status.Clusters) == 0 || i == nil && len(o.derivedServices()) > 0)
}

// derivedNameTaken reports whether the Service with the name that the import has recorded is not its derived Service.
func (o Observed) derivedNameTaken() bool {
	recorded := o.ServiceImport.Annotations[clusterset.AnnotationDerivedService]
	return slices.ContainsFunc(o.Services, func(s *corev1.Service) bool {
		return s.Name == recorded && !render.IsDerivedFor(s, o.Sources.Key.Name)
	})
}

// knowsOwnExport reports whether the local API server says if this cluster exports the service, also if the hub was not read. Without a
// ServiceExport, the slices with this cluster's ID may be those of another cluster with the same ID, unless they show that they are
// this cluster's own (D6).
func (o Observed) knowsOwnExport() bool {
	return o.Sources.Export != nil || slices.ContainsFunc(o.Mirrored, func(s *discoveryv1.EndpointSlice) bool {
		return SourceOf(s) == o.Cluster && render.IsLocal(s)
	})
}

// SourceSlices returns the source slices of all exporters, also those that are not mirrored.
func (o Observed) SourceSlices() []clusterset.Slice {
	return slices.Concat(o.Sources.Hub.Slices, o.LocalSlices)
}

// SourceOf returns the source cluster of a mirrored slice.
func SourceOf(slice *discoveryv1.EndpointSlice) clusterset.ClusterID {
	return clusterset.ClusterID(slice.Labels[mcsv1beta1.LabelSourceCluster])
}

// IsGatewaySlice reports whether the endpoints of a mirrored slice are gateways.
func IsGatewaySlice(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[clusterset.LabelGateway] != ""
}
