// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record encodes exports and endpoints as the hub's records, and decodes what members have written. Decoding checks every
// field as strictly as the hub's schema and admission policies, because an importer trusts neither another member nor the hub
// (spec R7, C7).
package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ageAllowance is the maximum time by which an export of an untrusted member can be older than its record on the hub (spec R8).
const ageAllowance = 10 * time.Minute

// Policy contains the limits that the hub's administrator has set for a member. Importers apply it too.
type Policy struct {
	ID clusterset.ClusterID
	// Ranges are the addresses that the member may publish.
	Ranges clusterset.AddressRanges
	// Namespaces are the namespaces from which it may publish; nil means all except the reserved ones.
	Namespaces  []hubv1alpha1.NamespaceName
	ClaimedAges hubv1alpha1.ClaimedAges
	// Network is the network of its pods; empty for the default one.
	Network string
}

// NewPolicy returns the policy of a Member. denied are the ranges from which this cluster imports no address. It returns an error if
// the cluster ID does not match the namespace, or a range cannot be parsed.
func NewPolicy(member *hubv1alpha1.Member, denied clusterset.AddressRanges) (Policy, error) {
	id, ok := clusterset.ClusterIDOfHubNamespace(member.Namespace)
	if !ok || member.Spec.ClusterID != string(id) {
		return Policy{}, fmt.Errorf("member %s: cluster ID %q does not belong to its namespace", member.Namespace, member.Spec.ClusterID)
	}
	allowed, err := clusterset.ParsePrefixes(slices.Concat(
		convert[string](member.Spec.PodCIDRs), convert[string](member.Spec.NodeCIDRs)))
	if err != nil {
		return Policy{}, fmt.Errorf("member %s: %w", member.Namespace, err)
	}
	return Policy{
		ID:          id,
		Ranges:      clusterset.AddressRanges{Allowed: allowed, Denied: denied.Denied},
		Namespaces:  member.Spec.Namespaces,
		ClaimedAges: member.Spec.ClaimedAges,
		Network:     NetworkOf(member),
	}, nil
}

// NetworkOf returns the network of a member; empty for the default one.
func NetworkOf(member *hubv1alpha1.Member) string {
	if member.Spec.Network == hubv1alpha1.DefaultNetwork {
		return ""
	}
	return member.Spec.Network
}

// EffectiveAge returns the creation time of an export that is compared with other exports. This is the claimed time, but at most 10
// minutes before the hub first stored the export, unless the member's claims are trusted (spec R8).
func EffectiveAge(claimed, recorded time.Time, ages hubv1alpha1.ClaimedAges) time.Time {
	if bound := recorded.Add(-ageAllowance); ages != hubv1alpha1.ClaimedAgesTrusted && claimed.Before(bound) {
		return bound.UTC()
	}
	return claimed.UTC()
}

// Check returns the reason why every importer would refuse an export; nil if there is none. It does not apply the policy of the
// member.
func Check(export clusterset.Export) error {
	_, err := DecodeService(EncodeService(export), Policy{ID: export.Cluster})
	return err
}

// IsInactive reports whether a record exports nothing: the export keeps its age only (spec E6).
func IsInactive(record *hubv1alpha1.PublishedService) bool {
	return record.Spec.Inactive && record.Spec.GrantedTo == nil
}

// DecodeService returns the export of a record, or the reason why the record is refused.
func DecodeService(record *hubv1alpha1.PublishedService, p Policy) (clusterset.Export, error) {
	spec := record.Spec
	key, err := decodeKey(record.Name, spec.Namespace, spec.Service, p)
	if err != nil {
		return clusterset.Export{}, err
	}
	ports, err := decodePorts(spec.Ports)
	if err != nil {
		return clusterset.Export{}, err
	}
	if err := cmp.Or(checkType(spec), checkMetadata(spec), checkAvailability(spec.Ports), checkHeadless(spec), checkGrantedTo(spec)); err != nil {
		return clusterset.Export{}, err
	}
	export := clusterset.Export{
		Cluster:               p.ID,
		Key:                   key,
		Age:                   EffectiveAge(spec.ExportedAt.Time, record.CreationTimestamp.Time, p.ClaimedAges),
		Type:                  spec.Type,
		Ports:                 ports,
		Available:             decodeAvailability(spec.Ports),
		Terminating:           decodeTerminating(spec.Ports),
		Hostnames:             decodeHostnames(spec),
		IPFamilies:            convert[corev1.IPFamily](spec.IPFamilies),
		InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicy(spec.InternalTrafficPolicy),
		TrafficDistribution:   string(spec.TrafficDistribution),
		Labels:                convertValues[string](spec.Labels),
		Annotations:           convertValues[string](spec.Annotations),
		GrantedTo:             decodeGrantedTo(spec.GrantedTo),
	}
	if export.Selection, err = decodeSelection(spec.Selection, ports); err != nil {
		return clusterset.Export{}, err
	}
	if spec.Headless != nil {
		export.HostnamesLeftOut = spec.Headless.LeftOut
	}
	if spec.Type == mcsv1beta1.ClusterSetIP {
		export.Affinity = clusterset.Affinity{Mode: spec.SessionAffinity, TimeoutSeconds: spec.SessionAffinityTimeoutSeconds}
	}
	return export, nil
}

// decodeKey returns the service of a record. name is the name of the PublishedService. It must match the service, so that a member
// has only one record of each service.
func decodeKey(name string, namespace hubv1alpha1.NamespaceName, service hubv1alpha1.ServiceName, p Policy) (clusterset.ServiceKey, error) {
	key := clusterset.ServiceKey{Namespace: string(namespace), Name: string(service)}
	switch {
	case namespace == "" && service == "": // the spec could not be decoded
		return key, errors.New("it cannot be read: it has no form that this version knows")
	case name != ServiceName(key):
		return key, fmt.Errorf("its name does not say that it is service %s", key)
	case len(validation.IsDNS1123Label(key.Namespace)) > 0 || len(validation.IsDNS1123Label(key.Name)) > 0:
		return key, fmt.Errorf("%q is no legal namespace and service name", key)
	}
	if err := clusterset.CheckReserved(key); err != nil {
		return key, err
	}
	if !p.Allows(namespace) {
		return key, fmt.Errorf("the member may not publish services of namespace %s", key.Namespace)
	}
	return key, nil
}

// Allows reports whether the member may publish services of a namespace.
func (p Policy) Allows(namespace hubv1alpha1.NamespaceName) bool {
	return p.Namespaces == nil || slices.Contains(p.Namespaces, namespace)
}

// KeyOfService returns the service of a PublishedService by its name, `<namespace>.<service>`, and false if the name has another form.
func KeyOfService(name string) (clusterset.ServiceKey, bool) {
	const parts = 2
	return keyOf(name, parts)
}

// KeyOfEndpoints returns the service of a PublishedEndpoints by its name, `<namespace>.<service>.<slice>`, and false if the name has
// another form.
func KeyOfEndpoints(name string) (clusterset.ServiceKey, bool) {
	const parts = 3
	return keyOf(name, parts)
}

func keyOf(name string, parts int) (clusterset.ServiceKey, bool) {
	split := strings.Split(name, ".")
	if len(split) != parts {
		return clusterset.ServiceKey{}, false
	}
	return clusterset.ServiceKey{Namespace: split[0], Name: split[1]}, true
}

// decodeSelection returns the selector and target ports of an exported Service; nil if the record has none.
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

// decodeGrantedTo returns the clusters to which an export is granted, sorted; nil if it is granted to all.
func decodeGrantedTo(source *hubv1alpha1.GrantedTo) []clusterset.ClusterID {
	if source == nil {
		return nil
	}
	result := append([]clusterset.ClusterID{}, convert[clusterset.ClusterID](source.Clusters)...)
	slices.Sort(result)
	return slices.Compact(result)
}

// decodeAvailability returns the availability of the ports; nil if the record has none.
func decodeAvailability(ports []hubv1alpha1.PublishedPort) clusterset.Availability {
	var result clusterset.Availability
	for _, port := range ports {
		if port.Available == nil {
			continue
		}
		if result == nil {
			result = clusterset.Availability{}
		}
		result[clusterset.PortID{Protocol: corev1.Protocol(port.Protocol), Port: port.Port}] = *port.Available
	}
	return result
}

// decodeTerminating returns the ports whose available endpoints terminate; nil if there are none.
func decodeTerminating(ports []hubv1alpha1.PublishedPort) map[clusterset.PortID]bool {
	var result map[clusterset.PortID]bool
	for _, port := range ports {
		if port.Available == nil || !port.Terminating {
			continue
		}
		if result == nil {
			result = map[clusterset.PortID]bool{}
		}
		result[clusterset.PortID{Protocol: corev1.Protocol(port.Protocol), Port: port.Port}] = true
	}
	return result
}
