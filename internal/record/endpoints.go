// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// DecodeEndpoints returns the slice of a record without the endpoints that are refused, and an error for each of these; or nil and the
// reason if the whole record is refused.
func DecodeEndpoints(record *hubv1alpha1.PublishedEndpoints, p Policy) (*clusterset.Slice, []error) {
	spec := record.Spec
	at := max(0, strings.LastIndex(record.Name, "."))
	service, id := record.Name[:at], strings.TrimPrefix(record.Name[at:], ".")
	if _, err := decodeKey(service, spec.Namespace, spec.Service, p); err != nil {
		return nil, []error{err}
	}
	switch {
	case !clusterset.IsSliceID(id):
		return nil, []error{fmt.Errorf("its name ends in %q, which is no slice's ID: 10 hexadecimal digits", id)}
	case !isFamily(spec.AddressType):
		return nil, []error{fmt.Errorf("%q is no slice of family IPv4 or IPv6", record.Name)}
	}
	network, groups := endpointsOf(spec)
	switch {
	case spec.InNetwork != nil && (len(spec.Groups) > 0 || network == "" || network == hubv1alpha1.DefaultNetwork):
		return nil, []error{errors.New("endpoints of network default are in groups, and those of any other network only in inNetwork")}
	case network != p.Network && len(groups) > 0:
		return nil, []error{fmt.Errorf("its endpoints are of network %q, and the Member is in network %q: the agent of cluster %s has to publish them again",
			cmp.Or(network, hubv1alpha1.DefaultNetwork), cmp.Or(p.Network, hubv1alpha1.DefaultNetwork), p.ID)}
	case len(groups) > hubv1alpha1.MaxGroups:
		return nil, []error{fmt.Errorf("it has %d groups, more than %d", len(groups), hubv1alpha1.MaxGroups)}
	}
	slice := &clusterset.Slice{Cluster: p.ID, ID: id, Network: network, AddressType: discoveryv1.AddressType(spec.AddressType)}
	if spec.TriggerTime != nil {
		slice.Trigger = spec.TriggerTime.UTC()
	}
	var err error
	if slice.Ports, err = decodeEndpointPorts(spec.Ports); err != nil {
		return nil, []error{err}
	}
	var refused []error
	count := 0
	for _, group := range groups {
		if count += len(group.Addresses); count > hubv1alpha1.MaxEndpoints {
			return nil, []error{fmt.Errorf("it has more than %d addresses", hubv1alpha1.MaxEndpoints)}
		}
		endpoints, errs := decodeGroup(group, slice.AddressType, p.Ranges)
		slice.Endpoints = append(slice.Endpoints, endpoints...)
		refused = append(refused, errs...)
	}
	return slice, refused
}

// endpointsOf returns the network of a record, empty for the default one, and its groups.
func endpointsOf(spec hubv1alpha1.PublishedEndpointsSpec) (network string, groups []hubv1alpha1.EndpointGroup) {
	if spec.InNetwork != nil {
		return spec.InNetwork.Network, spec.InNetwork.Groups
	}
	return "", spec.Groups
}

// CountEndpoints returns the number of endpoints in a record, including those that are refused. An empty group counts as one, because
// it takes time to decode too.
func CountEndpoints(record *hubv1alpha1.PublishedEndpoints) int {
	count := 0
	_, groups := endpointsOf(record.Spec)
	for _, group := range groups {
		count += max(1, len(group.Addresses)/max(1, int(group.AddressesPerEndpoint)))
	}
	return count
}

func decodeEndpointPorts(sources []hubv1alpha1.PublishedEndpointPort) ([]clusterset.EndpointPort, error) {
	if len(sources) > hubv1alpha1.MaxServicePorts {
		return nil, fmt.Errorf("it has %d ports, more than %d", len(sources), hubv1alpha1.MaxServicePorts)
	}
	var result []clusterset.EndpointPort
	names := map[string]bool{}
	for _, source := range sources {
		if names[source.Name] {
			return nil, fmt.Errorf("port name %q is there twice", source.Name)
		}
		names[source.Name] = true
		number := source.Port
		if number == 0 { // the source has no number
			number = 1
		}
		if err := checkPort(source.Name, source.Protocol, number, source.AppProtocol); err != nil {
			return nil, err
		}
		result = append(result, clusterset.EndpointPort{
			Name: source.Name, Protocol: corev1.Protocol(source.Protocol), Port: source.Port, AppProtocol: source.AppProtocol,
		})
	}
	return result, nil
}

// decodeGroup returns the endpoints of a group that are in the ranges, and the reasons why the others are refused.
func decodeGroup(group hubv1alpha1.EndpointGroup, family discoveryv1.AddressType, ranges clusterset.AddressRanges) ([]clusterset.Endpoint, []error) {
	size := max(1, int(group.AddressesPerEndpoint))
	count := len(group.Addresses) / size
	switch {
	case size > maxAddressesPerEndpoint:
		return nil, []error{fmt.Errorf("endpoints of %d addresses each have more than %d", size, maxAddressesPerEndpoint)}
	case count*size != len(group.Addresses):
		return nil, []error{fmt.Errorf("%d addresses do not make endpoints of %d each", len(group.Addresses), size)}
	case len(group.Hostnames) > 0 && len(group.Hostnames) != count:
		return nil, []error{fmt.Errorf("%d hostnames for %d endpoints", len(group.Hostnames), count)}
	case group.Zone != "" && len(validation.IsValidLabelValue(group.Zone)) > 0:
		return nil, []error{fmt.Errorf("%q is no zone", group.Zone)}
	}
	var endpoints []clusterset.Endpoint
	var refused []error
	for i := range count {
		endpoint := clusterset.Endpoint{
			Addresses:   convert[string](group.Addresses[i*size : (i+1)*size]),
			Zone:        group.Zone,
			Ready:       clusterset.ConditionOf(group.Ready),
			Serving:     clusterset.ConditionOf(group.Serving),
			Terminating: clusterset.ConditionOf(group.Terminating),
		}
		if len(group.Hostnames) > 0 {
			endpoint.Hostname = string(group.Hostnames[i])
		}
		if err := checkEndpoint(endpoint, family, ranges); err != nil {
			refused = append(refused, err)
			continue
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints, refused
}
