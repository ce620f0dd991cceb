// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package aliases

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/proxy"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
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
	// pods are the slices of the pods that the Service selects.
	pods []*discoveryv1.EndpointSlice
}

// decision is what a Service should have as an alias.
type decision struct {
	// kept is set if everything stays as it is.
	kept   bool
	slices []*discoveryv1.EndpointSlice
	// unread are the names of the mirrored slices that must be read from the API server to decide.
	unread []string
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
	reserved := clusterset.CheckReserved(clusterset.ServiceKey{Namespace: v.service.Namespace, Name: v.service.Name})
	switch {
	case reserved != nil:
		return decision{condition: new(conditions.AliasRefused(reserved))}
	case err != nil:
		return decision{condition: new(conditions.AliasRefused(err))}
	case v.serviceImport == nil && len(v.mirrored) > 0:
		return decision{kept: true}
	case v.serviceImport == nil:
		return decision{condition: new(conditions.AliasWithoutImport(name))}
	}
	ports := render.MatchAliasPorts(v.service, v.serviceImport)
	has := render.AliasSlices(v.service, v.serviceImport, v.cluster, v.mirrored, v.pods)
	return decision{slices: has.Slices, unread: has.Unread, condition: new(conditions.Alias(conditions.Aliased{
		Import: name, Matched: ports.Matched, Unmatched: ports.Unmatched, ByGateway: has.ByGateway, OtherFamily: has.OtherFamily,
		ZonesMissing: conditions.ZonesMissing(ptr.Deref(v.service.Spec.TrafficDistribution, ""), has.WithoutZone),
		Ports:        proxy.Ports(withPorts(v.service, ports), slices.Concat(has.Slices, has.Own)),
	}))}
}

// withPorts returns a Service that has only the ports of an alias that are ports of its import. The argument is not changed.
func withPorts(service *corev1.Service, ports render.AliasPorts) *corev1.Service {
	matched := slices.Collect(maps.Values(ports.Names))
	result := *service
	result.Spec.Ports = slices.DeleteFunc(slices.Clone(service.Spec.Ports), func(p corev1.ServicePort) bool { return !slices.Contains(matched, p.Name) })
	return &result
}
