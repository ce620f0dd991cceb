// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// ServiceKey identifies a service in every cluster of the clusterset (namespace sameness, KEP-1645).
type ServiceKey = types.NamespacedName

// Export is what one cluster tells the others about one service: the neutral record between the source's Service
// and ServiceExport and everybody's merge. Fields that do not apply to the type hold their zero value.
type Export struct {
	Cluster ClusterID
	Key     ServiceKey
	// Age is the effective creation time by which the oldest export is found (spec R8), in whole seconds.
	Age time.Time

	Type                  mcsv1beta1.ServiceImportType
	Ports                 []Port
	IPFamilies            []corev1.IPFamily
	Affinity              Affinity
	InternalTrafficPolicy corev1.ServiceInternalTrafficPolicy
	// TrafficDistribution is empty where the Service asks for none.
	TrafficDistribution string

	// Labels and Annotations are the ServiceExport's exportedLabels and exportedAnnotations, less reserved keys.
	Labels      map[string]string
	Annotations map[string]string

	// Selection is how the Service finds its pods; nil where that stays in the cluster, as it does unless its
	// administrator wants otherwise (spec D8).
	Selection *Selection
}

// Selection is how a Service finds its pods: what a cluster needs to know to have its own pods join the service of
// another (spec D8).
type Selection struct {
	// Labels are those that the pods must have; never empty.
	Labels map[string]string
	// TargetPorts are where the pods listen, for each port of the Service.
	TargetPorts map[PortID]intstr.IntOrString
}

// DerivedSelector says which selector derived Services have in a cluster.
type DerivedSelector string

// The selectors that derived Services can have.
const (
	// NoSelector: none, as the KEP has it. Only pods of exporting clusters serve (spec E1).
	NoSelector DerivedSelector = "none"
	// OldestSelector: that of the oldest export, so that pods which match it join wherever they run (spec D8).
	OldestSelector DerivedSelector = "oldest"
)

// Setting is a value that an export gives one of the fields of a Service to which versions of Kubernetes add values.
type Setting struct {
	// Field is the name of the field in the Service's spec.
	Field, Value string
}

// The fields that Settings are about.
const (
	FieldInternalTrafficPolicy = "internalTrafficPolicy"
	FieldTrafficDistribution   = "trafficDistribution"
)

// Affinity is a Service's session affinity. It means nothing for headless services.
type Affinity struct {
	Mode corev1.ServiceAffinity
	// TimeoutSeconds is 0 where no timeout is configured.
	TimeoutSeconds int32
}

// Port is a port of an exported Service.
type Port struct {
	// Name may be empty where the Service has this one port only.
	Name     string
	Protocol corev1.Protocol
	Port     int32
	// AppProtocol is empty where none is given.
	AppProtocol string
}

// ID returns what makes two ports the same port, whatever they are called.
func (p Port) ID() PortID { return PortID{p.Protocol, p.Port} }

// String returns "name:number/protocol", or "number/protocol" for a port without a name.
func (p Port) String() string {
	if p.Name == "" {
		return p.ID().String()
	}
	return p.Name + ":" + p.ID().String()
}

// PortID is a protocol and a Service port number: what a client sends to.
type PortID struct {
	Protocol corev1.Protocol
	Port     int32
}

// String returns "number/protocol".
func (id PortID) String() string { return fmt.Sprintf("%d/%s", id.Port, id.Protocol) }
