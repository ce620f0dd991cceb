// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/ranges"
	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// DefaultClusterSet is the name of a clusterset, if neither a flag nor its ClusterProperty has one.
const DefaultClusterSet = "clusterset"

// trustAgesFlag is kept as on the hub if it is absent, so its default does not apply.
const trustAgesFlag = "trust-claimed-ages"

// Options are the flags of join and invite for the identity of a member, and for its settings on the hub.
type Options struct {
	ClusterID, ClusterSet       string
	hubServer, hubCA            string
	network, Publish            string
	pods, nodes, services       []string
	gatewayRanges, gatewayNames []string
	namespaces                  []string
	properties                  map[string]string
	allowOverlap, trustAges     bool

	Given    ranges.Set              // pods, nodes and services, parsed
	gateways []netip.Prefix          // gatewayRanges, parsed
	ca       []byte                  // content of hubCA, nil if it is not set
	ages     hubv1alpha1.ClaimedAges // empty if trustAges is not given

	// GatewayHosts are the hosts of the gateways that the cluster runs. FoundCIDRs and FoundNames are the addresses of their existing Service,
	// if nothing else says which.
	GatewayHosts []string
	FoundCIDRs   []hubv1alpha1.CIDR
	FoundNames   []hubv1alpha1.DNSName
}

// AddIdentityFlags adds the flags that say who the member is, and how it reaches the hub.
func (o *Options) AddIdentityFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.ClusterID, "cluster-id", "", "the cluster's ID in the clusterset, a DNS label; defaults to its ClusterProperty cluster.clusterset.k8s.io")
	flags.StringVar(&o.ClusterSet, "clusterset", "", "name of the clusterset, for the ClusterProperty clusterset.k8s.io; defaults to its present value, or "+DefaultClusterSet)
	flags.StringVar(&o.hubServer, "hub-server", "", "the hub's URL for the cluster's pods; defaults to the URL of an earlier join, or of the kubeconfig")
	flags.StringVar(&o.hubCA, "hub-ca", "", "file with the certificate authority of that URL; defaults to the authority of an earlier join, or of the kubeconfig")
}

// AddMemberFlags adds the flags for the settings of the Member, which the hub's administrator decides.
func (o *Options) AddMemberFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.network, "network", "", "network of the cluster's pods: pods of one network reach each other directly, pods of other networks through gateways; defaults to the Member's, or "+hubv1alpha1.DefaultNetwork)
	flags.StringVar(&o.Publish, "publish", "", "what the cluster publishes of its endpoints: Addresses, or Availability: no pod address leaves the cluster, and other members need its gateway; defaults to the setting of the Member, or Availability if no other member is in --network")
	flags.StringSliceVar(&o.gatewayRanges, "gateway-cidrs", nil, "ranges of the addresses at which other members reach this cluster's gateways; defaults to --gateway-address, the Member's, or the addresses of the gateways' Service. Without ranges or names, it may publish no gateway")
	flags.StringSliceVar(&o.gatewayNames, "gateway-names", nil, "DNS names at which other members reach this cluster's gateways; defaults to the Member's")
	flags.BoolVar(&o.allowOverlap, "allow-overlap", false, "join even if addresses overlap with another member's: packets may reach the wrong cluster")
	flags.StringSliceVar(&o.pods, "pod-cidrs", nil, "ranges of the cluster's pods; defaults to the Member's, or ranges found in the cluster")
	flags.StringSliceVar(&o.nodes, "node-cidrs", nil, "ranges of the cluster's nodes; defaults to the Member's, or the nodes' addresses")
	flags.StringSliceVar(&o.services, "service-cidrs", nil, "ranges of the cluster's Services; defaults to the Member's, or ranges found in the cluster")
	flags.StringSliceVar(&o.namespaces, "namespaces", nil, "the only namespaces whose services the cluster may publish; defaults to the Member's, or all but reserved namespaces")
	flags.StringToStringVar(&o.properties, "property", nil, "a property of the cluster, such as region=eu, for policies of all members; can be repeated, and region= removes it")
	flags.BoolVar(&o.trustAges, trustAgesFlag, false, "accept the ages that this cluster claims for its exports without limit, to adopt services that are older than the hub; defaults to the setting of the Member, and =false removes it")
}

// ParseNetwork validates the flags for networks and gateways.
func (o *Options) ParseNetwork() (err error) {
	switch hubv1alpha1.Publish(o.Publish) {
	case "", hubv1alpha1.PublishAddresses, hubv1alpha1.PublishAvailability:
	default:
		return fmt.Errorf("--publish=%s: must be %s or %s", o.Publish, hubv1alpha1.PublishAddresses, hubv1alpha1.PublishAvailability)
	}
	if o.gateways, err = clusterset.ParsePrefixes(o.gatewayRanges); err != nil {
		return fmt.Errorf("--gateway-cidrs: %w", err)
	}
	return nil
}

// ParseMember parses the other flags, and reads the file of --hub-ca.
func (o *Options) ParseMember(flags *pflag.FlagSet) (err error) {
	if flags.Changed(trustAgesFlag) {
		o.ages = hubv1alpha1.ClaimedAgesBounded
		if o.trustAges {
			o.ages = hubv1alpha1.ClaimedAgesTrusted
		}
	}
	for _, part := range []struct {
		flag string
		from []string
		into *[]netip.Prefix
	}{
		{"--pod-cidrs", o.pods, &o.Given.Pods},
		{"--node-cidrs", o.nodes, &o.Given.Nodes},
		{"--service-cidrs", o.services, &o.Given.Services},
	} {
		if *part.into, err = clusterset.ParsePrefixes(part.from); err != nil {
			return fmt.Errorf("%s: %w", part.flag, err)
		}
	}
	if o.hubCA != "" {
		if o.ca, err = os.ReadFile(o.hubCA); err != nil {
			return fmt.Errorf("--hub-ca: %w", err)
		}
	}
	return nil
}

// CheckProperties returns an error if the cluster cannot have a property of the flags. An empty value removes a property.
func (o *Options) CheckProperties() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(o.properties)) {
		if value := o.properties[name]; value != "" {
			problems = append(problems, record.CheckProperty(name, value))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("--property: %w", err)
	}
	return nil
}

// networkOf returns the desired settings of the Member for networks and gateways: from the flags, else as before, else as found in the
// cluster, and Availability for the only member of a network that has a name. others are the networks of the other members.
func (o *Options) networkOf(before *hubv1alpha1.Member, others []string) hubv1alpha1.MemberSpec {
	var known hubv1alpha1.MemberSpec
	if before != nil {
		known = before.Spec
	}
	result := hubv1alpha1.MemberSpec{
		Network: cmp.Or(o.network, known.Network), Publish: cmp.Or(hubv1alpha1.Publish(o.Publish), known.Publish),
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
		cidrs, names = RangesOfHosts(o.GatewayHosts)
	}
	if len(cidrs) > 0 {
		result.GatewayCIDRs = cidrs
	}
	if len(names) > 0 {
		result.GatewayNames = names
	}
	if !HasGatewayRanges(result) {
		result.GatewayCIDRs, result.GatewayNames = o.FoundCIDRs, o.FoundNames
	}
	return result
}

// RangesOfHosts returns what a Member must allow for gateways at these hosts.
func RangesOfHosts(hosts []string) (cidrs []hubv1alpha1.CIDR, names []hubv1alpha1.DNSName) {
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			cidrs = append(cidrs, hubv1alpha1.CIDR(netip.PrefixFrom(ip, ip.BitLen()).String()))
		} else {
			names = append(names, hubv1alpha1.DNSName(host))
		}
	}
	return cidrs, names
}

// HasGatewayRanges reports whether a Member allows addresses of gateways.
func HasGatewayRanges(spec hubv1alpha1.MemberSpec) bool {
	return len(spec.GatewayCIDRs)+len(spec.GatewayNames) > 0
}
