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
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/export"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/forward"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// backends finds the endpoints of exported services in the gateway's cache.
type backends struct {
	cache client.Reader
	// trusted reports whether the gateways of a cluster may connect now.
	trusted func(clusterset.ClusterID) bool
}

// Endpoints returns the available endpoints for a stream, or why it is refused: the service must be exported and have the TCP port (G3).
// If it is headless, they are those with exactly the hostname of the stream, or those without one (G9).
func (b backends) Endpoints(cluster clusterset.ClusterID, open wire.Open) (forward.Endpoints, *wire.Refusal) {
	if !b.trusted(cluster) { // since the handshake
		return forward.Endpoints{}, &wire.Refusal{Code: wire.CodeDenied, Text: fmt.Sprintf("cluster %s is no member, is suspended, or publishes no gateway", cluster)}
	}
	ctx, key := context.Background(), client.ObjectKey{Namespace: open.Namespace, Name: open.Service}
	var exported mcsv1beta1.ServiceExport
	var service corev1.Service
	var slices discoveryv1.EndpointSliceList
	if err := b.cache.Get(ctx, key, &exported, client.UnsafeDisableDeepCopy); err != nil {
		return forward.Endpoints{}, missing(key, err)
	}
	if !isExported(&exported) {
		return forward.Endpoints{}, notExported(key, "the ServiceExport is not valid, or the hub's administrator does not allow it")
	}
	if err := b.cache.Get(ctx, key, &service, client.UnsafeDisableDeepCopy); err != nil {
		return forward.Endpoints{}, missing(key, err)
	}
	port, refusal := portOf(&service, open)
	if refusal != nil {
		return forward.Endpoints{}, refusal
	}
	if err := b.cache.List(ctx, &slices, client.InNamespace(open.Namespace), client.MatchingFields{caches.IndexSource: open.Service}, client.UnsafeDisableDeepCopy); err != nil {
		return forward.Endpoints{}, errNotRead
	}
	return forward.Endpoints{
		Addresses: addressesIn(&service, port, open.Hostname, slices.Items),
		Affinity:  service.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
	}, nil
}

// isExported reports whether an export is valid, and the hub's administrator allows it. It also is while a change is on its way to the hub,
// the hub refuses the change, or is not reached: other clusters import what the hub stores. For example, the hub refuses addresses of a
// member that has moved to another network until its policies have read the Member.
func isExported(export *mcsv1beta1.ServiceExport) bool {
	ready := meta.FindStatusCondition(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady))
	return ready != nil && ready.Reason != string(conditions.ReasonNotAllowed) &&
		meta.IsStatusConditionTrue(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionValid))
}

// addressesIn returns where the available endpoints of a port listen, in the first IP family in which there are any. hostname is that of the
// endpoints if the Service is headless.
func addressesIn(service *corev1.Service, port clusterset.Port, hostname string, all []discoveryv1.EndpointSlice) []netip.AddrPort {
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
		if addresses := export.AvailableAddresses(port, own); len(addresses) > 0 {
			return addresses
		}
	}
	return nil
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
