// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Service returns the derived Service (spec D1-D3), or nil if the cluster has none of its IP families. Every field that the API
// server would default is set. The Service has no selector, so that only endpoints of exporting clusters receive its traffic
// (spec E1), unless the merged service has a Selection (spec D8).
func Service(m merge.Merged, site Site) *corev1.Service {
	m = withoutLeftOut(m, site)
	families := serviceFamilies(m, site)
	if len(families) == 0 {
		return nil
	}
	policy := corev1.IPFamilyPolicySingleStack
	if len(families) > 1 {
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Key.Namespace,
			Name:      site.DerivedName,
			Labels:    serviceLabels(m),
		},
		Spec: corev1.ServiceSpec{
			Type:                  corev1.ServiceTypeClusterIP,
			Ports:                 servicePorts(m.Ports),
			IPFamilies:            families,
			IPFamilyPolicy:        &policy,
			SessionAffinity:       corev1.ServiceAffinityNone,
			InternalTrafficPolicy: new(internalTrafficPolicy(m)),
			TrafficDistribution:   optional(m.TrafficDistribution),
		},
	}
	if m.Type == mcsv1beta1.Headless {
		service.Spec.ClusterIP = corev1.ClusterIPNone
		service.Spec.ClusterIPs = []string{corev1.ClusterIPNone}
		return service
	}
	selectPods(service, m.Selection)
	service.Spec.SessionAffinity, service.Spec.SessionAffinityConfig = affinity(m.Affinity)
	if n := min(len(site.IPs), len(families)); n > 0 { // the API server allocates the address of a new family
		service.Spec.ClusterIP = site.IPs[0]
		service.Spec.ClusterIPs = slices.Clone(site.IPs[:n])
	}
	return service
}

// selectPods sets the selector and the target ports of a Service.
func selectPods(service *corev1.Service, selection *clusterset.Selection) {
	if selection == nil {
		return
	}
	service.Spec.Selector = maps.Clone(selection.Labels)
	for i, port := range service.Spec.Ports {
		if target, ok := selection.TargetPorts[clusterset.PortID{Protocol: port.Protocol, Port: port.Port}]; ok {
			service.Spec.Ports[i].TargetPort = target
		}
	}
}

// serviceFamilies returns the derived Service's IP families. A headless Service may have families that the cluster does not have
// (spec I5). Virtual IPs need one that it has (G9).
func serviceFamilies(m merge.Merged, site Site) []corev1.IPFamily {
	if m.Type == mcsv1beta1.Headless {
		families := m.IPFamilies
		if site.Gateway && len(intersection(families, site.IPFamilies)) == 0 {
			families = slices.Concat(families, site.IPFamilies)
		}
		return keepingOrder(families, site.ExistingFamilies)
	}
	return Families(m, site)
}

func serviceLabels(m merge.Merged) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, m.Labels)
	labels[mcsv1beta1.LabelServiceName] = m.Key.Name
	labels[clusterset.LabelServiceImported] = "true"
	labels[clusterset.LabelManagedBy] = clusterset.ManagedBy
	return labels
}

func servicePorts(ports []clusterset.Port) []corev1.ServicePort {
	names := servicePortNames(ports)
	var result []corev1.ServicePort
	for _, port := range ports {
		result = append(result, corev1.ServicePort{
			Name:        names[port.Name],
			Protocol:    port.Protocol,
			AppProtocol: optional(port.AppProtocol),
			Port:        port.Port,
			TargetPort:  intstr.FromInt32(port.Port),
		})
	}
	return result
}

// affinity returns the fields of a Service for a session affinity, with the API server's default timeout.
func affinity(a clusterset.Affinity) (corev1.ServiceAffinity, *corev1.SessionAffinityConfig) {
	if a.Mode != corev1.ServiceAffinityClientIP {
		return corev1.ServiceAffinityNone, nil
	}
	timeout := a.TimeoutSeconds
	if timeout == 0 {
		timeout = corev1.DefaultClientIPServiceAffinitySeconds
	}
	return corev1.ServiceAffinityClientIP, &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
}

func internalTrafficPolicy(m merge.Merged) corev1.ServiceInternalTrafficPolicy {
	if m.InternalTrafficPolicy == "" {
		return corev1.ServiceInternalTrafficPolicyCluster
	}
	return m.InternalTrafficPolicy
}

// optional returns a pointer to the value; nil if it is empty.
func optional[T ~string](value T) *T {
	if value == "" {
		return nil
	}
	return &value
}
