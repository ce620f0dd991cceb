// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of the kinds of access.
var GroupVersion = schema.GroupVersion{Group: "policy.tombolo-mcs.io", Version: "v1alpha1"}

// AddToScheme registers the kinds of access with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ServiceExportGrant{}, &ServiceExportGrantList{},
		&ClusterServiceAccessPolicy{}, &ClusterServiceAccessPolicyList{},
		&ServiceImportRoutingPolicy{}, &ServiceImportRoutingPolicyList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
