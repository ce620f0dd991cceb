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
		result.Names[names[imported[i].Name][0]] = port.Name
		result.Matched = append(result.Matched, text)
	}
	return result
}

// aliasedNames returns the names of the ports of an import in its mirrored slices, by their names in the import.
func aliasedNames(serviceImport *mcsv1beta1.ServiceImport) map[string][]string {
	var ports []clusterset.Port
	for _, port := range serviceImport.Spec.Ports {
		ports = append(ports, clusterset.Port{Name: port.Name})
	}
	return portNames(serviceImport.Spec.Type, ports)
}

// AliasEndpoints is what an alias has of the mirrored slices of its import.
type AliasEndpoints struct {
	// Slices are the EndpointSlices to write, sorted by name. Their endpoints are those of the mirrored slices, which may be condensed.
	Slices []*discoveryv1.EndpointSlice
	// Own are the slices of this cluster's endpoints if the alias has the name of its import: the Service has these endpoints already.
	Own []*discoveryv1.EndpointSlice
	// ByGateway and OtherFamily are the clusters whose endpoints the alias cannot use, because they are reached through gateways, or have no
	// addresses in the IP families of the Service. Both are sorted.
	ByGateway, OtherFamily []clusterset.ClusterID
	// Unread are the names of the mirrored slices whose endpoints must be known to compute those of the alias, but are condensed.
	Unread []string
	// WithoutZone says whose ready endpoints have no zone, although the alias prefers the same zone; empty if its trafficDistribution has an
	// effect, or it has none.
	WithoutZone []string
}

// AliasSlices returns what an alias has of the mirrored slices of its import (L1). own is the local cluster, and pods are the EndpointSlices of
// the pods that the alias selects.
func AliasSlices(
	alias *corev1.Service, serviceImport *mcsv1beta1.ServiceImport, own clusterset.ClusterID, mirrored, pods []*discoveryv1.EndpointSlice,
) AliasEndpoints {
	names := MatchAliasPorts(alias, serviceImport).Names
	var result AliasEndpoints
	var otherFamily, usable []clusterset.ClusterID
	for _, slice := range mirrored {
		source := clusterset.ClusterID(slice.Labels[mcsv1beta1.LabelSourceCluster])
		desired := aliasSlice(alias, serviceImport, slice, aliasSlicePorts(slice.Ports, names))
		serves := len(desired.Ports) > 0 || len(alias.Spec.Ports) == 0 && !withholdsAll(slice, serviceImport)
		switch {
		case !serves:
			continue
		case !slices.Contains(alias.Spec.IPFamilies, corev1.IPFamily(slice.AddressType)):
			otherFamily = append(otherFamily, source)
			continue
		case alias.Name == serviceImport.Name && source == own:
			result.Own = append(result.Own, desired)
		case !usableByAlias(alias, serviceImport, slice):
			result.ByGateway = append(result.ByGateway, source)
			continue
		default:
			result.Slices = append(result.Slices, desired)
		}
		usable = append(usable, source)
	}
	slices.SortFunc(result.Slices, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	result.adapt(alias, serviceImport, own, mirrored, pods)
	result.ByGateway = sortedClusters(result.ByGateway)
	isUsable := func(id clusterset.ClusterID) bool { return slices.Contains(usable, id) }
	result.OtherFamily = sortedClusters(slices.DeleteFunc(otherFamily, isUsable))
	return result
}

func sortedClusters(ids []clusterset.ClusterID) []clusterset.ClusterID {
	slices.Sort(ids)
	return slices.Compact(ids)
}

func aliasSlice(
	alias *corev1.Service, serviceImport *mcsv1beta1.ServiceImport, mirrored *discoveryv1.EndpointSlice, ports []discoveryv1.EndpointPort,
) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: alias.Namespace, Name: clusterset.AliasSliceName(alias.Name, mirrored.Name), Labels: aliasLabels(alias, serviceImport, mirrored),
		},
		AddressType: mirrored.AddressType,
		Ports:       ports,
		Endpoints:   mirrored.Endpoints,
	}
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

func aliasLabels(alias *corev1.Service, serviceImport *mcsv1beta1.ServiceImport, mirrored *discoveryv1.EndpointSlice) map[string]string {
	labels := map[string]string{
		discoveryv1.LabelServiceName:  alias.Name,
		discoveryv1.LabelManagedBy:    clusterset.ManagedBy,
		clusterset.LabelAliasOf:       serviceImport.Name,
		mcsv1beta1.LabelSourceCluster: mirrored.Labels[mcsv1beta1.LabelSourceCluster],
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
