// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ageAllowance is how much older than its record on the hub an export of an untrusted member can be (spec R8).
const ageAllowance = 10 * time.Minute

// policy is what the hub's administrator says of a member, as the importer applies it.
type policy struct {
	id          clusterset.ClusterID
	fence       clusterset.Fence
	namespaces  []hubv1alpha1.NamespaceName // nil: all but the reserved
	claimedAges hubv1alpha1.ClaimedAges
}

// newPolicy returns the policy that a Member states. denied are ranges that no member may announce here.
func newPolicy(member *hubv1alpha1.Member, denied clusterset.Fence) (policy, error) {
	id, ok := clusterset.ClusterIDOfHubNamespace(member.Namespace)
	if !ok || member.Spec.ClusterID != string(id) {
		return policy{}, fmt.Errorf("member %s: cluster ID %q does not belong to its namespace", member.Namespace, member.Spec.ClusterID)
	}
	allowed, err := clusterset.ParsePrefixes(slices.Concat(
		convert[string](member.Spec.PodCIDRs), convert[string](member.Spec.NodeCIDRs)))
	if err != nil {
		return policy{}, fmt.Errorf("member %s: %w", member.Namespace, err)
	}
	return policy{
		id:          id,
		fence:       clusterset.Fence{Allowed: allowed, Denied: denied.Denied},
		namespaces:  member.Spec.Namespaces,
		claimedAges: member.Spec.ClaimedAges,
	}, nil
}

// EffectiveAge returns the creation time by which an export is compared with others: the claimed one, but never more
// than 10 minutes before the hub first saw the export, unless the member's claims are trusted (spec R8).
func EffectiveAge(claimed, recorded time.Time, ages hubv1alpha1.ClaimedAges) time.Time {
	if bound := recorded.Add(-ageAllowance); ages != hubv1alpha1.ClaimedAgesTrusted && claimed.Before(bound) {
		return bound.UTC()
	}
	return claimed.UTC()
}

// Acceptable returns why other members would refuse an export whatever the hub's administrator says of its member, nil
// where they would not. What the administrator says is in Service.Barred.
func Acceptable(export clusterset.Export) error {
	_, err := decodeService(EncodeService(export), policy{id: export.Cluster})
	return err
}

// decodeService returns the export that a member's record stands for, or why the record is refused as a whole.
func decodeService(record *hubv1alpha1.PublishedService, p policy) (clusterset.Export, error) {
	spec := record.Spec
	key, err := decodeKey(record.Name, spec.Namespace, spec.Service, p)
	if err != nil {
		return clusterset.Export{}, err
	}
	ports, err := decodePorts(spec.Ports)
	if err != nil {
		return clusterset.Export{}, err
	}
	if err := cmp.Or(checkType(spec), checkMetadata(spec)); err != nil {
		return clusterset.Export{}, err
	}
	export := clusterset.Export{
		Cluster:               p.id,
		Key:                   key,
		Age:                   EffectiveAge(spec.ExportedAt.Time, record.CreationTimestamp.Time, p.claimedAges),
		Type:                  spec.Type,
		Ports:                 ports,
		IPFamilies:            convert[corev1.IPFamily](spec.IPFamilies),
		InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicy(spec.InternalTrafficPolicy),
		TrafficDistribution:   string(spec.TrafficDistribution),
		Labels:                convertValues[string](spec.Labels),
		Annotations:           convertValues[string](spec.Annotations),
	}
	if export.Selection, err = decodeSelection(spec.Selection, ports); err != nil {
		return clusterset.Export{}, err
	}
	if spec.Type == mcsv1beta1.ClusterSetIP {
		export.Affinity = clusterset.Affinity{Mode: spec.SessionAffinity, TimeoutSeconds: spec.SessionAffinityTimeoutSeconds}
	}
	return export, nil
}

// decodeKey returns the service that a record claims. Its name, or that of the service record beside it, must say the
// same, so that nobody claims a service twice, and the member must be allowed to publish it.
func decodeKey(name string, namespace hubv1alpha1.NamespaceName, service hubv1alpha1.ServiceName, p policy) (clusterset.ServiceKey, error) {
	key := clusterset.ServiceKey{Namespace: string(namespace), Name: string(service)}
	switch {
	case namespace == "" && service == "": // as a spec is that could not be decoded
		return key, errors.New("it cannot be read: it has no form that this version knows")
	case name != serviceRecordName(key):
		return key, fmt.Errorf("its name does not say that it is service %s", key)
	case len(validation.IsDNS1123Label(key.Namespace)) > 0 || len(validation.IsDNS1123Label(key.Name)) > 0:
		return key, fmt.Errorf("%q is no legal namespace and service name", key)
	}
	if err := clusterset.CheckReserved(key); err != nil {
		return key, err
	}
	if !p.admits(namespace) {
		return key, fmt.Errorf("the member may not publish services of namespace %s", key.Namespace)
	}
	return key, nil
}

// admits reports whether a member may publish services of a namespace.
func (p policy) admits(namespace hubv1alpha1.NamespaceName) bool {
	return p.namespaces == nil || slices.Contains(p.namespaces, namespace)
}

// The parts of a record's name: `<namespace>.<service>`, with `.<slice>` behind it for endpoints. None contains dots.
const (
	partsOfService   = 2
	partsOfEndpoints = 3
)

// keyOfRecord returns the service that a record's name of so many parts stands for.
func keyOfRecord(name string, parts int) (clusterset.ServiceKey, bool) {
	split := strings.Split(name, ".")
	if len(split) != parts {
		return clusterset.ServiceKey{}, false
	}
	return clusterset.ServiceKey{Namespace: split[0], Name: split[1]}, true
}

// decodeSelection returns how an exported Service finds its pods; nil where the record does not say it.
func decodeSelection(source *hubv1alpha1.PublishedSelection, ports []clusterset.Port) (*clusterset.Selection, error) {
	if source == nil {
		return nil, nil
	}
	if len(source.TargetPorts) != len(ports) {
		return nil, fmt.Errorf("it has %d target ports for %d ports", len(source.TargetPorts), len(ports))
	}
	if err := checkSelector(source.Labels); err != nil {
		return nil, err
	}
	result := &clusterset.Selection{Labels: convertValues[string](source.Labels), TargetPorts: map[clusterset.PortID]intstr.IntOrString{}}
	for i, port := range ports {
		target := intstr.Parse(string(source.TargetPorts[i]))
		if err := checkTargetPort(target); err != nil {
			return nil, err
		}
		result.TargetPorts[port.ID()] = target
	}
	return result, nil
}

func decodePorts(sources []hubv1alpha1.PublishedPort) ([]clusterset.Port, error) {
	if len(sources) > hubv1alpha1.MaxServicePorts {
		return nil, fmt.Errorf("it has %d ports, more than %d", len(sources), hubv1alpha1.MaxServicePorts)
	}
	var result []clusterset.Port
	names := map[string]bool{}
	ids := map[clusterset.PortID]bool{}
	for _, source := range sources {
		port := clusterset.Port{
			Name: source.Name, Protocol: corev1.Protocol(source.Protocol), Port: source.Port, AppProtocol: source.AppProtocol,
		}
		if err := checkPort(source.Name, source.Protocol, source.Port, source.AppProtocol); err != nil {
			return nil, err
		}
		if names[port.Name] || ids[port.ID()] {
			return nil, fmt.Errorf("port %s is there twice", port)
		}
		names[port.Name], ids[port.ID()] = true, true
		result = append(result, port)
	}
	return result, nil
}

// decodeEndpoints returns the slice that a member's record stands for, without the endpoints that it may not announce,
// and an error for each of those; or no slice and the reason where the record is refused as a whole.
func decodeEndpoints(record *hubv1alpha1.PublishedEndpoints, p policy) (*clusterset.Slice, []error) {
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
	case len(spec.Groups) > hubv1alpha1.MaxGroups:
		return nil, []error{fmt.Errorf("it has %d groups, more than %d", len(spec.Groups), hubv1alpha1.MaxGroups)}
	}
	slice := &clusterset.Slice{Cluster: p.id, ID: id, AddressType: discoveryv1.AddressType(spec.AddressType)}
	if spec.TriggerTime != nil {
		slice.Trigger = spec.TriggerTime.UTC()
	}
	var err error
	if slice.Ports, err = decodeEndpointPorts(spec.Ports); err != nil {
		return nil, []error{err}
	}
	var refused []error
	count := 0
	for _, group := range spec.Groups {
		if count += len(group.Addresses); count > hubv1alpha1.MaxEndpoints {
			return nil, []error{fmt.Errorf("it has more than %d addresses", hubv1alpha1.MaxEndpoints)}
		}
		endpoints, errs := decodeGroup(group, slice.AddressType, p.fence)
		slice.Endpoints = append(slice.Endpoints, endpoints...)
		refused = append(refused, errs...)
	}
	return slice, refused
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
		if number == 0 { // left open by the source
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

// decodeGroup returns the endpoints of a group that pass the fence, and why the others do not.
func decodeGroup(group hubv1alpha1.EndpointGroup, family discoveryv1.AddressType, fence clusterset.Fence) ([]clusterset.Endpoint, []error) {
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
		if err := checkEndpoint(endpoint, family, fence); err != nil {
			refused = append(refused, err)
			continue
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints, refused
}
