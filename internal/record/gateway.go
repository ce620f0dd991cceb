// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// CheckGateway returns the reason why a record of gateways is refused; nil if it is not. denied are the ranges of this cluster's own
// Services, to which a gateway of another cluster must not lead (G4).
func CheckGateway(record *hubv1alpha1.PublishedGateway, member *hubv1alpha1.Member, denied clusterset.AddressRanges) error {
	spec := record.Spec
	switch {
	case record.Name != hubv1alpha1.GatewayName:
		return fmt.Errorf("its name is not %s", hubv1alpha1.GatewayName)
	case len(spec.Addresses) > hubv1alpha1.MaxGatewayAddresses:
		return fmt.Errorf("it has %d addresses, more than %d", len(spec.Addresses), hubv1alpha1.MaxGatewayAddresses)
	case len(spec.Versions) == 0 || len(spec.Versions) > hubv1alpha1.MaxGatewayVersions:
		return fmt.Errorf("it has %d versions, not 1 to %d", len(spec.Versions), hubv1alpha1.MaxGatewayVersions)
	}
	ranges, err := clusterset.ParsePrefixes(convert[string](member.Spec.GatewayCIDRs))
	if err != nil {
		return fmt.Errorf("member %s: %w", member.Namespace, err)
	}
	for _, address := range spec.Addresses {
		if address.Port < 1 || address.Port > 65535 {
			return fmt.Errorf("%d is no port", address.Port)
		}
		if err := checkHost(address.Host, member, clusterset.AddressRanges{Allowed: ranges, Denied: denied.Denied}); err != nil {
			return err
		}
	}
	_, err = identity.DecodeBundle(spec.Bundle)
	return err
}

// checkHost returns the reason why gateways of a member must not have an address or a DNS name; nil if they may.
func checkHost(host string, member *hubv1alpha1.Member, ranges clusterset.AddressRanges) error {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		if !slices.Contains(member.Spec.GatewayNames, hubv1alpha1.DNSName(host)) {
			return fmt.Errorf("%q is not one of the gatewayNames of the Member", host)
		}
		return nil
	}
	if !slices.ContainsFunc(ranges.Allowed, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return fmt.Errorf("%s is not in the gatewayCIDRs of the Member", host)
	}
	if err := ranges.Check(host, discoveryv1.AddressType(clusterset.FamilyOf(ip))); err != nil {
		return fmt.Errorf("the address of a gateway: %w", err)
	}
	return nil
}
