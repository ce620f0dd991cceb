// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// AddressRanges are the ranges in which the addresses of a cluster must be (decision 1).
type AddressRanges struct {
	// Allowed are the pod and node CIDRs of the cluster. No other address is allowed.
	Allowed []netip.Prefix
	// Denied are ranges that are never allowed, such as the importing cluster's own service CIDRs.
	Denied []netip.Prefix
}

// OwnRanges are the ranges of a cluster: of its pods and nodes, as its Member says, and of its Services. Pods is nil if the Member is not
// known.
type OwnRanges struct{ Pods, Nodes, Services []netip.Prefix }

// Check returns nil if an address is in canonical form, of the given family, a global unicast address, and in the ranges; otherwise
// an error with the reason.
func (r AddressRanges) Check(address string, family discoveryv1.AddressType) error {
	ip, err := ParseUnicast(address)
	switch {
	case err != nil:
		return err
	case FamilyOf(ip) != corev1.IPFamily(family):
		return fmt.Errorf("%s is no %s address", address, family)
	case InAny(r.Denied, ip):
		return fmt.Errorf("%s is in a range of the importing cluster's own", address)
	case !InAny(r.Allowed, ip):
		return fmt.Errorf("%s is outside the cluster's pod and node CIDRs", address)
	}
	return nil
}

// cloudMetadata is an address at which nodes of a cloud get their credentials. Those of IPv4 are link-local.
var cloudMetadata = netip.MustParseAddr("fd00:ec2::254")

// ParseUnicast returns an IP address that a backend can have, or an error if it is not in canonical form, not a global unicast address, or
// that of a metadata service.
func ParseUnicast(address string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return ip, fmt.Errorf("%q is no IP address", address)
	case ip.String() != address || ip.Zone() != "" || ip.Is4In6():
		return ip, fmt.Errorf("%q is not in canonical form", address)
	case !ip.IsGlobalUnicast():
		return ip, fmt.Errorf("%s is loopback, link-local, multicast, broadcast or unspecified", address)
	case ip == cloudMetadata:
		return ip, fmt.Errorf("%s is the address of a metadata service", address)
	}
	return ip, nil
}

// FamilyOf returns the IP family of an address.
func FamilyOf(ip netip.Addr) corev1.IPFamily {
	if ip.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// FamiliesOf returns the IP families of prefixes, in their order, without duplicates.
func FamiliesOf(prefixes []netip.Prefix) []corev1.IPFamily {
	var families []corev1.IPFamily
	seen := map[corev1.IPFamily]bool{}
	for _, prefix := range prefixes {
		if family := FamilyOf(prefix.Addr()); !seen[family] {
			seen[family] = true
			families = append(families, family)
		}
	}
	return families
}

// defaultServiceCIDR is the name of the ServiceCIDR that the API server creates from its flags. Kubernetes allocates addresses of
// its families only.
const defaultServiceCIDR = "kubernetes"

// ServiceRanges returns the ranges of a cluster's Service addresses from its ServiceCIDRs (Kubernetes 1.33): first those of the API
// server's flags, in the order of the cluster's IP families, then those that were added. It returns nothing if the default
// ServiceCIDR does not exist yet, and an error if a range cannot be parsed.
func ServiceRanges(objects []networkingv1.ServiceCIDR) ([]netip.Prefix, error) {
	var first, added []netip.Prefix
	for i := range objects {
		ranges, err := ParsePrefixes(objects[i].Spec.CIDRs)
		switch {
		case err != nil:
			return nil, fmt.Errorf("ServiceCIDR %s: %w", objects[i].Name, err)
		case objects[i].Name == defaultServiceCIDR:
			first = ranges
		default:
			added = append(added, ranges...)
		}
	}
	families := FamiliesOf(first)
	for _, prefix := range added {
		if slices.Contains(families, FamilyOf(prefix.Addr())) {
			first = append(first, prefix)
		}
	}
	return first, nil
}

// ParsePrefixes returns CIDRs as prefixes, or an error for the first invalid one.
func ParsePrefixes(cidrs []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(cidrs))
	for _, cidr := range cidrs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("%q is no CIDR such as 10.0.0.0/16: %w", cidr, err)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

// CIDRs returns prefixes as texts.
func CIDRs(prefixes []netip.Prefix) []string {
	var result []string
	for _, prefix := range prefixes {
		result = append(result, prefix.String())
	}
	return result
}

// InAny reports whether an address is in one of the prefixes.
func InAny(prefixes []netip.Prefix, ip netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}
