// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/gateway/balance"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// backends finds the endpoints of exported services in the gateway's cache.
type backends struct {
	cache client.Reader
	// rulesFor returns the backend rules for the exports of a namespace that a cluster uses (W5).
	rulesFor func(ctx context.Context, cluster clusterset.ClusterID, namespace string) export.BackendRules
	exports  *exports
}

// Endpoints returns the available endpoints for a stream, or why it is refused: the service must be exported and have the TCP port (G3).
// If it is headless, they are those with exactly the hostname of the stream, or those without one (G9).
func (b backends) Endpoints(cluster clusterset.ClusterID, open wire.Open) (balance.Endpoints, *wire.Refusal) {
	ctx, key := context.Background(), client.ObjectKey{Namespace: open.Namespace, Name: open.Service}
	if refusal := b.exports.refusal(ctx, key); refusal != nil {
		return balance.Endpoints{}, refusal
	}
	var service corev1.Service
	var all discoveryv1.EndpointSliceList
	if err := b.cache.Get(ctx, key, &service, client.UnsafeDisableDeepCopy); err != nil {
		return balance.Endpoints{}, missing(key, err)
	}
	port, refusal := portOf(&service, open)
	if refusal != nil {
		return balance.Endpoints{}, refusal
	}
	if err := b.cache.List(ctx, &all, client.InNamespace(open.Namespace), client.MatchingFields{caches.IndexSource: open.Service}, client.UnsafeDisableDeepCopy); err != nil {
		return balance.Endpoints{}, errNotRead
	}
	rules := b.rulesFor(ctx, cluster, open.Namespace)
	addresses, leftOut := addressesIn(&service, port, open.Hostname, all.Items, rules)
	if len(addresses) == 0 && leftOut > 0 {
		return balance.Endpoints{}, &wire.Refusal{
			Code: wire.CodeNoEndpoint, Text: fmt.Sprintf("service %s: an export leads to pods of its cluster only, and its endpoints are none: see the condition Ready of its ServiceExport", key),
		}
	}
	return balance.Endpoints{
		Addresses: addresses, Permit: func(address netip.AddrPort) error { return rules.Check(address.Addr().String(), listeningAt(address)) },
		Affinity: service.Spec.SessionAffinity == corev1.ServiceAffinityClientIP, HasProxyHeader: b.exports.hasProxyHeader(ctx, key, port),
	}, nil
}

func listeningAt(address netip.AddrPort) clusterset.EndpointPort {
	return clusterset.EndpointPort{Protocol: corev1.ProtocolTCP, Port: int32(address.Port())}
}

// addressesIn returns where the available endpoints of a port listen, in the first IP family in which there are any, and how many are left
// out. hostname is that of the endpoints if the Service is headless. If the rules allow one endpoint of a family, the result also has those
// that they do not allow: to check each would cost too much for each stream.
func addressesIn(
	service *corev1.Service, port clusterset.Port, hostname string, all []discoveryv1.EndpointSlice, rules export.BackendRules,
) (result []netip.AddrPort, leftOut int) {
	passes := func(address netip.AddrPort) bool {
		return rules.Check(address.Addr().String(), listeningAt(address)) == nil
	}
	for _, family := range service.Spec.IPFamilies {
		var sources []*discoveryv1.EndpointSlice
		for i := range all {
			if all[i].AddressType == discoveryv1.AddressType(family) {
				sources = append(sources, &all[i])
			}
		}
		own := export.Slices("", sources)
		if isHeadless(service) {
			own = export.OfHostname(hostname, own)
		}
		addresses := export.AvailableAddresses(port, own)
		if slices.ContainsFunc(addresses, passes) {
			return addresses, 0
		}
		if leftOut += len(addresses); len(addresses) > 0 { // endpoints that terminate may pass
			own, _ = rules.Apply(own)
			if addresses = export.AvailableAddresses(port, own); len(addresses) > 0 {
				return addresses, 0
			}
		}
	}
	return nil, leftOut
}

// errNotRead is sent to the other cluster, so it has no details.
var errNotRead = &wire.Refusal{Code: wire.CodeInternal, Text: "the gateway cannot read its cache"}

func missing(key client.ObjectKey, err error) *wire.Refusal {
	if client.IgnoreNotFound(err) != nil {
		return errNotRead
	}
	return notExported(key, "there is no such Service with a ServiceExport")
}

func notExported(key client.ObjectKey, reason string) *wire.Refusal {
	return &wire.Refusal{Code: wire.CodeNotExported, Text: fmt.Sprintf("service %s: %s", key, reason)}
}

func isHeadless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

// portOf returns the Service port that a stream leads to.
func portOf(service *corev1.Service, open wire.Open) (clusterset.Port, *wire.Refusal) {
	key := client.ObjectKeyFromObject(service)
	if open.Hostname != "" && !isHeadless(service) {
		return clusterset.Port{}, notExported(key, "it is not headless, so it has no hostnames")
	}
	for _, port := range service.Spec.Ports {
		// A Service of type ExternalName has no IP family.
		if port.Port == int32(open.Port) && port.Protocol == corev1.ProtocolTCP && len(service.Spec.IPFamilies) > 0 {
			return clusterset.Port{Name: port.Name, Protocol: port.Protocol, Port: port.Port}, nil
		}
	}
	return clusterset.Port{}, notExported(key, fmt.Sprintf("it has no TCP port %d", open.Port))
}
