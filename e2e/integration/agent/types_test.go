// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// A Service that becomes an ExternalName is withdrawn everywhere, and comes back when it is an ordinary one again.
//
// spec: E5, E6, C1, C2
func testExternalNameAndBack(t *testing.T, a, b *member) {
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	service, _ := a.ExportWeb(t, k, "10.1.0.1")
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	ordinary := service.DeepCopy()
	for range 2 {
		service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
		lab.Must(t, a.Update(t.Context(), service))
		c := a.Condition(t, k, valid, metav1.ConditionFalse, "InvalidServiceType")
		want := "Service web is of type ExternalName, which cannot be exported. Use ClusterIP, NodePort, LoadBalancer or a headless Service."
		if c.Message != want {
			t.Errorf("message %q, want %q", c.Message, want)
		}
		a.Condition(t, k, ready, metav1.ConditionFalse, "Pending")
		a.Gone(t, k)
		b.Gone(t, k)
		a.untouched(t, service)

		service.Spec = *ordinary.Spec.DeepCopy()
		service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil
		lab.Must(t, a.Update(t.Context(), service))
		a.Condition(t, k, valid, metav1.ConditionTrue, "Valid")
		a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
		for _, m := range []*member{a, b} {
			if i, _ := m.Imported(t, k); i.Spec.Type != mcsv1beta1.ClusterSetIP || len(i.Spec.IPs) != 2 {
				t.Errorf("%s: type %s, addresses %v", m.ID, i.Spec.Type, i.Spec.IPs)
			}
			m.Endpoints(t, k, "a 10.1.0.1:http:8080")
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
		t.Errorf("%s: the source Service changed (-before +after):\n%s", m.ID, diff)
	}
}

// With the oldest export the type changes: the derived Service is replaced under its name, its addresses go and come, and
// an Event on the import reports it.
//
// spec: R3, R6, I5, I6, D1, D2, D4
func testTypeOfTheOldest(t *testing.T, a, b *member) {
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	inA, inB := world.Service(k, world.Port("http", 80)), world.Headless(k, world.Port("http", 80))
	a.ExportService(t, inA, world.Slice(inA, "v4", "10.1.0.1"))
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	_, first := b.Imported(t, k)
	b.ExportService(t, inB, world.Slice(inB, "v4", "10.2.0.1"))
	both := []string{"a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080"}
	for _, m := range []*member{a, b} {
		m.Condition(t, k, conflict, metav1.ConditionTrue, "TypeConflict")
		m.Endpoints(t, k, both...)
		if _, derived := m.Imported(t, k); derived.Spec.ClusterIP == corev1.ClusterIPNone {
			t.Errorf("%s: a younger export has made the service headless", m.ID)
		}
	}
	if _, derived := b.Imported(t, k); derived.UID != first.UID {
		t.Error("a younger export has replaced the derived Service")
	}

	lab.Must(t, a.Delete(t.Context(), world.Export(k)))
	for _, m := range []*member{a, b} {
		m.becomes(t, k, first.Name, mcsv1beta1.Headless)
		m.Endpoints(t, k, both[1])
		m.Event(t, k, "DerivedServiceReplaced", "")
	}
	lab.Must(t, a.Create(t.Context(), world.Export(k))) // which may be of the same second as b's
	a.Condition(t, k, conflict, metav1.ConditionTrue, "TypeConflict")
	for _, m := range []*member{a, b} {
		m.Endpoints(t, k, both...)
	}
	lab.Must(t, b.Delete(t.Context(), world.Export(k)))
	for _, m := range []*member{a, b} {
		m.becomes(t, k, first.Name, mcsv1beta1.ClusterSetIP)
		m.Endpoints(t, k, both[0])
	}
	a.untouched(t, inA)
	b.untouched(t, inB)
}

// becomes waits until an import, its derived Service of this name and its slices are of a type.
func (m *member) becomes(t *testing.T, k key, derivedName string, want mcsv1beta1.ServiceImportType) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		serviceImport, derived := m.Imported(t, k)
		if serviceImport.Spec.Type != want {
			return fmt.Errorf("%s: import %s is %s, want %s", m.ID, k, serviceImport.Spec.Type, want)
		}
		ips := derived.Spec.ClusterIPs
		if want == mcsv1beta1.Headless {
			if diff := cmp.Diff([]string{corev1.ClusterIPNone}, ips); diff != "" {
				return fmt.Errorf("%s: addresses of the derived Service (-want +got):\n%s", m.ID, diff)
			}
			ips = nil
		} else if len(ips) != 2 {
			return fmt.Errorf("%s: the derived Service has addresses %v", m.ID, ips)
		}
		if diff := cmp.Diff(ips, serviceImport.Spec.IPs); diff != "" {
			return fmt.Errorf("%s: addresses of import %s (-want +got):\n%s", m.ID, k, diff)
		}
		mirrored, err := m.Mirrored(ctx, k)
		if err != nil {
			return err
		}
		for _, s := range mirrored {
			if _, marked := s.Labels[corev1.IsHeadlessService]; marked != (want == mcsv1beta1.Headless) || s.Labels[discoveryv1.LabelServiceName] != derivedName {
				return fmt.Errorf("%s: labels of slice %s are %v", m.ID, s.Name, s.Labels)
			}
		}
		if derived.Name != derivedName {
			return fmt.Errorf("%s: the derived Service is called %s, want %s", m.ID, derived.Name, derivedName)
		}
		return nil
	})
}
