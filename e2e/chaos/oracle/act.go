// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is what a user does to the clusters.
type What string

// What can be done.
const (
	// Source: the Service, its slices or its ServiceExport are changed, or the member's records of it on the hub.
	Source What = "source"
	// Hand: the import is touched by hand: ServiceImport, derived Service or mirrored slices.
	Hand What = "hand"
	// Namespace: the namespace is deleted. Key has no name.
	Namespace What = "namespace"
	// HandImport: the ServiceImport is deleted by hand, and nothing else of the import; with Hand, so is the derived Service, and
	// its addresses are lost.
	HandImport What = "hand on the ServiceImport"
	// Silence: the agent stops, and is away for so long that it shows. Key is empty.
	Silence What = "silence"
	// Loss: the hub loses records of the member. Key is empty.
	Loss What = "loss"
)

// Act is something that is done to a cluster. It is noted before it is done, so that its effects come after it.
type Act struct {
	Cluster string
	Key     Key
	What    What
}

// Event is what a watch of a cluster has shown.
type Event struct {
	Cluster string
	// Object is a *Service, *EndpointSlice, *ServiceImport or *ServiceExport; on the hub a *PublishedService or *PublishedEndpoints.
	Object metav1.Object
	// At is when it was shown.
	At time.Time
	// Gone says that the object has been deleted; it is as it was last.
	Gone bool
}
