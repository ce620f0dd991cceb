// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// EncodeService returns the record of an export, in the namespace of its cluster on the hub. The record of an export that is granted to
// some clusters only is inactive, so that agents that do not know grants do not import it (A1).
func EncodeService(export clusterset.Export) *hubv1alpha1.PublishedService {
	return &hubv1alpha1.PublishedService{
		ObjectMeta: metav1.ObjectMeta{Namespace: export.Cluster.HubNamespace(), Name: ServiceName(export.Key)},
		Spec: hubv1alpha1.PublishedServiceSpec{
			Namespace:                     hubv1alpha1.NamespaceName(export.Key.Namespace),
			Service:                       hubv1alpha1.ServiceName(export.Key.Name),
			ExportedAt:                    metav1.NewTime(export.Age),
			Type:                          export.Type,
			Ports:                         encodePorts(export),
			IPFamilies:                    convert[hubv1alpha1.IPFamily](export.IPFamilies),
			SessionAffinity:               export.Affinity.Mode,
			SessionAffinityTimeoutSeconds: export.Affinity.TimeoutSeconds,
			InternalTrafficPolicy:         hubv1alpha1.Setting(export.InternalTrafficPolicy),
			TrafficDistribution:           hubv1alpha1.Setting(export.TrafficDistribution),
			Labels:                        convertValues[hubv1alpha1.LabelValue](export.Labels),
			Annotations:                   convertValues[hubv1alpha1.AnnotationValue](export.Annotations),
			Headless:                      encodeHeadless(encodePorts(export), export.Hostnames, export.HostnamesLeftOut),
			Selection:                     encodeSelection(export),
			Inactive:                      export.GrantedTo != nil,
			GrantedTo:                     encodeGrantedTo(export.GrantedTo),
		},
	}
}

func encodeGrantedTo(clusters []clusterset.ClusterID) *hubv1alpha1.GrantedTo {
	if clusters == nil {
		return nil
	}
	return &hubv1alpha1.GrantedTo{Clusters: append([]hubv1alpha1.GrantedCluster{}, convert[hubv1alpha1.GrantedCluster](clusters)...)}
}

// EncodeEndpoints returns the record of a slice of an exported service on the hub. Endpoints with the same zone and conditions form
// a sorted group, so the record does not depend on the order of the endpoints.
func EncodeEndpoints(key clusterset.ServiceKey, slice clusterset.Slice) *hubv1alpha1.PublishedEndpoints {
	record := &hubv1alpha1.PublishedEndpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: slice.Cluster.HubNamespace(), Name: EndpointsName(key, slice.ID)},
		Spec: hubv1alpha1.PublishedEndpointsSpec{
			Namespace:   hubv1alpha1.NamespaceName(key.Namespace),
			Service:     hubv1alpha1.ServiceName(key.Name),
			AddressType: hubv1alpha1.IPFamily(slice.AddressType),
			Ports:       encodeEndpointPorts(slice.Ports),
		},
	}
	if groups := encodeGroups(slice.Endpoints); slice.Network == "" || slice.Network == hubv1alpha1.DefaultNetwork {
		record.Spec.Groups = groups
	} else {
		record.Spec.InNetwork = &hubv1alpha1.NetworkEndpoints{Network: slice.Network, Groups: groups}
	}
	if !slice.Trigger.IsZero() {
		record.Spec.TriggerTime = new(metav1.NewMicroTime(slice.Trigger))
	}
	return record
}

// ServiceName returns the name of the record of a service.
func ServiceName(key clusterset.ServiceKey) string { return key.Namespace + "." + key.Name }

// EndpointsName returns the name of the record of a slice.
func EndpointsName(key clusterset.ServiceKey, slice string) string {
	return ServiceName(key) + "." + slice
}

func encodePorts(export clusterset.Export) []hubv1alpha1.PublishedPort {
	var result []hubv1alpha1.PublishedPort
	for _, p := range export.Ports {
		port := hubv1alpha1.PublishedPort{
			Name: p.Name, Protocol: hubv1alpha1.Protocol(p.Protocol), Port: p.Port, AppProtocol: p.AppProtocol,
		}
		if count, ok := export.Available[p.ID()]; ok {
			port.Available, port.Terminating = &count, export.Terminating[p.ID()]
		}
		result = append(result, port)
	}
	return result
}

// WithAvailability returns a copy of a record with the availability of its ports. terminating are the ports whose available endpoints
// terminate.
func WithAvailability(record *hubv1alpha1.PublishedService, available clusterset.Availability, terminating map[clusterset.PortID]bool) *hubv1alpha1.PublishedService {
	return withPorts(record, func(port *hubv1alpha1.PublishedPort) {
		id := clusterset.PortID{Protocol: corev1.Protocol(port.Protocol), Port: port.Port}
		port.Available, port.Terminating = new(available[id]), terminating[id]
	})
}

// WithoutAvailability returns a copy of a record without the availability of its ports, and without its hostnames.
func WithoutAvailability(record *hubv1alpha1.PublishedService) *hubv1alpha1.PublishedService {
	result := withPorts(record, func(port *hubv1alpha1.PublishedPort) { port.Available, port.Terminating = nil, false })
	result.Spec.Headless = nil
	return result
}

// withPorts returns a copy of a record with changed ports.
func withPorts(record *hubv1alpha1.PublishedService, change func(*hubv1alpha1.PublishedPort)) *hubv1alpha1.PublishedService {
	result := *record
	result.Spec.Ports = slices.Clone(record.Spec.Ports)
	for i := range result.Spec.Ports {
		change(&result.Spec.Ports[i])
	}
	return &result
}

func encodeSelection(export clusterset.Export) *hubv1alpha1.PublishedSelection {
	if export.Selection == nil {
		return nil
	}
	result := &hubv1alpha1.PublishedSelection{Labels: convertValues[hubv1alpha1.LabelValue](export.Selection.Labels)}
	for _, p := range export.Ports {
		target := export.Selection.TargetPorts[p.ID()]
		result.TargetPorts = append(result.TargetPorts, hubv1alpha1.TargetPort(target.String()))
	}
	return result
}

func encodeEndpointPorts(ports []clusterset.EndpointPort) []hubv1alpha1.PublishedEndpointPort {
	var result []hubv1alpha1.PublishedEndpointPort
	for _, p := range ports {
		result = append(result, hubv1alpha1.PublishedEndpointPort{
			Name: p.Name, Protocol: hubv1alpha1.Protocol(p.Protocol), Port: p.Port, AppProtocol: p.AppProtocol,
		})
	}
	return result
}

// groupKey contains the fields that are the same for all endpoints of a group.
type groupKey struct {
	zone                        string
	ready, serving, terminating clusterset.Condition
	addresses                   int
}

// encodeGroups returns the endpoints in groups. If they have too many zones for one record, the record contains no zones: traffic
// works without topology hints, but not without endpoints.
func encodeGroups(endpoints []clusterset.Endpoint) []hubv1alpha1.EndpointGroup {
	members := grouped(endpoints)
	if len(members) > hubv1alpha1.MaxGroups {
		zoneless := slices.Clone(endpoints)
		for i := range zoneless {
			zoneless[i].Zone = ""
		}
		members = grouped(zoneless)
	}
	keys := slices.SortedFunc(maps.Keys(members), func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(a.zone, b.zone), cmp.Compare(a.ready, b.ready), cmp.Compare(a.serving, b.serving),
			cmp.Compare(a.terminating, b.terminating), cmp.Compare(a.addresses, b.addresses))
	})
	var groups []hubv1alpha1.EndpointGroup
	for _, key := range keys {
		groups = append(groups, encodeGroup(key, members[key]))
	}
	return groups
}

func grouped(endpoints []clusterset.Endpoint) map[groupKey][]clusterset.Endpoint {
	members := map[groupKey][]clusterset.Endpoint{}
	for _, e := range endpoints {
		key := groupKey{e.Zone, e.Ready, e.Serving, e.Terminating, len(e.Addresses)}
		members[key] = append(members[key], e)
	}
	return members
}

func encodeGroup(key groupKey, endpoints []clusterset.Endpoint) hubv1alpha1.EndpointGroup {
	slices.SortStableFunc(endpoints, func(a, b clusterset.Endpoint) int {
		return cmp.Or(slices.Compare(a.Addresses, b.Addresses), cmp.Compare(a.Hostname, b.Hostname))
	})
	group := hubv1alpha1.EndpointGroup{
		Zone:        key.zone,
		Ready:       key.ready.Pointer(),
		Serving:     key.serving.Pointer(),
		Terminating: key.terminating.Pointer(),
	}
	if key.addresses != 1 { // plain strings and a number: an object for each endpoint would make records larger
		group.AddressesPerEndpoint = int32(key.addresses)
	}
	named := slices.ContainsFunc(endpoints, func(e clusterset.Endpoint) bool { return e.Hostname != "" })
	for _, e := range endpoints {
		group.Addresses = append(group.Addresses, convert[hubv1alpha1.IPAddress](e.Addresses)...)
		if named {
			group.Hostnames = append(group.Hostnames, hubv1alpha1.Hostname(e.Hostname))
		}
	}
	return group
}

// convert returns the same strings as another string type; nil for none.
func convert[To, From ~string](from []From) []To {
	var to []To
	for _, value := range from {
		to = append(to, To(value))
	}
	return to
}

func convertValues[To, From ~string](from map[string]From) map[string]To {
	if len(from) == 0 {
		return nil
	}
	to := make(map[string]To, len(from))
	for key, value := range from {
		to[key] = To(value)
	}
	return to
}
