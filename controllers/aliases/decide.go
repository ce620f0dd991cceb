// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package aliases

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// view is the input of the decision about one Service.
type view struct {
	cluster clusterset.ClusterID
	// service is nil if it does not exist, or is being deleted.
	service *corev1.Service
	// serviceImport is the managed import that the annotation names; nil if there is none.
	serviceImport *mcsv1beta1.ServiceImport
	// mirrored are the mirrored slices of the import, and existing the managed slices of the alias. Their endpoints may be condensed. They
	// must not be changed.
	mirrored, existing []*discoveryv1.EndpointSlice
}

// decision is what a Service should have as an alias.
type decision struct {
	// kept is set if everything stays as it is.
	kept   bool
	slices []*discoveryv1.EndpointSlice
	// condition is nil if the Service is no alias.
	condition *metav1.Condition
}

// decide returns what a Service should have as an alias (L1). An import that is withdrawn loses its slices before its ServiceImport. So if
// only the ServiceImport is missing, a user has deleted or edited it, and it is about to be restored.
func decide(v view) decision {
	if v.service == nil || !clusterset.IsAlias(v.service) {
		return decision{}
	}
	name, err := clusterset.AliasImport(v.service)
	switch {
	case err != nil:
		return decision{condition: new(conditions.AliasRefused(err))}
	case v.serviceImport == nil && len(v.mirrored) > 0:
		return decision{kept: true}
	case v.serviceImport == nil:
		return decision{condition: new(conditions.AliasWithoutImport(name))}
	}
	ports := render.MatchAliasPorts(v.service, v.serviceImport)
	slices, unusable := render.AliasSlices(v.service, v.serviceImport, v.cluster, v.mirrored)
	return decision{slices: slices, condition: new(conditions.Alias(conditions.Aliased{
		Import: name, Matched: ports.Matched, Unmatched: ports.Unmatched, Unusable: unusable,
	}))}
}
