// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	netutils "k8s.io/utils/net"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ServiceImport returns the import without its status (spec I1, I3-I8). ips are the addresses of the existing derived Service; empty
// for a headless service, or if there is no derived Service.
func ServiceImport(m merge.Merged, site Site, ips []string) *mcsv1beta1.ServiceImport {
	m = withoutLeftOut(m, site)
	result := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   m.Key.Namespace,
			Name:        m.Key.Name,
			Labels:      importLabels(m),
			Annotations: importAnnotations(m, site),
		},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type:                  m.Type,
			Ports:                 importPorts(m.Ports),
			IPFamilies:            m.IPFamilies,
			InternalTrafficPolicy: new(internalTrafficPolicy(m)),
			TrafficDistribution:   optional(m.TrafficDistribution),
		},
	}
	if m.Type == mcsv1beta1.Headless {
		return result
	}
	if families := Families(m, site); len(families) > 0 {
		result.Spec.IPFamilies = families
	}
	result.Spec.IPs = oneOfEach(result.Spec.IPFamilies, ips)
	result.Spec.SessionAffinity, result.Spec.SessionAffinityConfig = affinity(m.Affinity)
	return result
}

// oneOfEach returns the first address of each family, in the order of the families (spec I5). The derived Service may have others, for
// example if a mutating webhook makes it dual-stack.
func oneOfEach(families []corev1.IPFamily, ips []string) []string {
	var result []string
	for _, family := range families {
		if i := slices.IndexFunc(ips, func(ip string) bool { return netutils.IsIPv6String(ip) == (family == corev1.IPv6Protocol) }); i >= 0 {
			result = append(result, ips[i])
		}
	}
	return result
}

// ImportStatus returns the status of an import, without its conditions (spec I3).
func ImportStatus(m merge.Merged) mcsv1beta1.ServiceImportStatus {
	status := mcsv1beta1.ServiceImportStatus{EndpointSliceObjects: mcsv1beta1.EndpointSliceObjectsPresent}
	for _, cluster := range m.Clusters {
		status.Clusters = append(status.Clusters, mcsv1beta1.ClusterStatus{Cluster: string(cluster)})
	}
	return status
}

func importLabels(m merge.Merged) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, m.Labels)
	labels[clusterset.LabelManagedBy] = clusterset.ManagedBy
	return labels
}

func importAnnotations(m merge.Merged, site Site) map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, m.Annotations)
	annotations[clusterset.AnnotationDerivedService] = site.DerivedName
	return annotations
}

// importPorts returns the ports of an import. The result is never nil, because the API requires a list (spec I4).
func importPorts(ports []clusterset.Port) []mcsv1beta1.ServicePort {
	result := make([]mcsv1beta1.ServicePort, 0, len(ports))
	for _, port := range ports {
		result = append(result, mcsv1beta1.ServicePort{
			Name:        port.Name,
			Protocol:    port.Protocol,
			AppProtocol: optional(port.AppProtocol),
			Port:        port.Port,
		})
	}
	return result
}
