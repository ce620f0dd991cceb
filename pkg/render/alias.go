// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// AliasPorts says which ports of an alias are ports of its import (L1).
type AliasPorts struct {
	// Names are the names of the matched ports in the alias, by their names in the mirrored slices.
	Names map[string]string
	// Matched and Unmatched describe the ports of the alias, in their order.
	Matched, Unmatched []string
}

// MatchAliasPorts matches the ports of an alias with those of its import: by name, or if each has one port, whatever their names. The
// protocols of matched ports are equal.
func MatchAliasPorts(alias *corev1.Service, serviceImport *mcsv1beta1.ServiceImport) AliasPorts {
	result := AliasPorts{Names: map[string]string{}}
	imported := serviceImport.Spec.Ports
	names := aliasedNames(serviceImport)
	single := len(alias.Spec.Ports) == 1 && len(imported) == 1
	for _, port := range alias.Spec.Ports {
		i := slices.IndexFunc(imported, func(p mcsv1beta1.ServicePort) bool {
			return (single || p.Name == port.Name) && cmp.Or(p.Protocol, corev1.ProtocolTCP) == cmp.Or(port.Protocol, corev1.ProtocolTCP)
		})
		text := fmt.Sprintf("%s/%s", cmp.Or(port.Name, unnamed), cmp.Or(port.Protocol, corev1.ProtocolTCP))
		if i < 0 {
			result.Unmatched = append(result.Unmatched, text)
			continue
		}
		result.Names[names[imported[i].Name]] = port.Name
		result.Matched = append(result.Matched, text)
	}
	return result
}

// aliasedNames returns the names of the ports of an import in its mirrored slices, by their names in the import.
func aliasedNames(serviceImport *mcsv1beta1.ServiceImport) map[string]string {
	var ports []clusterset.Port
	for _, port := range serviceImport.Spec.Ports {
		ports = append(ports, clusterset.Port{Name: port.Name})
	}
	return portNames(serviceImport.Spec.Type, ports)
}

// AliasSlices returns the EndpointSlices that an alias has for the mirrored slices of its import, sorted by name, and the clusters whose
// endpoints it cannot use (L1). Their endpoints are those of the mirrored slices, which may be condensed. An alias with the name of its
// import has its own endpoints already, so own, the local cluster, is left out.
func AliasSlices(alias *corev1.Service, serviceImport *mcsv1beta1.ServiceImport, own clusterset.ClusterID, mirrored []*discoveryv1.EndpointSlice) (
	result []*discoveryv1.EndpointSlice, unusable []clusterset.ClusterID,
) {
	names := MatchAliasPorts(alias, serviceImport).Names
	for _, slice := range mirrored {
		source := clusterset.ClusterID(slice.Labels[mcsv1beta1.LabelSourceCluster])
		ports := aliasSlicePorts(slice.Ports, names)
		isOwn := alias.Name == serviceImport.Name && source == own
		hasFamily := slices.Contains(alias.Spec.IPFamilies, corev1.IPFamily(slice.AddressType))
		serves := len(ports) > 0 || len(alias.Spec.Ports) == 0 && !withholdsAll(slice, serviceImport)
		switch {
		case isOwn || !hasFamily || !serves:
			continue
		case !usableByAlias(alias, serviceImport, slice):
			unusable = append(unusable, source)
			continue
		}
		result = append(result, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: alias.Namespace, Name: clusterset.AliasSliceName(alias.Name, slice.Name), Labels: aliasLabels(alias, serviceImport, source),
			},
			AddressType: slice.AddressType,
			Ports:       ports,
			Endpoints:   slice.Endpoints,
		})
	}
	slices.SortFunc(result, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(unusable)
	return result, slices.Compact(unusable)
}

// withholdsAll reports whether a mirrored slice serves no port, although its import has ports.
func withholdsAll(slice *discoveryv1.EndpointSlice, serviceImport *mcsv1beta1.ServiceImport) bool {
	return len(slice.Ports) == 0 && len(serviceImport.Spec.Ports) > 0
}

// usableByAlias reports whether clients of an alias can use the endpoints of a mirrored slice. The addresses of gateways serve listening
// ports, which only kube-proxy reads. Virtual IPs are addresses of Services, to which kube-proxy forwards nothing.
func usableByAlias(alias *corev1.Service, serviceImport *mcsv1beta1.ServiceImport, slice *discoveryv1.EndpointSlice) bool {
	if slice.Labels[clusterset.LabelGateway] == "" {
		return true
	}
	return isHeadless(alias) == (serviceImport.Spec.Type == mcsv1beta1.Headless)
}

func isHeadless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

func aliasLabels(alias *corev1.Service, serviceImport *mcsv1beta1.ServiceImport, source clusterset.ClusterID) map[string]string {
	labels := map[string]string{
		discoveryv1.LabelServiceName:  alias.Name,
		discoveryv1.LabelManagedBy:    clusterset.ManagedBy,
		clusterset.LabelAliasOf:       serviceImport.Name,
		mcsv1beta1.LabelSourceCluster: string(source),
	}
	if isHeadless(alias) {
		labels[corev1.IsHeadlessService] = ""
	}
	return labels
}

// aliasSlicePorts returns the matched ports of a mirrored slice, with their names in the alias.
func aliasSlicePorts(ports []discoveryv1.EndpointPort, names map[string]string) []discoveryv1.EndpointPort {
	result := make([]discoveryv1.EndpointPort, 0, len(ports))
	for _, port := range ports {
		if name, ok := names[ptr.Deref(port.Name, "")]; ok {
			port.Name = &name
			result = append(result, port)
		}
	}
	return result
}
