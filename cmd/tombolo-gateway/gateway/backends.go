// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/forward"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// backends finds the endpoints of exported services in the gateway's cache.
type backends struct {
	cache client.Reader
	// trusted reports whether the gateways of a cluster may connect now.
	trusted func(clusterset.ClusterID) bool
}

// Endpoints returns the available endpoints for a stream, or why it is refused: the service must be exported, not headless, and have
// the TCP port (G3).
func (b backends) Endpoints(cluster clusterset.ClusterID, open wire.Open) (forward.Endpoints, *wire.Refusal) {
	if !b.trusted(cluster) { // since the handshake
		return forward.Endpoints{}, &wire.Refusal{Code: wire.CodeDenied, Text: fmt.Sprintf("cluster %s is no member, is suspended, or publishes no gateway", cluster)}
	}
	ctx, key := context.Background(), client.ObjectKey{Namespace: open.Namespace, Name: open.Service}
	var export mcsv1beta1.ServiceExport
	var service corev1.Service
	var slices discoveryv1.EndpointSliceList
	if err := b.cache.Get(ctx, key, &export, client.UnsafeDisableDeepCopy); err != nil {
		return forward.Endpoints{}, missing(key, err)
	}
	if !meta.IsStatusConditionTrue(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady)) {
		return forward.Endpoints{}, notExported(key, "the ServiceExport is not Ready")
	}
	if err := b.cache.Get(ctx, key, &service, client.UnsafeDisableDeepCopy); err != nil {
		return forward.Endpoints{}, missing(key, err)
	}
	port, refusal := portOf(&service, open)
	if refusal != nil {
		return forward.Endpoints{}, refusal
	}
	if err := b.cache.List(ctx, &slices, client.InNamespace(open.Namespace), client.MatchingFields{caches.IndexSource: open.Service}, client.UnsafeDisableDeepCopy); err != nil {
		return forward.Endpoints{}, &wire.Refusal{Code: wire.CodeInternal, Text: err.Error()}
	}
	return forward.Endpoints{
		Addresses: available(slices.Items, discoveryv1.AddressType(service.Spec.IPFamilies[0]), port),
		Affinity:  service.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
	}, nil
}

func missing(key client.ObjectKey, err error) *wire.Refusal {
	if client.IgnoreNotFound(err) != nil {
		return &wire.Refusal{Code: wire.CodeInternal, Text: err.Error()}
	}
	return notExported(key, "there is no such Service with a ServiceExport")
}

func notExported(key client.ObjectKey, reason string) *wire.Refusal {
	return &wire.Refusal{Code: wire.CodeNotExported, Text: fmt.Sprintf("service %s: %s", key, reason)}
}

// portOf returns the name of the Service port that a stream leads to.
func portOf(service *corev1.Service, open wire.Open) (string, *wire.Refusal) {
	key := client.ObjectKeyFromObject(service)
	if service.Spec.ClusterIP == corev1.ClusterIPNone || open.Hostname != "" {
		return "", notExported(key, "gateways do not support headless services")
	}
	for _, port := range service.Spec.Ports {
		if port.Port == int32(open.Port) && port.Protocol == corev1.ProtocolTCP && len(service.Spec.IPFamilies) > 0 {
			return port.Name, nil
		}
	}
	return "", notExported(key, fmt.Sprintf("it has no TCP port %d", open.Port))
}

// available returns the addresses of the available endpoints of a port in one IP family: those that are ready, or those that serve while
// they terminate if none is ready, as kube-proxy decides.
func available(slices []discoveryv1.EndpointSlice, family discoveryv1.AddressType, port string) []netip.AddrPort {
	var ready, terminating []netip.AddrPort
	for i := range slices {
		number := numberOf(&slices[i], port)
		if slices[i].AddressType != family || number == 0 {
			continue
		}
		for _, endpoint := range slices[i].Endpoints {
			if len(endpoint.Addresses) == 0 {
				continue
			}
			address, err := netip.ParseAddr(endpoint.Addresses[0])
			conditions := endpoint.Conditions
			switch {
			case err != nil:
			case ptr.Deref(conditions.Ready, true):
				ready = append(ready, netip.AddrPortFrom(address, number))
			case ptr.Deref(conditions.Serving, false) && ptr.Deref(conditions.Terminating, false):
				terminating = append(terminating, netip.AddrPortFrom(address, number))
			}
		}
	}
	if len(ready) == 0 {
		return terminating
	}
	return ready
}

// numberOf returns the number of a TCP port in a slice; 0 if the slice does not have it.
func numberOf(slice *discoveryv1.EndpointSlice, name string) uint16 {
	for _, port := range slice.Ports {
		if ptr.Deref(port.Name, "") == name && ptr.Deref(port.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP {
			return uint16(ptr.Deref(port.Port, 0))
		}
	}
	return 0
}
