// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package export decides what a cluster publishes for a service. It computes an Export or a Rejection from Service and
// ServiceExport, and Slices from the EndpointSlices. It is pure.
package export

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reasons of Rejections that the MCS API does not define.
const (
	// ReasonNamespaceReserved: services of the namespace are never exported.
	ReasonNamespaceReserved mcsv1beta1.ServiceExportConditionReason = "NamespaceReserved"
	// ReasonServiceReserved: the Service is never exported.
	ReasonServiceReserved mcsv1beta1.ServiceExportConditionReason = "ServiceReserved"
)

// Rejection is the reason why a ServiceExport exports nothing. Reason and Message are those of its condition Valid (spec C1).
type Rejection struct {
	Reason  mcsv1beta1.ServiceExportConditionReason
	Message string
}

// Decide returns what cluster id exports for a ServiceExport, or why it exports nothing (spec E1, E4-E7, E9). service is nil if
// there is none. The age of the Export is the claimed one: the creation time of the ServiceExport (spec R8).
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
		InternalTrafficPolicy: ptr.Deref(service.Spec.InternalTrafficPolicy, ""),
		TrafficDistribution:   ptr.Deref(service.Spec.TrafficDistribution, ""),
		Labels:                exportedMetadata(export.Spec.ExportedLabels),
		Annotations:           exportedMetadata(export.Spec.ExportedAnnotations),
	}
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		result.Type = mcsv1beta1.Headless
	} else {
		result.Affinity = affinity(service.Spec)
	}
	return result, nil
}

// NamespaceReserved returns the Rejection of a ServiceExport in a reserved namespace.
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
			export.Name, cmp.Or(service.Labels[mcsv1beta1.LabelServiceName], service.Labels[clusterset.LabelVirtualIPOf]))}
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
			AppProtocol: ptr.Deref(p.AppProtocol, ""),
		})
	}
	return result
}

// Selection returns the selector and the target ports of an exported Service; nil if it has no selector or is headless (spec D8).
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
		result.TimeoutSeconds = ptr.Deref(config.ClientIP.TimeoutSeconds, 0)
	}
	return result
}

// Reserved returns the keys of labels and annotations that a ServiceExport names and that are never exported, because other clusters could
// act on them, sorted.
func Reserved(export *mcsv1beta1.ServiceExport) []string {
	var result []string
	for _, metadata := range []map[string]string{export.Spec.ExportedLabels, export.Spec.ExportedAnnotations} {
		for key := range metadata {
			if clusterset.IsReserved(key) {
				result = append(result, key)
			}
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// exportedMetadata returns the labels or annotations without reserved keys; nil if there are none.
func exportedMetadata(metadata map[string]string) map[string]string {
	result := maps.Clone(metadata)
	maps.DeleteFunc(result, func(key, _ string) bool { return clusterset.IsReserved(key) })
	if len(result) == 0 {
		return nil
	}
	return result
}
