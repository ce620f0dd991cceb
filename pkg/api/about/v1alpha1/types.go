// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds ClusterProperty (about.k8s.io, KEP-2149) as clusters before v1beta1 know it. The fields are the
// same; v1beta1 is what is stored, and what Tombolo itself reads where the cluster serves it.
//
// +kubebuilder:object:generate=true
// +groupName=about.k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of ClusterProperty.
var GroupVersion = schema.GroupVersion{Group: "about.k8s.io", Version: "v1alpha1"}

// AddToScheme registers ClusterProperty with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ClusterProperty{}, &ClusterPropertyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=clusterproperties
// +kubebuilder:printcolumn:name="Value",type=string,JSONPath=`.spec.value`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`

// ClusterProperty is a property of the cluster that contains it.
type ClusterProperty struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ClusterPropertySpec `json:"spec,omitempty"`
}

// ClusterPropertySpec holds the value of a property.
type ClusterPropertySpec struct {
	// value is the property's value.
	// +kubebuilder:validation:MinLength=1
	Value string `json:"value"`
}

// +kubebuilder:object:root=true

// ClusterPropertyList is a list of ClusterProperties.
type ClusterPropertyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterProperty `json:"items"`
}
