// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// hostnames returns the IPv4 addresses of the endpoints of an import by their hostnames.
func (e *env) hostnames(ctx context.Context, id string, k world.Key) (map[string]string, error) {
	mirrored, err := e.Members[id].Mirrored(ctx, k)
	result := map[string]string{}
	for _, slice := range mirrored {
		for _, endpoint := range slice.Endpoints {
			if slice.AddressType != discoveryv1.AddressTypeIPv4 {
				continue
			}
			name := ""
			if endpoint.Hostname != nil {
				name = *endpoint.Hostname
			}
			result[name] = endpoint.Addresses[0]
		}
	}
	return result, err
}

// virtualSlices returns the IPv4 slices of the virtual IPs of an import by hostname.
func (e *env) virtualSlices(ctx context.Context, id string, k world.Key) (map[string]*discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := e.Members[id].List(ctx, list, client.InNamespace(k.Namespace), client.MatchingLabels{clusterset.LabelVirtualIPOf: k.Name})
	result := map[string]*discoveryv1.EndpointSlice{}
	for i := range list.Items {
		if list.Items[i].AddressType == discoveryv1.AddressTypeIPv4 {
			result[list.Items[i].Labels[clusterset.LabelHostname]] = &list.Items[i]
		}
	}
	return result, err
}

// answersEach waits until each hostname has a virtual IP that leads to the backend with its name, and returns the virtual IPs.
func (e *env) answersEach(t *testing.T, id string, k world.Key, want ...string) (addresses map[string]string) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) (err error) {
		if addresses, err = e.hostnames(ctx, id, k); err != nil {
			return err
		}
		if got := slices.Sorted(maps.Keys(addresses)); !slices.Equal(got, want) {
			return fmt.Errorf("hostnames %q, want %q", got, want)
		}
		leads, err := e.virtualSlices(ctx, id, k)
		if err != nil {
			return err
		}
		for hostname, address := range addresses {
			slice, service := leads[hostname], &corev1.Service{}
			if slice == nil || len(slice.Endpoints) == 0 || len(slice.Ports) == 0 {
				return fmt.Errorf("the virtual IP of %q leads nowhere: %+v", hostname, slice)
			}
			name := slice.Labels[discoveryv1.LabelServiceName]
			if err := e.Members[id].Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: name}, service); err != nil {
				return err
			}
			if service.Spec.ClusterIP != address || address == e.host {
				return fmt.Errorf("the address of %q is %s, want %s of Service %s", hostname, address, service.Spec.ClusterIP, name)
			}
			got, err := ask(net.JoinHostPort(slice.Endpoints[0].Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port))))
			if err != nil || got != "pod "+hostname+": hello" {
				return fmt.Errorf("%q answers %q, %w", hostname, got, err)
			}
		}
		return nil
	})
	return addresses
}

// testHeadless: each hostname of a headless service has an address of its own in the other network, which it keeps.
// spec: G9
func testHeadless(t *testing.T, e *env, namespace string) {
	k := world.Key{Namespace: namespace, Name: "db"}
	a, b := e.Members["a"], e.Members["b"]
	service := world.Headless(k, corev1.ServicePort{Name: "client", Protocol: corev1.ProtocolTCP, Port: 2379, TargetPort: intstr.FromString("client")})
	var all []*discoveryv1.EndpointSlice
	for i, hostname := range []string{"db-0", "db-1", ""} { // each on another port of this machine
		slice := world.Slice(service, "v4-"+strconv.Itoa(i), e.host)
		slice.Ports[0].Port = new(int32(e.backend(t, "b", namespace, "pod "+hostname)))
		if hostname != "" {
			slice.Endpoints[0].Hostname = &hostname
		}
		all = append(all, slice)
	}
	b.ExportService(t, service, all...)
	first := e.answersEach(t, "a", k, "", "db-0", "db-1")
	listens, err := e.virtualSlices(t.Context(), "a", k)
	lab.Must(t, err)
	virtual := world.List(t, a, &corev1.ServiceList{},
		client.MatchingLabels{clusterset.LabelVirtualIPOf: k.Name, clusterset.LabelHostname: "db-1"})
	if got := virtual.Items[0].Spec.Ports[0]; len(virtual.Items) != 1 || got.Name != "client" || got.Port != *all[1].Ports[0].Port {
		t.Errorf("virtual IP of db-1: %+v, want port %d", virtual.Items, *all[1].Ports[0].Port)
	}
	t.Run("a hostname returns with its address", func(t *testing.T) {
		lab.Must(t, b.Delete(t.Context(), all[1]))
		e.answersEach(t, "a", k, "", "db-0")
		all[1].ResourceVersion = ""
		lab.Must(t, b.Create(t.Context(), all[1]))
		if diff := cmp.Diff(first, e.answersEach(t, "a", k, "", "db-0", "db-1")); diff != "" {
			t.Errorf("addresses (-before +after):\n%s", diff)
		}
		again, err := e.virtualSlices(t.Context(), "a", k)
		lab.Must(t, err)
		if before, after := listens["db-1"].Annotations, again["db-1"].Annotations; !maps.Equal(before, after) {
			t.Errorf("listening ports %v, before %v", after, before)
		}
	})
	t.Run("the hub is down", func(t *testing.T) {
		lab.Must(t, e.Hub.APIServer.Stop(t.Context()))
		if diff := cmp.Diff(first, e.answersEach(t, "a", k, "", "db-0", "db-1")); diff != "" {
			t.Errorf("addresses (-before +after):\n%s", diff)
		}
		lab.Must(t, e.Hub.APIServer.Start(t.Context()))
	})
	e.traced(t, k, "a", trace.OK, "through gateways: 1 of 1 reach those of b at "+e.host)
	lab.Must(t, b.Delete(t.Context(), world.Export(k)))
	a.Gone(t, k)
	world.Eventually(t, func(ctx context.Context) error {
		services := &corev1.ServiceList{}
		err := a.List(ctx, services, client.InNamespace(namespace), client.HasLabels{clusterset.LabelVirtualIPOf})
		endpoints, listErr := e.virtualSlices(ctx, "a", k)
		if left := len(services.Items) + len(endpoints); left > 0 {
			err = fmt.Errorf("%d Services and %d slices of virtual IPs are left", len(services.Items), len(endpoints))
		}
		return errors.Join(err, listErr)
	})
}

// rollingPods is the number of pods whose rolling update testRolling counts (docs/performance.md).
const rollingPods = 50

// testRolling: while the pods of a headless service roll one after the other, a change of a hostname is at most one write on the hub, and
// one write of each slice that lists it or leads to it.
// spec: G9
func testRolling(t *testing.T, e *env, namespace string) {
	k := world.Key{Namespace: namespace, Name: "ring"}
	a, b := e.Members["a"], e.Members["b"]
	service := world.Headless(k, corev1.ServicePort{Name: "client", Protocol: corev1.ProtocolTCP, Port: 2379, TargetPort: intstr.FromInt(2379)})
	slice := world.Slice(service, "v4", slices.Repeat([]string{e.host}, rollingPods)...)
	for i := range slice.Endpoints {
		slice.Endpoints[i].Hostname = new(fmt.Sprint("ring-", i))
	}
	e.backendPod(t, "b", namespace, 2379)
	b.ExportService(t, service, slice)
	has := func(want int) {
		t.Helper()
		world.Eventually(t, func(ctx context.Context) error {
			got, err := e.hostnames(ctx, "a", k)
			if err == nil && len(got) != want {
				err = fmt.Errorf("%d hostnames, want %d", len(got), want)
			}
			return err
		})
	}
	has(rollingPods)
	writes := func() (hub, mirrored, virtual int64) {
		t.Helper()
		record := world.Read(t, e.HubClient, world.Key{Namespace: "member-b", Name: namespace + ".ring"}, &hubv1alpha1.PublishedService{})
		all := world.List(t, a, &discoveryv1.EndpointSliceList{}, client.InNamespace(namespace),
			client.MatchingLabels{clusterset.LabelGateway: "true"})
		for _, slice := range all.Items {
			if slice.Labels[clusterset.LabelVirtualIPOf] == k.Name {
				virtual += slice.Generation
			} else if slice.Labels[mcsv1beta1.LabelServiceName] == k.Name {
				mirrored += slice.Generation
			}
		}
		return record.Generation, mirrored, virtual
	}
	hub, mirrored, virtual := writes()
	for i := range slice.Endpoints {
		for _, ready := range []bool{false, true} {
			slice.Endpoints[i].Conditions.Ready = &ready
			lab.Must(t, b.Update(t.Context(), slice))
			if ready {
				has(rollingPods)
			} else {
				has(rollingPods - 1)
			}
		}
	}
	afterHub, afterMirrored, afterVirtual := writes()
	t.Logf("%d pods rolled: %d writes on the hub, %d of mirrored slices, %d of slices of virtual IPs", rollingPods, afterHub-hub, afterMirrored-mirrored, afterVirtual-virtual)
	if changes := int64(2 * rollingPods); afterHub-hub > changes || afterMirrored-mirrored > 2*changes || afterVirtual-virtual > 2*changes { // two IP families
		t.Errorf("more writes than changes of hostnames, which are %d", changes)
	}
}
