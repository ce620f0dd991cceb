// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tombolo-mcs/tombolo/internal/retain"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// ruleDefinition returns the name of the CustomResourceDefinition of a kind with which users restrict services, empty for other kinds.
func ruleDefinition(of runtime.Object) string {
	switch of.(type) {
	case *policyv1alpha1.ServiceExportGrant:
		return "serviceexportgrants." + policyv1alpha1.GroupVersion.Group
	case *policyv1alpha1.ClusterServiceAccessPolicy:
		return "clusterserviceaccesspolicies." + policyv1alpha1.GroupVersion.Group
	case *policyv1alpha1.ServiceImportRoutingPolicy:
		return "serviceimportroutingpolicies." + policyv1alpha1.GroupVersion.Group
	}
	return ""
}

// RetainRules returns a source whose objects stay in the cache when their CustomResourceDefinition is deleted, if they are rules: without
// them, everything would be allowed. It returns other sources as they are. changed is called with the name of the definition and the
// number of rules that stay.
func RetainRules(config *rest.Config, of runtime.Object, from *toolscache.ListWatch, changed func(definition string, retained int)) *toolscache.ListWatch {
	name := ruleDefinition(of)
	if name == "" {
		return from
	}
	return retain.Source(from, retain.DefinitionIn(config, name), func(retained int) { changed(name, retained) })
}

// Retained returns what to say and to do if rules stay without their definition.
func Retained(definition string, count int) error {
	return fmt.Errorf("%d rules of %s were deleted with their CustomResourceDefinition, and stay in effect until this process ends: "+
		"install the definition and create the rules again; or restart all agents and gateways to accept that there are no such rules", count, definition)
}
