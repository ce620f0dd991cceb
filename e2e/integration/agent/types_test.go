// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// A Service that becomes an ExternalName is withdrawn everywhere, and comes back when it is an ordinary one again.
//
// spec: E5, E6, C1, C2
func testExternalNameAndBack(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	ordinary := service.DeepCopy()
	for range 2 {
		service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
		lab.Must(t, a.Update(t.Context(), service))
		c := a.condition(t, k, valid, metav1.ConditionFalse, "InvalidServiceType")
		want := "Service web is of type ExternalName, which cannot be exported. Use ClusterIP, NodePort, LoadBalancer or a headless Service."
		if c.Message != want {
			t.Errorf("message %q, want %q", c.Message, want)
		}
		a.condition(t, k, ready, metav1.ConditionFalse, "Pending")
		a.gone(t, k)
		b.gone(t, k)
		a.untouched(t, service)

		service.Spec = *ordinary.Spec.DeepCopy()
		service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil
		lab.Must(t, a.Update(t.Context(), service))
		a.condition(t, k, valid, metav1.ConditionTrue, "Valid")
		a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
		for _, m := range []*member{a, b} {
			if i, _ := m.imported(t, k); i.Spec.Type != mcsv1beta1.ClusterSetIP || len(i.Spec.IPs) != 2 {
				t.Errorf("%s: type %s, addresses %v", m.id, i.Spec.Type, i.Spec.IPs)
			}
			m.endpoints(t, k, "a 10.1.0.1:http:8080")
		}
		a.untouched(t, service)
	}
}

// untouched fails the test if a Service is not as it was last written.
func (m *member) untouched(t *testing.T, want *corev1.Service) {
	t.Helper()
	got := &corev1.Service{}
	lab.Must(t, m.Get(t.Context(), client.ObjectKeyFromObject(want), got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the source Service changed (-before +after):\n%s", m.id, diff)
	}
}

// With the oldest export the type changes: the derived Service is replaced under its name, its addresses go and come, and
// an Event on the import tells it.
//
// spec: R3, R6, I5, I6, D1, D2, D4
func testTypeOfTheOldest(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	inA, inB := clusterIPService(k, port("http", 80)), headlessService(k, port("http", 80))
	a.exportService(t, inA, slice(inA, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	_, first := b.imported(t, k)
	b.exportService(t, inB, slice(inB, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1"))
	both := []string{"a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080"}
	for _, m := range []*member{a, b} {
		m.condition(t, k, conflict, metav1.ConditionTrue, "TypeConflict")
		m.endpoints(t, k, both...)
		if _, derived := m.imported(t, k); derived.Spec.ClusterIP == corev1.ClusterIPNone {
			t.Errorf("%s: a younger export has made the service headless", m.id)
		}
	}
	if _, derived := b.imported(t, k); derived.UID != first.UID {
		t.Error("a younger export has replaced the derived Service")
	}

	lab.Must(t, a.Delete(t.Context(), export(k)))
	for _, m := range []*member{a, b} {
		m.becomes(t, k, first.Name, mcsv1beta1.Headless)
		m.endpoints(t, k, both[1])
		eventually(t, func(ctx context.Context) error { return m.hasEvent(ctx, k, "DerivedServiceReplaced") })
	}
	lab.Must(t, a.Create(t.Context(), export(k))) // which may be of the same second as b's
	a.condition(t, k, conflict, metav1.ConditionTrue, "TypeConflict")
	for _, m := range []*member{a, b} {
		m.endpoints(t, k, both...)
	}
	lab.Must(t, b.Delete(t.Context(), export(k)))
	for _, m := range []*member{a, b} {
		m.becomes(t, k, first.Name, mcsv1beta1.ClusterSetIP)
		m.endpoints(t, k, both[0])
	}
	a.untouched(t, inA)
	b.untouched(t, inB)
}

// becomes waits until an import, its derived Service of this name and its slices are of a type.
func (m *member) becomes(t *testing.T, k key, derivedName string, want mcsv1beta1.ServiceImportType) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		serviceImport, derived := m.imported(t, k)
		if serviceImport.Spec.Type != want {
			return fmt.Errorf("%s: import %s is %s, want %s", m.id, k, serviceImport.Spec.Type, want)
		}
		ips := derived.Spec.ClusterIPs
		if want == mcsv1beta1.Headless {
			if diff := cmp.Diff([]string{corev1.ClusterIPNone}, ips); diff != "" {
				return fmt.Errorf("%s: addresses of the derived Service (-want +got):\n%s", m.id, diff)
			}
			ips = nil
		} else if len(ips) != 2 {
			return fmt.Errorf("%s: the derived Service has addresses %v", m.id, ips)
		}
		if diff := cmp.Diff(ips, serviceImport.Spec.IPs); diff != "" {
			return fmt.Errorf("%s: addresses of import %s (-want +got):\n%s", m.id, k, diff)
		}
		mirrored, err := m.mirrored(ctx, k)
		if err != nil {
			return err
		}
		for _, s := range mirrored {
			if _, marked := s.Labels[corev1.IsHeadlessService]; marked != (want == mcsv1beta1.Headless) || s.Labels[discoveryv1.LabelServiceName] != derivedName {
				return fmt.Errorf("%s: labels of slice %s are %v", m.id, s.Name, s.Labels)
			}
		}
		if derived.Name != derivedName {
			return fmt.Errorf("%s: the derived Service is called %s, want %s", m.id, derived.Name, derivedName)
		}
		return nil
	})
}

// Services with ports on nodes and at load balancers are exported as any other, and nothing of that reaches the importer.
//
// spec: E4, D1, D3
func testNodePortsStay(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	service := clusterIPService(k, port("http", 80))
	service.Spec.Type = corev1.ServiceTypeLoadBalancer
	service.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
	service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	service.Spec.ExternalIPs = []string{"192.0.2.7"}
	service.Annotations = map[string]string{"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1", IPMode: new(corev1.LoadBalancerIPModeVIP)}}
	lab.Must(t, a.Status().Update(t.Context(), service))
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	before, derived := b.imported(t, k)
	want := corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinityNone,
		Ports:     []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: service.Spec.Ports[0].TargetPort}},
		ClusterIP: before.Spec.IPs[0], ClusterIPs: before.Spec.IPs,
		IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
		IPFamilyPolicy:        new(corev1.IPFamilyPolicyRequireDualStack),
		InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
	}
	want.Ports[0].TargetPort.IntVal = 80
	if diff := cmp.Diff(want, derived.Spec); diff != "" {
		t.Errorf("derived Service (-want +got):\n%s", diff)
	}
	a.untouched(t, service)

	versions, importVersion := b.versionsOf(t, k)
	for _, other := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP} {
		service.Spec.Type, service.Spec.LoadBalancerSourceRanges, service.Status = other, nil, corev1.ServiceStatus{}
		if other == corev1.ServiceTypeClusterIP {
			service.Spec.Ports[0].NodePort = 0
			service.Spec.ExternalIPs, service.Spec.ExternalTrafficPolicy = nil, ""
		}
		lab.Must(t, a.Update(t.Context(), service))
		witness := clusterIPService(key{Namespace: k.Namespace, Name: "witness-" + strings.ToLower(string(other))}, port("http", 80))
		a.exportService(t, witness)
		b.imported(t, client.ObjectKeyFromObject(witness)) // what comes later has come
		a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
		a.untouched(t, service)
	}
	if after, importAfter := b.versionsOf(t, k); after != versions || importAfter != importVersion {
		t.Errorf("versions %s and %s became %s and %s without need", versions, importVersion, after, importAfter)
	}
}
