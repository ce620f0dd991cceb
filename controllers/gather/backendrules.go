// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// apiServers is the Service of a cluster's API servers.
var apiServers = clusterset.ServiceKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// AllowedEndpoints returns the slices of the local export without the endpoints to which no export may lead, as gateways decide too, and what is
// left out (W5). It knows the pods in the host network, but no others.
func (r Reader) AllowedEndpoints(ctx context.Context, of sources.Sources, own []clusterset.Slice) ([]clusterset.Slice, export.LeftOut, error) {
	serving, err := r.apiServers(ctx)
	if err != nil {
		return nil, export.LeftOut{}, err
	}
	gateways := sets.New[string]()
	if of.Gateways != nil {
		gateways = addressesOf(of.Gateways.Slices)
	}
	hostPods, failed := map[netip.Addr][]export.Pod{}, error(nil)
	rules := export.BackendRules{Namespace: of.Key.Namespace, Ranges: of.Hub.OwnRanges, At: func(ip netip.Addr, port clusterset.EndpointPort) export.Occupants {
		pods, known := hostPods[ip]
		if !known && failed == nil && r.HostPods != nil {
			var found []corev1.Pod
			found, failed = r.HostPods(ctx, ip)
			pods = caches.ExportPods(found)
			hostPods[ip] = pods
		}
		return export.Occupants{Gateway: gateways.Has(ip.String()), APIServer: serving.Has(netip.AddrPortFrom(ip, uint16(port.Port))), Pods: pods}
	}}
	result, leftOut := rules.Apply(own)
	if failed != nil {
		return nil, export.LeftOut{}, fmt.Errorf("read the pods in the host network: %w", failed)
	}
	return result, leftOut, nil
}

// apiServers returns where the API servers of this cluster listen.
func (r Reader) apiServers(ctx context.Context) (sets.Set[netip.AddrPort], error) {
	from := r.Member
	if r.Unrestricted != nil {
		from = r.Unrestricted
	}
	list := &discoveryv1.EndpointSliceList{}
	if err := from.List(ctx, list, client.InNamespace(apiServers.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: apiServers.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list EndpointSlices of Service %s: %w", apiServers, err)
	}
	return listenersOf(export.Slices("", caches.Pointers(list.Items))), nil
}

// addressesOf returns the addresses of all endpoints of slices, in canonical form.
func addressesOf(all []clusterset.Slice) sets.Set[string] {
	result := sets.New[string]()
	for _, slice := range all {
		for _, endpoint := range slice.Endpoints {
			for _, address := range endpoint.Addresses {
				if ip, err := netip.ParseAddr(address); err == nil {
					result.Insert(ip.Unmap().String())
				}
			}
		}
	}
	return result
}

// listenersOf returns where the endpoints of slices listen.
func listenersOf(all []clusterset.Slice) sets.Set[netip.AddrPort] {
	result := sets.New[netip.AddrPort]()
	for _, slice := range all {
		for address := range addressesOf([]clusterset.Slice{slice}) {
			for _, port := range slice.Ports {
				result.Insert(netip.AddrPortFrom(netip.MustParseAddr(address), uint16(port.Port)))
			}
		}
	}
	return result
}

// IsRestricted reports whether an EndpointSlice has addresses to which no export may lead: those of this cluster's gateways and API servers.
func (r Reader) IsRestricted(slice *discoveryv1.EndpointSlice) bool {
	service, ok := caches.SourceService(slice)
	return ok && (service == r.GatewayService() || service == apiServers)
}

// ExportKeysAt returns the exported services with an endpoint that has an address which one of two versions of a slice has, and the other has
// not.
func (r Reader) ExportKeysAt(ctx context.Context, before, after *discoveryv1.EndpointSlice) ([]clusterset.ServiceKey, error) {
	b, a := addressesOf(export.Slices("", []*discoveryv1.EndpointSlice{before})), addressesOf(export.Slices("", []*discoveryv1.EndpointSlice{after}))
	changed := b.SymmetricDifference(a)
	if changed.Len() == 0 {
		return nil, nil
	}
	exported, err := r.ExportKeys(ctx)
	if err != nil {
		return nil, err
	}
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list EndpointSlices: %w", err)
	}
	isExported, result := sets.New(exported...), sets.New[clusterset.ServiceKey]()
	for i := range list.Items {
		service, ok := caches.SourceService(&list.Items[i])
		if ok && isExported.Has(service) && addressesOf(export.Slices("", []*discoveryv1.EndpointSlice{&list.Items[i]})).HasAny(changed.UnsortedList()...) {
			result.Insert(service)
		}
	}
	return result.UnsortedList(), nil
}
