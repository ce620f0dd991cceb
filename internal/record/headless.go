// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const tcp = hubv1alpha1.Protocol(corev1.ProtocolTCP)

// WithHostnames returns a copy of a record of a headless service with the hostnames of its available endpoints (G9).
func WithHostnames(record *hubv1alpha1.PublishedService, hostnames clusterset.Hostnames, leftOut int) *hubv1alpha1.PublishedService {
	result := *record
	result.Spec.Headless = encodeHeadless(record.Spec.Ports, hostnames, int32(leftOut))
	return &result
}

// encodeHeadless returns hostnames in their order, and their ports in sorted groups, so that the result does not depend on the order of
// the endpoints; nil if they are not published.
func encodeHeadless(ports []hubv1alpha1.PublishedPort, hostnames clusterset.Hostnames, leftOut int32) *hubv1alpha1.PublishedHeadless {
	if hostnames == nil {
		return nil
	}
	groups := map[string]map[int32]int32{}
	for _, targets := range hostnames {
		groups[clusterset.FormatListen(targets)] = targets
	}
	keys := slices.Sorted(maps.Keys(groups))
	result := &hubv1alpha1.PublishedHeadless{LeftOut: leftOut}
	for _, key := range keys {
		var group hubv1alpha1.PublishedPortGroup
		for _, port := range ports {
			target := int32(0)
			if port.Protocol == tcp {
				target = groups[key][port.Port]
			}
			group.TargetPorts = append(group.TargetPorts, target)
		}
		result.PortGroups = append(result.PortGroups, group)
	}
	for _, hostname := range slices.SortedFunc(maps.Keys(hostnames), clusterset.CompareHostnames) {
		group, _ := slices.BinarySearch(keys, clusterset.FormatListen(hostnames[hostname]))
		result.Hostnames = append(result.Hostnames, hubv1alpha1.PublishedHostname{Hostname: hostname, PortGroup: int32(group)})
	}
	return result
}

// decodeHostnames returns the hostnames of a record that checkHeadless has checked; nil if it has none. It leaves out hostnames without a
// TCP port. Hostnames share their ports.
func decodeHostnames(spec hubv1alpha1.PublishedServiceSpec) clusterset.Hostnames {
	if spec.Headless == nil {
		return nil
	}
	groups := make([]map[int32]int32, len(spec.Headless.PortGroups))
	for i, group := range spec.Headless.PortGroups {
		groups[i] = map[int32]int32{}
		for j, port := range spec.Ports {
			if target := group.TargetPorts[j]; target != 0 && port.Protocol == tcp {
				groups[i][port.Port] = target
			}
		}
	}
	result := clusterset.Hostnames{}
	for _, hostname := range spec.Headless.Hostnames {
		if group := groups[hostname.PortGroup]; len(group) > 0 {
			result[hostname.Hostname] = group
		}
	}
	return result
}

// checkHeadless returns an error if the hostnames of a record are not such as a publisher writes.
func checkHeadless(spec hubv1alpha1.PublishedServiceSpec) error {
	headless := spec.Headless
	switch {
	case headless == nil:
		return nil
	case spec.Type != mcsv1beta1.Headless:
		return errors.New("it has hostnames, which only a headless service has")
	case len(headless.Hostnames) > clusterset.MaxHostnames:
		return fmt.Errorf("it has %d hostnames, more than %d", len(headless.Hostnames), clusterset.MaxHostnames)
	case len(headless.PortGroups) > hubv1alpha1.MaxPortGroups:
		return fmt.Errorf("it has %d port groups, more than %d", len(headless.PortGroups), hubv1alpha1.MaxPortGroups)
	case headless.LeftOut < 0:
		return fmt.Errorf("%d hostnames that are left out are less than none", headless.LeftOut)
	}
	for _, group := range headless.PortGroups {
		if err := checkPortGroup(spec.Ports, group); err != nil {
			return err
		}
	}
	names := map[string]bool{}
	for _, hostname := range headless.Hostnames {
		name, group := hostname.Hostname, hostname.PortGroup
		switch {
		case name != "" && len(validation.IsDNS1123Label(name)) > 0:
			return fmt.Errorf("hostname %.100q is no DNS label", name)
		case names[name]:
			return fmt.Errorf("hostname %q is there twice", name)
		case group < 0 || int(group) >= len(headless.PortGroups):
			return fmt.Errorf("hostname %q has port group %d, and there are %d", name, group, len(headless.PortGroups))
		}
		names[name] = true
	}
	return nil
}

func checkPortGroup(ports []hubv1alpha1.PublishedPort, group hubv1alpha1.PublishedPortGroup) error {
	if n := len(group.TargetPorts); n != len(ports) || n == 0 {
		return fmt.Errorf("a port group has %d target ports for %d ports", n, len(ports))
	}
	for _, target := range group.TargetPorts {
		if target != 0 && len(validation.IsValidPortNum(int(target))) > 0 {
			return fmt.Errorf("%d is no port number", target)
		}
	}
	return nil
}
