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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/lab"
)

// TestFamilies: a dual-stack cluster exports to one that has IPv4 only.
//
// spec: C6, I5, D5
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
}
