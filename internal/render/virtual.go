// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// VirtualService returns the Service of a virtual IP: without a selector, with the ports on which the endpoints of the hostname listen
// (G9). existing are the IP families that it has; families are those that Services of this cluster have. Every field that the API server
// would default is set.
func VirtualService(ip clusterset.VirtualIP, ports []corev1.ServicePort, families, existing []corev1.IPFamily) *corev1.Service {
	families = keepingOrder(families, existing)
	policy := corev1.IPFamilyPolicySingleStack
	if len(families) > 1 {
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ip.Service.Namespace, Name: ip.Name(), Labels: virtualLabels(ip, clusterset.LabelManagedBy)},
		Spec: corev1.ServiceSpec{
			Type:                  corev1.ServiceTypeClusterIP,
			Ports:                 ports,
			IPFamilies:            families,
			IPFamilyPolicy:        &policy,
			SessionAffinity:       corev1.ServiceAffinityNone,
			InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		},
	}
}

// VirtualPorts returns the ports of the Service of a virtual IP, with the names of the exported Service's ports. Of ports for which the
// endpoints listen on the same one, it has the first.
func VirtualPorts(export clusterset.Export, hostname string) []corev1.ServicePort {
	var result []corev1.ServicePort
	seen := map[int32]bool{0: true}
	for _, port := range export.Ports {
		target := export.Hostnames[hostname][port.Port]
		if port.Protocol != corev1.ProtocolTCP || seen[target] {
			continue
		}
		seen[target] = true
		result = append(result, corev1.ServicePort{
			Name: port.Name, Protocol: port.Protocol, AppProtocol: optional(port.AppProtocol), Port: target, TargetPort: intstr.FromInt32(target),
		})
	}
	return result
}

// VirtualEndpoints returns the EndpointSlices of a virtual IP. The endpoints of sources are gateways, or there are none.
func VirtualEndpoints(ip clusterset.VirtualIP, sources []clusterset.Slice) []*discoveryv1.EndpointSlice {
	var result []*discoveryv1.EndpointSlice
	for _, source := range sources {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:   ip.Service.Namespace,
				Name:        ip.Name() + "-" + strings.ToLower(string(source.AddressType)),
				Labels:      virtualLabels(ip, discoveryv1.LabelManagedBy),
				Annotations: map[string]string{clusterset.AnnotationGatewayPorts: clusterset.FormatListen(source.Listen)},
			},
			AddressType: source.AddressType,
			Ports:       []discoveryv1.EndpointPort{},
			Endpoints:   Endpoints(source.Endpoints),
		}
		slice.Labels[discoveryv1.LabelServiceName], slice.Labels[clusterset.LabelGateway] = ip.Name(), "true"
		for _, port := range source.Ports {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{
				Name: new(port.Name), Protocol: new(port.Protocol), Port: number(port.Port), AppProtocol: optional(port.AppProtocol),
			})
		}
		result = append(result, slice)
	}
	return result
}

// virtualLabels returns the labels that identify a virtual IP. They are not those of imports: a DNS server must not take the gateways for
// endpoints of the import.
func virtualLabels(ip clusterset.VirtualIP, managedBy string) map[string]string {
	return map[string]string{
		managedBy: clusterset.ManagedBy, clusterset.LabelVirtualIPOf: ip.Service.Name,
		mcsv1beta1.LabelSourceCluster: string(ip.Cluster), clusterset.LabelHostname: ip.Hostname,
	}
}
