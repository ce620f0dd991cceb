// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package export decides what a cluster tells the others about a service: Service and ServiceExport become an Export
// or a Rejection, its EndpointSlices become Slices. It is pure: values in, values out.
package export

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reasons of Rejections that the API does not name.
const (
	// ReasonNamespaceReserved says that the namespace is never part of a clusterset.
	ReasonNamespaceReserved mcsv1beta1.ServiceExportConditionReason = "NamespaceReserved"
	// ReasonServiceReserved says that the Service never is.
	ReasonServiceReserved mcsv1beta1.ServiceExportConditionReason = "ServiceReserved"
)

// Rejection says why a ServiceExport exports nothing. Reason and Message are those of its condition Valid (spec C1).
type Rejection struct {
	Reason  mcsv1beta1.ServiceExportConditionReason
	Message string
}

// Decide returns what cluster id exports under this ServiceExport, or why it exports nothing (spec E1, E4-E7, E9).
// service is nil where there is none. The Export's age is the one that the ServiceExport claims (spec R8).
func Decide(id clusterset.ClusterID, export *mcsv1beta1.ServiceExport, service *corev1.Service) (clusterset.Export, *Rejection) {
	if rejection := reject(export, service); rejection != nil {
		return clusterset.Export{}, rejection
	}
	result := clusterset.Export{
		Cluster:               id,
		Key:                   clusterset.ServiceKey{Namespace: export.Namespace, Name: export.Name},
		Age:                   export.CreationTimestamp.UTC(),
		Type:                  mcsv1beta1.ClusterSetIP,
		Ports:                 ports(service.Spec.Ports),
		IPFamilies:            slices.Clone(service.Spec.IPFamilies),
		InternalTrafficPolicy: valueOf(service.Spec.InternalTrafficPolicy),
		TrafficDistribution:   valueOf(service.Spec.TrafficDistribution),
		Labels:                crossing(export.Spec.ExportedLabels),
		Annotations:           crossing(export.Spec.ExportedAnnotations),
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		result.Type = mcsv1beta1.Headless
	} else {
		result.Affinity = affinity(service.Spec)
	}
	return result, nil
}

// NamespaceReserved returns the Rejection of what lies in a namespace that is never part of a clusterset.
func NamespaceReserved(namespace string) *Rejection {
	return &Rejection{ReasonNamespaceReserved, fmt.Sprintf(
		"Services of namespace %s are never exported. Move the Service to another namespace.", namespace)}
}

func reject(export *mcsv1beta1.ServiceExport, service *corev1.Service) *Rejection {
	switch {
	case clusterset.IsReservedNamespace(export.Namespace):
		return NamespaceReserved(export.Namespace)
	case clusterset.CheckReserved(clusterset.ServiceKey{Namespace: export.Namespace, Name: export.Name}) != nil:
		return &Rejection{ReasonServiceReserved, fmt.Sprintf(
			"Service %s of namespace %s is this cluster's own API server and is never exported. Delete this ServiceExport.", export.Name, export.Namespace)}
	case service == nil:
		return &Rejection{mcsv1beta1.ServiceExportReasonNoService, fmt.Sprintf(
			"There is no Service %s in namespace %s. Create it, or delete this ServiceExport.", export.Name, export.Namespace)}
	case clusterset.IsManaged(service.Labels):
		return &Rejection{mcsv1beta1.ServiceExportReasonInvalidServiceType, fmt.Sprintf(
			"Service %s is itself derived from an import and cannot be exported again. Export the original Service, named %s, where it runs.",
			export.Name, service.Labels[mcsv1beta1.LabelServiceName])}
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return &Rejection{mcsv1beta1.ServiceExportReasonInvalidServiceType, fmt.Sprintf(
			"Service %s is of type ExternalName, which cannot be exported. Use ClusterIP, NodePort, LoadBalancer or a headless Service.", export.Name)}
	}
	return nil
}

func ports(source []corev1.ServicePort) []clusterset.Port {
	result := make([]clusterset.Port, 0, len(source))
	for _, p := range source {
		result = append(result, clusterset.Port{
			Name:        p.Name,
			Protocol:    p.Protocol,
			Port:        p.Port,
			AppProtocol: valueOf(p.AppProtocol),
		})
	}
	return result
}

// Selection returns how an exported Service finds its pods; nil where it has no selector, or is headless and has no
// address of its own that others could stand for (spec D8).
func Selection(service *corev1.Service) *clusterset.Selection {
	if len(service.Spec.Selector) == 0 || service.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	result := &clusterset.Selection{Labels: service.Spec.Selector, TargetPorts: map[clusterset.PortID]intstr.IntOrString{}}
	for _, p := range service.Spec.Ports {
		result.TargetPorts[clusterset.PortID{Protocol: p.Protocol, Port: p.Port}] = p.TargetPort
	}
	return result
}

func affinity(spec corev1.ServiceSpec) clusterset.Affinity {
	result := clusterset.Affinity{Mode: spec.SessionAffinity}
	if config := spec.SessionAffinityConfig; config != nil && config.ClientIP != nil {
		result.TimeoutSeconds = valueOf(config.ClientIP.TimeoutSeconds)
	}
	return result
}

// crossing returns the entries that may cross clusters; nil where there are none.
func crossing(metadata map[string]string) map[string]string {
	result := maps.Clone(metadata)
	maps.DeleteFunc(result, func(key, _ string) bool { return clusterset.IsReserved(key) })
	if len(result) == 0 {
		return nil
	}
	return result
}

func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
