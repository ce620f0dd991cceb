// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/export"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// addressTexts returns the addresses of a service in a cluster of which nothing is known.
func addressTexts(service *corev1.Service, port clusterset.Port, hostname string, all []discoveryv1.EndpointSlice) string {
	addresses, _ := addressesIn(service, port, hostname, all, export.BackendRules{At: func(netip.Addr, clusterset.EndpointPort) export.Occupants { return export.Occupants{} }})
	return fmt.Sprint(addresses)
}

// The availability that importers know is that of all families: endpoints of the second one are used if the first has none.
//
// spec: G3
func TestAddressesOfFamilies(t *testing.T) {
	t.Parallel()
	slice := func(family discoveryv1.AddressType, address string, ready bool) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{
			AddressType: family, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready, Terminating: new(false)},
			}},
		}
	}
	port := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	for _, test := range []struct {
		ready4, ready6 bool
		families       []corev1.IPFamily
		want           string
	}{
		{true, true, []corev1.IPFamily{"IPv4", "IPv6"}, "[10.1.0.1:8080]"},
		{true, true, []corev1.IPFamily{"IPv6", "IPv4"}, "[[fd00::1]:8080]"},
		{false, true, []corev1.IPFamily{"IPv4", "IPv6"}, "[[fd00::1]:8080]"},
		{false, true, []corev1.IPFamily{"IPv4"}, "[]"},
		{false, false, []corev1.IPFamily{"IPv4", "IPv6"}, "[]"},
	} {
		all := []discoveryv1.EndpointSlice{slice("IPv4", "10.1.0.1", test.ready4), slice("IPv6", "fd00::1", test.ready6)}
		service := &corev1.Service{Spec: corev1.ServiceSpec{IPFamilies: test.families}}
		what := fmt.Sprintf("families %v, ready %t and %t", test.families, test.ready4, test.ready6)
		check.Equal(t, what, test.want, addressTexts(service, port, "", all))
	}
}

// A stream leads only to endpoints with exactly its hostname, or to those without one.
// spec: G9
func TestAddressesOfHostname(t *testing.T) {
	t.Parallel()
	endpoint := func(hostname, address string) discoveryv1.Endpoint {
		e := discoveryv1.Endpoint{Addresses: []string{address}}
		if hostname != "" {
			e.Hostname = &hostname
		}
		return e
	}
	all := []discoveryv1.EndpointSlice{{
		AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
		Endpoints: []discoveryv1.Endpoint{endpoint("db-0", "10.1.0.1"), endpoint("db-1", "10.1.0.2"), endpoint("", "10.1.0.3"), endpoint("", "10.1.0.4")},
	}}
	port := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	headless := corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, IPFamilies: []corev1.IPFamily{"IPv4"}}
	for hostname, want := range map[string]string{
		"db-0": "[10.1.0.1:8080]", "db-1": "[10.1.0.2:8080]", "db": "[]", "db-2": "[]", "": "[10.1.0.3:8080 10.1.0.4:8080]",
	} {
		check.Equal(t, fmt.Sprintf("hostname %q", hostname), want, addressTexts(&corev1.Service{Spec: headless}, port, hostname, all))
	}
}

// An export that was published serves on while a change is on its way to the hub, the hub refuses it, or is not reached.
//
// spec: G3
func TestIsExported(t *testing.T) {
	t.Parallel()
	condition := func(kind, status, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason}
	}
	valid := condition("Valid", "True", "Valid")
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       bool
	}{
		"no status":           {nil, false},
		"exported":            {[]metav1.Condition{valid, condition("Ready", "True", "Exported")}, true},
		"a change is pending": {[]metav1.Condition{valid, condition("Ready", "False", "Pending")}, true},
		"no hub":              {[]metav1.Condition{valid, condition("Ready", "Unknown", "Pending")}, true},
		"the hub refuses it":  {[]metav1.Condition{valid, condition("Ready", "False", "Failed")}, true},
		"it is not allowed":   {[]metav1.Condition{valid, condition("Ready", "False", "NotAllowed")}, false},
		"not valid":           {[]metav1.Condition{condition("Valid", "False", "NoService"), condition("Ready", "False", "Pending")}, false},
	} {
		export := &mcsv1beta1.ServiceExport{Status: mcsv1beta1.ServiceExportStatus{Conditions: test.conditions}}
		check.Equal(t, name, test.want, isExported(export))
	}
}

// Grants may be deleted before the exports of a namespace that is being deleted. So a gateway denies its services.
//
// spec: A2
func TestTerminatingNamespace(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	check.Must(t, errors.Join(clientgoscheme.AddToScheme(scheme), policyv1alpha1.AddToScheme(scheme)))
	now := metav1.Now()
	compacted, err := compactNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going", DeletionTimestamp: &now, Labels: map[string]string{"a": "b"}}})
	check.Must(t, err)
	going := compacted.(*corev1.Namespace)
	before := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going", Labels: going.Labels}}
	check.Equal(t, "the deletion of a namespace is no change", false, sameNamespace(going, before))
	going.Finalizers = []string{"kubernetes"} // the fake client keeps no other
	objects, err := caches.AccessObjects(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		going, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}).Build())
	if err != nil || len(objects.Namespaces) != 1 {
		t.Errorf("%v, %v, want only shop", objects.Namespaces, err)
	}
}
