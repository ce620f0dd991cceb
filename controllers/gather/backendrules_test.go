// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func sliceOf(namespace, service, family string, port int32, addresses ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: service + "-" + strings.ToLower(family), Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressType(family), Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: &port}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return slice
}

func readerOf(t *testing.T, objects ...client.Object) gather.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	check.Must(t, errors.Join(clientgoscheme.AddToScheme(scheme), mcsv1beta1.Install(scheme)))
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&discoveryv1.EndpointSlice{}, caches.IndexSource, caches.SourceIndex).Build()
	return gather.Reader{Cluster: "a", Member: c, AgentNamespace: "tombolo-system"}
}

// The agent leaves out what gateways refuse, from what it reads: the gateways and API servers of its cluster, the pods in its host network,
// and its ranges.
//
// spec: W5
func TestAllowedEndpoints(t *testing.T) {
	t.Parallel()
	r := readerOf(t, sliceOf("default", "kubernetes", "IPv4", 6443, "10.1.0.60"))
	r.HostPods = func(_ context.Context, ip netip.Addr) ([]corev1.Pod, error) {
		pod := func(namespace string, port int32) []corev1.Pod {
			return []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: corev1.PodSpec{
				HostNetwork: true, Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{ContainerPort: port, Protocol: corev1.ProtocolTCP}}}},
			}}}
		}
		return map[string][]corev1.Pod{"192.0.2.1": pod("shop", 80), "192.0.2.2": pod("other", 80), "10.1.9.9": pod("kube-system", 10256)}[ip.String()], nil
	}
	pods, err := clusterset.ParsePrefixes([]string{"10.1.0.0/16", "fd00:1::/64"})
	check.Must(t, err)
	services, err := clusterset.ParsePrefixes([]string{"10.1.200.0/24"})
	check.Must(t, err)
	of := sources.Sources{
		Key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}, Hub: sources.Hub{OwnRanges: clusterset.OwnRanges{Pods: pods, Services: services}},
		Gateways: &sources.Gateways{Slices: []clusterset.Slice{
			{Endpoints: []clusterset.Endpoint{{Addresses: []string{"10.1.0.7"}, Ready: clusterset.False}}}, {Endpoints: []clusterset.Endpoint{{Addresses: []string{"fd00:1::7"}}}},
		}},
	}
	for address, want := range map[string]bool{
		"10.1.0.1": true, "192.0.2.1": true, "fd00:1::1": true,
		"10.1.0.7": false, "fd00:1::7": false, "10.1.0.60": false, "10.1.200.1": false, "192.0.2.2": false, "192.0.2.3": false, "10.1.9.9": false, "198.51.100.1": false,
	} {
		port := int32(80)
		if address == "10.1.0.60" {
			port = 6443
		}
		own := []clusterset.Slice{{ID: "1", Ports: []clusterset.EndpointPort{{Protocol: corev1.ProtocolTCP, Port: port}}, Endpoints: []clusterset.Endpoint{{Addresses: []string{address}}}}}
		got, leftOut, err := r.AllowedEndpoints(t.Context(), of, own)
		check.Must(t, err)
		if reasons := len(leftOut.NotPods) + len(leftOut.OutsideRanges); len(got[0].Endpoints) == 1 != want || reasons == 1 == want {
			t.Errorf("%s: %v, left out %v", address, got[0].Endpoints, leftOut)
		}
	}
	r.HostPods = func(context.Context, netip.Addr) ([]corev1.Pod, error) { return nil, errors.New("no answer") }
	_, _, err = r.AllowedEndpoints(t.Context(), of, []clusterset.Slice{{Endpoints: []clusterset.Endpoint{{Addresses: []string{"10.1.0.1"}}}}})
	check.Equal(t, "error", "read the pods in the host network: no answer", check.Message(err))
}

// If a gateway gets an address or loses it, the exports with this address are decided again.
//
// spec: W5
func TestExportKeysAt(t *testing.T) {
	t.Parallel()
	export := func(name string) *mcsv1beta1.ServiceExport {
		return &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	}
	r := readerOf(t, export("loop"), export("web"), sliceOf("shop", "loop", "IPv4", 80, "10.1.0.1", "10.1.0.7"), sliceOf("shop", "web", "IPv4", 80, "10.1.0.2"),
		sliceOf("shop", "private", "IPv4", 80, "10.1.0.7"))
	before, after := sliceOf("tombolo-system", "tombolo-gateway", "IPv4", 8443, "10.1.0.6"), sliceOf("tombolo-system", "tombolo-gateway", "IPv4", 8443, "10.1.0.6", "10.1.0.7")
	check.Equal(t, "slices of gateways", true, r.IsRestricted(after))
	check.Equal(t, "slices of API servers", true, r.IsRestricted(sliceOf("default", "kubernetes", "IPv4", 6443)))
	check.Equal(t, "other slices", false, r.IsRestricted(sliceOf("shop", "tombolo-gateway", "IPv4", 80)))
	loop := []clusterset.ServiceKey{{Namespace: "shop", Name: "loop"}}
	for name, test := range map[string]struct {
		before, after *discoveryv1.EndpointSlice
		want          []clusterset.ServiceKey
	}{
		"a gateway is added":   {before, after, loop},
		"a gateway ends":       {after, before, loop},
		"a slice is created":   {&discoveryv1.EndpointSlice{}, after, loop},
		"another condition":    {after, after, nil},
		"an address elsewhere": {&discoveryv1.EndpointSlice{}, before, []clusterset.ServiceKey{}},
	} {
		got, err := r.ExportKeysAt(t.Context(), test.before, test.after)
		check.Must(t, err)
		check.Equal(t, name, test.want, got)
	}
}
