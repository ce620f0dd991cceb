// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var virtual = clusterset.VirtualIP{Service: clusterset.ServiceKey{Namespace: "shop", Name: "db"}, Cluster: "berlin", Hostname: "db-0"}

// spec: G9
func TestVirtualService(t *testing.T) {
	t.Parallel()
	export := clusterset.Export{
		Ports: []clusterset.Port{
			{Name: "dns", Protocol: "UDP", Port: 53},
			{Name: "client", Protocol: "TCP", Port: 80, AppProtocol: "http"},
			{Name: "same", Protocol: "TCP", Port: 81},
			{Name: "closed", Protocol: "TCP", Port: 82},
		},
		Hostnames: clusterset.Hostnames{"db-0": {80: 8080, 81: 8080}},
	}
	ports := []corev1.ServicePort{{Name: "client", Protocol: "TCP", AppProtocol: new("http"), Port: 8080, TargetPort: intstr.FromInt32(8080)}}
	check.Equal(t, "ports", ports, VirtualPorts(export, "db-0"))
	check.Equal(t, "ports of a hostname that is not available", []corev1.ServicePort(nil), VirtualPorts(export, "db-1"))
	both := []corev1.IPFamily{"IPv4", "IPv6"}
	got := VirtualService(virtual, ports, both, []corev1.IPFamily{"IPv6"})
	wantLabels := map[string]string{
		"app.kubernetes.io/managed-by": "tombolo-mcs.io", "tombolo-mcs.io/virtual-ip-of": "db", "tombolo-mcs.io/hostname": "db-0",
		"multicluster.kubernetes.io/source-cluster": "berlin",
	}
	check.Equal(t, "labels", wantLabels, got.Labels)
	check.Equal(t, "namespace and name", []string{"shop", virtual.Name()}, []string{got.Namespace, got.Name})
	check.Equal(t, "selector", map[string]string(nil), got.Spec.Selector)
	check.Equal(t, "families, of which the existing one stays first", []corev1.IPFamily{"IPv6", "IPv4"}, got.Spec.IPFamilies)
	check.Equal(t, "policy", corev1.IPFamilyPolicyRequireDualStack, *got.Spec.IPFamilyPolicy)
	check.Equal(t, "policy with one family", corev1.IPFamilyPolicySingleStack, *VirtualService(virtual, ports, both[:1], nil).Spec.IPFamilyPolicy)
}

// A DNS server finds the slices of imports by a label that those of virtual IPs do not have.
// spec: G9
func TestVirtualEndpoints(t *testing.T) {
	t.Parallel()
	got := VirtualEndpoints(virtual, []clusterset.Slice{{
		AddressType: "IPv4", Listen: map[int32]int32{80: 10000, 81: 10001}, Ports: []clusterset.EndpointPort{{Name: "client", Protocol: "TCP", Port: 10000}},
		Endpoints: []clusterset.Endpoint{{Addresses: []string{"10.1.0.1"}, Ready: clusterset.True}},
	}})[0]
	want := map[string]string{
		"endpointslice.kubernetes.io/managed-by": "tombolo-mcs.io", "kubernetes.io/service-name": virtual.Name(), "tombolo-mcs.io/gateway": "true",
		"tombolo-mcs.io/virtual-ip-of": "db", "tombolo-mcs.io/hostname": "db-0", "multicluster.kubernetes.io/source-cluster": "berlin",
	}
	check.Equal(t, "labels", want, got.Labels)
	check.Equal(t, "name", virtual.Name()+"-ipv4", got.Name)
	if got.Annotations[clusterset.AnnotationGatewayPorts] != "80=10000,81=10001" || len(got.Ports) != 1 || len(got.Endpoints) != 1 {
		t.Errorf("slice %+v", got)
	}
}

// Imports and virtual IPs need an IP family of the cluster, also if the exporter has none of them.
// spec: G2, G9
func TestFamiliesThroughGateways(t *testing.T) {
	t.Parallel()
	m := merge.Merged{Type: mcsv1beta1.Headless, IPFamilies: []corev1.IPFamily{"IPv6"}}
	for name, test := range map[string]struct {
		site           Site
		want, headless []corev1.IPFamily
	}{
		"direct":             {Site{IPFamilies: []corev1.IPFamily{"IPv4"}}, nil, []corev1.IPFamily{"IPv6"}},
		"gateway":            {Site{IPFamilies: []corev1.IPFamily{"IPv4"}, Gateway: true}, []corev1.IPFamily{"IPv4"}, []corev1.IPFamily{"IPv6", "IPv4"}},
		"gateway, in common": {Site{IPFamilies: []corev1.IPFamily{"IPv4", "IPv6"}, Gateway: true}, []corev1.IPFamily{"IPv6"}, []corev1.IPFamily{"IPv6"}},
	} {
		check.Equal(t, name, test.want, Families(m, test.site))
		check.Equal(t, name+", headless", test.headless, serviceFamilies(m, test.site))
	}
}
