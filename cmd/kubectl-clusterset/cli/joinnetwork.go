// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/pflag"

	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// networkOptions are the flags of join for clusters whose pods do not reach each other.
type networkOptions struct {
	network, publish string
	gatewayRanges    []string
	gatewayNames     []string
	gateways         []netip.Prefix // gatewayRanges, parsed

	gatewayOptions
	foundCIDRs []hubv1alpha1.CIDR // those of the gateways' existing Service, if nothing else says which
	foundNames []hubv1alpha1.DNSName
}

func (o *networkOptions) addNetworkFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.network, "network", "", "network of the cluster's pods: pods of one network reach each other directly, pods of other networks through gateways; defaults to the Member's, or "+hubv1alpha1.DefaultNetwork)
	flags.StringVar(&o.publish, "publish", "", "what the cluster publishes of its endpoints: Addresses, or Availability, with which no pod address leaves it and other members need its gateway; defaults to the setting of the Member, or Availability if no other member is in --network")
	flags.StringSliceVar(&o.gatewayRanges, "gateway-cidrs", nil, "ranges of the addresses at which other members reach this cluster's gateways; defaults to --gateway-address, the Member's, or the addresses of the gateways' Service. Without ranges or names, it may publish no gateway")
	flags.StringSliceVar(&o.gatewayNames, "gateway-names", nil, "DNS names at which other members reach this cluster's gateways; defaults to the Member's")
}

func (o *networkOptions) parseNetwork(flags *pflag.FlagSet) (err error) {
	if err := o.parseGateway(flags); err != nil {
		return err
	}
	switch hubv1alpha1.Publish(o.publish) {
	case "", hubv1alpha1.PublishAddresses, hubv1alpha1.PublishAvailability:
	default:
		return fmt.Errorf("--publish=%s: must be %s or %s", o.publish, hubv1alpha1.PublishAddresses, hubv1alpha1.PublishAvailability)
	}
	if o.gateways, err = clusterset.ParsePrefixes(o.gatewayRanges); err != nil {
		return fmt.Errorf("--gateway-cidrs: %w", err)
	}
	return nil
}

// networkOf returns the desired settings of the Member for networks and gateways: from the flags, else as before, else as found in the
// cluster, and Availability for the only member of a network that has a name. others are the networks of the other members.
func (o *networkOptions) networkOf(before *hubv1alpha1.Member, others []string) hubv1alpha1.MemberSpec {
	var known hubv1alpha1.MemberSpec
	if before != nil {
		known = before.Spec
	}
	result := hubv1alpha1.MemberSpec{
		Network: cmp.Or(o.network, known.Network), Publish: cmp.Or(hubv1alpha1.Publish(o.publish), known.Publish),
		GatewayCIDRs: known.GatewayCIDRs, GatewayNames: known.GatewayNames,
	}
	if network := record.NetworkOf(&hubv1alpha1.Member{Spec: result}); result.Publish == "" && network != "" && !slices.Contains(others, network) {
		result.Publish = hubv1alpha1.PublishAvailability
	}
	var cidrs []hubv1alpha1.CIDR
	var names []hubv1alpha1.DNSName
	for _, prefix := range o.gateways {
		cidrs = append(cidrs, hubv1alpha1.CIDR(prefix.String()))
	}
	for _, name := range o.gatewayNames {
		names = append(names, hubv1alpha1.DNSName(name))
	}
	if len(cidrs)+len(names) == 0 {
		cidrs, names = rangesOfHosts(o.hosts)
	}
	if len(cidrs) > 0 {
		result.GatewayCIDRs = cidrs
	}
	if len(names) > 0 {
		result.GatewayNames = names
	}
	if !hasGatewayRanges(result) {
		result.GatewayCIDRs, result.GatewayNames = o.foundCIDRs, o.foundNames
	}
	return result
}
