// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// ServiceKey identifies a service in every cluster of the clusterset (namespace sameness, KEP-1645).
type ServiceKey = types.NamespacedName

// Export is what a cluster exports for one service, independent of the API objects: it is computed from a Service and a
// ServiceExport, and merged with other exports. Fields that do not apply to the type have their zero value.
type Export struct {
	Cluster ClusterID
	Key     ServiceKey
	// Age is the effective creation time, in whole seconds. It determines which export is the oldest (spec R8).
	Age time.Time

	Type                  mcsv1beta1.ServiceImportType
	Ports                 []Port
	IPFamilies            []corev1.IPFamily
	Affinity              Affinity
	InternalTrafficPolicy corev1.ServiceInternalTrafficPolicy
	// TrafficDistribution is empty if the Service does not set it.
	TrafficDistribution string

	// Labels and Annotations are the ServiceExport's exportedLabels and exportedAnnotations, without reserved keys.
	Labels      map[string]string
	Annotations map[string]string

	// Available is the availability of the endpoints; nil if it is not published.
	Available Availability
	// Terminating are the ports whose available endpoints terminate: none is ready. It is nil if there are none.
	Terminating map[PortID]bool

	// Hostnames are the available endpoints of a headless service; nil if they are not published. HostnamesLeftOut is the number of
	// hostnames that are not published, because there are more than MaxHostnames.
	Hostnames        Hostnames
	HostnamesLeftOut int32

	// Selection is the selector of the Service; nil if it is not exported, which is the default (spec D8).
	Selection *Selection

	// GrantedTo are the other clusters to which the service is exported, sorted; nil if it is exported to all, and empty if to none (A1).
	GrantedTo []ClusterID
}

// IsGrantedTo reports whether the service is exported to a cluster: always to its own.
func (e Export) IsGrantedTo(id ClusterID) bool {
	return e.GrantedTo == nil || id == e.Cluster || slices.Contains(e.GrantedTo, id)
}

// Availability is the number of available endpoints of each port: 0, 1, or 2 for two or more.
type Availability map[PortID]int32

// MaxAvailable is the largest number in an Availability.
const MaxAvailable = 2

// Hostnames are the available endpoints of a headless service by their hostname: the numbers of the ports on which they listen, by the
// numbers of the Service's TCP ports. All endpoints without a hostname are under the empty one (G9).
type Hostnames map[string]map[int32]int32

// MaxHostnames is the largest number of hostnames that a cluster publishes for a service, and that an importer uses of it.
const MaxHostnames = 100

// CompareHostnames orders hostnames as a StatefulSet numbers its pods: db-2 is before db-10.
func CompareHostnames(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// Selection contains a Service's selector and target ports. With it, a derived Service can select the pods of its own cluster
// (spec D8).
type Selection struct {
	// Labels are the labels of the selected pods; never empty.
	Labels map[string]string
	// TargetPorts are the target ports, by port of the Service.
	TargetPorts map[PortID]intstr.IntOrString
}

// DerivedSelector is the selector of the derived Services in a cluster.
type DerivedSelector string

// The values of DerivedSelector.
const (
	// NoSelector: no selector, as in the KEP. Only pods of exporting clusters serve (spec E1).
	NoSelector DerivedSelector = "none"
	// OldestSelector: the selector of the oldest export, so that pods with its labels serve in every cluster (spec D8).
	OldestSelector DerivedSelector = "oldest"
)

// Setting is a field of a Service to which new versions of Kubernetes add values, with its value in an export.
type Setting struct {
	// Field is the name of the field in the Service's spec.
	Field, Value string
}

// The fields of Settings.
const (
	FieldInternalTrafficPolicy = "internalTrafficPolicy"
	FieldTrafficDistribution   = "trafficDistribution"
)

// Affinity is a Service's session affinity. It is not used for headless services.
type Affinity struct {
	Mode corev1.ServiceAffinity
	// TimeoutSeconds is 0 if no timeout is configured.
	TimeoutSeconds int32
}

// Port is a port of an exported Service.
type Port struct {
	// Name may be empty if the Service has only one port.
	Name     string
	Protocol corev1.Protocol
	Port     int32
	// AppProtocol is empty if it is not set.
	AppProtocol string
}

// ID returns the protocol and number, which identify a port whatever its name is.
func (p Port) ID() PortID { return PortID{p.Protocol, p.Port} }

// String returns "name:number/protocol", or "number/protocol" for a port without a name.
func (p Port) String() string {
	if p.Name == "" {
		return p.ID().String()
	}
	return p.Name + ":" + p.ID().String()
}

// PortID is the protocol and number of a Service port.
type PortID struct {
	Protocol corev1.Protocol
	Port     int32
}

// String returns "number/protocol".
func (id PortID) String() string { return fmt.Sprintf("%d/%s", id.Port, id.Protocol) }
