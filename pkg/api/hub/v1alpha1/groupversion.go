// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the hub's kinds.
var GroupVersion = schema.GroupVersion{Group: "hub.tombolo-mcs.io", Version: "v1alpha1"}

// AddToScheme registers the hub's kinds with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Member{}, &MemberList{},
		&Heartbeat{}, &HeartbeatList{},
		&PublishedService{}, &PublishedServiceList{},
		&PublishedEndpoints{}, &PublishedEndpointsList{},
		&PublishedGateway{}, &PublishedGatewayList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
