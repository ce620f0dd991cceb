// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// Service returns a Service with these ports, and with both IP families if its cluster has them.
func Service(k Key, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name},
		Spec:       corev1.ServiceSpec{IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack), Ports: ports},
	}
}

// Headless returns a headless Service of both IP families with these ports.
func Headless(k Key, ports ...corev1.ServicePort) *corev1.Service {
	service := Service(k, ports...)
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	return service
}

// Port returns a TCP port whose target port is its number plus 8000.
func Port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: number, TargetPort: intstr.FromInt32(number + 8000)}
}

// Export returns a ServiceExport.
func Export(k Key) *mcsv1beta1.ServiceExport {
	return &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}}
}

// Slice returns an EndpointSlice as the EndpointSlice controller would write it for the Service's ports and ready pods of
// these addresses, all of one family, on node-1 in zone-1.
func Slice(service *corev1.Service, suffix string, addresses ...string) *discoveryv1.EndpointSlice {
	result := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name + "-" + suffix,
			Labels: map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, p := range service.Spec.Ports {
		result.Ports = append(result.Ports, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol), Port: new(p.TargetPort.IntVal)})
	}
	for _, address := range addresses {
		if strings.Contains(address, ":") {
			result.AddressType = discoveryv1.AddressTypeIPv6
		}
		result.Endpoints = append(result.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{address},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			NodeName:   new("node-1"),
			Zone:       new("zone-1"),
		})
	}
	return result
}

// ExportService creates a Service, its slices and its ServiceExport.
func (m *Member) ExportService(t testing.TB, service *corev1.Service, slices ...*discoveryv1.EndpointSlice) {
	t.Helper()
	lab.Must(t, m.create(t.Context(), service, slices...))
}

// ExportWeb exports a Service with the port http:80 and endpoints of these addresses. It returns both; without addresses,
// there is no slice.
func (m *Member) ExportWeb(t testing.TB, k Key, addresses ...string) (*corev1.Service, *discoveryv1.EndpointSlice) {
	t.Helper()
	service := Service(k, Port("http", 80))
	if len(addresses) == 0 {
		m.ExportService(t, service)
		return service, nil
	}
	slice := Slice(service, "v4", addresses...)
	m.ExportService(t, service, slice)
	return service, slice
}

// ExportOne is ExportWeb with one endpoint, for use in several goroutines.
func (m *Member) ExportOne(ctx context.Context, k Key) error {
	service := Service(k, Port("http", 80))
	return m.create(ctx, service, Slice(service, "v4", "10.1.0.1"))
}

// Grant returns a ServiceExportGrant of an export to some clients. It has the name of the export.
func Grant(k Key, to policyv1alpha1.Peer) *policyv1alpha1.ServiceExportGrant {
	return &policyv1alpha1.ServiceExportGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name},
		Spec: policyv1alpha1.ServiceExportGrantSpec{
			Exports: []policyv1alpha1.ObjectName{policyv1alpha1.ObjectName(k.Name)}, To: []policyv1alpha1.Peer{to},
		},
	}
}

// DenyImports returns a policy that denies imports from some clusters.
func DenyImports(name string, from policyv1alpha1.Peer) *policyv1alpha1.ClusterServiceAccessPolicy {
	return &policyv1alpha1.ClusterServiceAccessPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1alpha1.ClusterServiceAccessPolicySpec{
			Tier: policyv1alpha1.TierAdmin, Direction: policyv1alpha1.DirectionImport, Action: policyv1alpha1.ActionDeny,
			Peers: []policyv1alpha1.Peer{from},
		},
	}
}

func (m *Member) create(ctx context.Context, service *corev1.Service, slices ...*discoveryv1.EndpointSlice) error {
	if err := m.Create(ctx, service); err != nil {
		return err
	}
	for _, s := range slices {
		if err := m.Create(ctx, s); err != nil {
			return err
		}
	}
	return m.Create(ctx, Export(client.ObjectKeyFromObject(service)))
}
