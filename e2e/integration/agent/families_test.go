// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestFamilies: a dual-stack cluster exports to one that has IPv4 only.
//
// spec: C6, I5, D5, E3
func TestFamilies(t *testing.T) {
	t.Parallel()
	single := lab.Member("b")
	single.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	w := newWorld(t, lab.Member("a"), single)
	a, b := w.members["a"], w.members["b"]
	a.start(t)
	b.start(t)
	ns := namespace(t, a, b)

	dual := clusterIPService(key{Namespace: ns, Name: "dual"}, port("http", 80))
	a.exportService(t, dual,
		slice(dual, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"), slice(dual, "v6", discoveryv1.AddressTypeIPv6, "fd00:1::1"))
	serviceImport, _ := b.imported(t, key{Namespace: ns, Name: "dual"})
	if diff := cmp.Diff([]corev1.IPFamily{corev1.IPv4Protocol}, serviceImport.Spec.IPFamilies); diff != "" || len(serviceImport.Spec.IPs) != 1 {
		t.Errorf("addresses %v, families (-want +got):\n%s", serviceImport.Spec.IPs, diff)
	}
	b.endpoints(t, key{Namespace: ns, Name: "dual"}, "a 10.1.0.1:http:8080")

	pets := headlessService(key{Namespace: ns, Name: "pets"}, port("http", 80))
	a.exportService(t, pets,
		slice(pets, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.2"), slice(pets, "v6", discoveryv1.AddressTypeIPv6, "fd00:1::2"))
	serviceImport, _ = b.imported(t, key{Namespace: ns, Name: "pets"})
	if diff := cmp.Diff([]corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, serviceImport.Spec.IPFamilies); diff != "" {
		t.Errorf("families of the headless import (-want +got):\n%s", diff)
	}
	b.endpoints(t, key{Namespace: ns, Name: "pets"}, "a 10.1.0.2:http:8080", "a fd00:1::2:http:8080")

	six := clusterIPService(key{Namespace: ns, Name: "six"}, port("http", 80))
	six.Spec.IPFamilyPolicy, six.Spec.IPFamilies = new(corev1.IPFamilyPolicySingleStack), []corev1.IPFamily{corev1.IPv6Protocol}
	a.exportService(t, six, slice(six, "v6", discoveryv1.AddressTypeIPv6, "fd00:1::3"))
	eventually(t, func(ctx context.Context) error {
		got := &mcsv1beta1.ServiceImport{}
		if err := b.Get(ctx, key{Namespace: ns, Name: "six"}, got); err != nil {
			return err
		}
		c := meta.FindStatusCondition(got.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
		want := "The service is exported with IP families [IPv6], this cluster's Services have [IPv4]. " +
			"Export it from a cluster with a common family, or make either side dual-stack."
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "IPFamilyNotSupported" || c.Message != want || len(got.Spec.IPs) > 0 {
			return fmt.Errorf("condition %+v, addresses %v; want %s", c, got.Spec.IPs, want)
		}
		return nil
	})
	a.imported(t, key{Namespace: ns, Name: "six"})

	// A service that this cluster cannot have any more leaves nothing behind of those who withdrew it.
	mixed := key{Namespace: ns, Name: "mixed"}
	pets = headlessService(mixed, port("http", 80))
	a.exportService(t, pets, slice(pets, "v6", discoveryv1.AddressTypeIPv6, "fd00:1::4"))
	b.endpoints(t, mixed, "a fd00:1::4:http:8080")
	w.enroll(t, "later", hubv1alpha1.ClaimedAgesBounded)
	later := claim("later", mixed, time.Now().Add(time.Minute))
	later.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv6"}
	createRecord(t, w.hubKube, later)
	a.condition(t, mixed, conflict, metav1.ConditionTrue,
		"TypeConflict,LabelsConflict,AnnotationsConflict,TrafficDistributionConflict,IPFamilyConflict")
	lab.Must(t, a.Delete(t.Context(), export(mixed)))
	b.endpoints(t, mixed)
	eventually(t, func(ctx context.Context) error {
		got := &mcsv1beta1.ServiceImport{}
		if err := b.Get(ctx, mixed, got); err != nil {
			return err
		}
		c := meta.FindStatusCondition(got.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
		if got.Spec.Type != mcsv1beta1.ClusterSetIP || c == nil || c.Reason != "IPFamilyNotSupported" {
			return fmt.Errorf("the import is of type %s, condition %+v", got.Spec.Type, c)
		}
		return nil
	})
}
