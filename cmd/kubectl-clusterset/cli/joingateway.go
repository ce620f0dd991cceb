// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// gatewayOptions are the flags of join for the gateways of the cluster.
type gatewayOptions struct {
	gatewayFlag        bool // --gateway, if gatewayGiven
	gatewayGiven       bool
	gatewayServiceType string
	gatewayAddresses   []string
	hosts              []string // those of gatewayAddresses
}

// maxGatewayRanges is the maximum in the hub's schema.
const maxGatewayRanges = 16

func (o *gatewayOptions) addGatewayFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.gatewayFlag, "gateway", false, "run gateways in the cluster, through which it and the clusters of other networks reach each other's services; defaults to whether they run already, and =false removes them")
	flags.StringVar(&o.gatewayServiceType, "gateway-service", "", "type of the Service of the gateways: LoadBalancer, NodePort or ClusterIP; defaults to the present one, or LoadBalancer")
	flags.StringSliceVar(&o.gatewayAddresses, gatewayAddressFlag, nil, "addresses at which other members reach the gateways, such as gateway.example.com or 198.51.100.1:8443; defaults to the addresses of an earlier join, or those of the Service")
}

func (o *gatewayOptions) parseGateway(flags *pflag.FlagSet) error {
	o.gatewayGiven = flags.Changed("gateway")
	switch corev1.ServiceType(o.gatewayServiceType) {
	case "", corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP:
	default:
		return fmt.Errorf("--gateway-service=%s: must be %s, %s or %s", o.gatewayServiceType,
			corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP)
	}
	var errs []error
	for _, text := range o.gatewayAddresses {
		address, err := reach.ParseAddress(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", gatewayAddressFlag, err))
		}
		o.hosts = append(o.hosts, address.Host)
	}
	return errors.Join(errs...)
}

// rangesOfHosts returns what a Member must allow for gateways at these hosts.
func rangesOfHosts(hosts []string) (cidrs []hubv1alpha1.CIDR, names []hubv1alpha1.DNSName) {
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			cidrs = append(cidrs, hubv1alpha1.CIDR(netip.PrefixFrom(ip, ip.BitLen()).String()))
		} else {
			names = append(names, hubv1alpha1.DNSName(host))
		}
	}
	return cidrs, names
}

// checkGateway sets what the Member allows for gateways, unless a flag or the Member says it: the addresses of the existing Service. It
// reports what the clusters of other networks cannot use.
func (j *joinCommand) checkGateway(context.Context) error {
	network := j.networkSettings()
	own := record.NetworkOf(&hubv1alpha1.Member{Spec: network})
	if !j.gateway {
		if len(j.hosts) > 0 {
			j.r.failf("--%s is the address of gateways: pass --gateway too", gatewayAddressFlag)
		}
		foreign := slices.ContainsFunc(j.others, func(other string) bool { return other != own })
		if network.Publish == hubv1alpha1.PublishAvailability || foreign {
			j.r.notef("clusters of other networks are reached through gateways, and this one has none: pass --gateway")
		}
		return nil
	}
	if !hasGatewayRanges(network) && j.invited == nil {
		j.foundCIDRs, j.foundNames = j.findGatewayRanges()
		network = j.networkOf(j.admitted, j.others)
	}
	switch {
	case len(network.GatewayCIDRs) > maxGatewayRanges || len(network.GatewayNames) > maxGatewayRanges:
		j.r.failf("the gateways have %d addresses and %d names, and a member may have %d of each: pass --gateway-cidrs with the networks that the addresses are in",
			len(network.GatewayCIDRs), len(network.GatewayNames), maxGatewayRanges)
	case !hasGatewayRanges(network) && j.invited != nil:
		j.r.notef("the Member allows no address of gateways, so this cluster can import and not export: let the hub's administrator invite it with --gateway-cidrs or --gateway-names")
	case !hasGatewayRanges(network):
		j.r.notef("the Service of the gateways has no address yet, so this cluster can import and not export: run this again when \"kubectl -n %s get service %s\" shows one, or pass --%s",
			manifests.AgentNamespace, clusterset.GatewayService, gatewayAddressFlag)
	default:
		j.r.okf("gateways may be published at %s", describeGateway(network))
	}
	return nil
}

// networkSettings returns the desired settings of the Member, or those that it has if an invitation has made it.
func (j *joinCommand) networkSettings() hubv1alpha1.MemberSpec {
	if j.invited != nil && j.admitted != nil {
		return j.admitted.Spec
	}
	return j.networkOf(j.admitted, j.others)
}

func hasGatewayRanges(spec hubv1alpha1.MemberSpec) bool {
	return len(spec.GatewayCIDRs)+len(spec.GatewayNames) > 0
}

func describeGateway(spec hubv1alpha1.MemberSpec) string {
	var texts []string
	for _, c := range spec.GatewayCIDRs {
		texts = append(texts, string(c))
	}
	for _, n := range spec.GatewayNames {
		texts = append(texts, string(n))
	}
	return strings.Join(texts, ", ")
}

// findGatewayRanges returns what the Member must allow so that the addresses of the gateways' Service can be published: those of its
// load balancer, or those of the nodes.
func (j *joinCommand) findGatewayRanges() (cidrs []hubv1alpha1.CIDR, names []hubv1alpha1.DNSName) {
	if j.gatewayType == corev1.ServiceTypeNodePort {
		for _, prefix := range j.own.nodes {
			cidrs = append(cidrs, hubv1alpha1.CIDR(prefix.String()))
		}
		return cidrs, nil
	}
	if j.gatewayService == nil {
		return nil, nil
	}
	var hosts []string
	for _, address := range reach.Addresses(j.gatewayService, nil) {
		hosts = append(hosts, address.Host)
	}
	return rangesOfHosts(hosts)
}

// gatewayArgs returns the addresses of the gateways as an argument of the agent: from the flag, else as before.
func (j *joinCommand) gatewayArgs() []string {
	switch {
	case !j.gateway:
		return nil
	case len(j.gatewayAddresses) > 0:
		return []string{"--" + gatewayAddressFlag + "=" + strings.Join(j.gatewayAddresses, ",")}
	}
	return joinArgument(j.agent(), gatewayAddressFlag)
}

// removeGateway deletes the gateways if --gateway=false. Their kinds stay until the cluster leaves.
func (j *joinCommand) removeGateway(ctx context.Context) error {
	if !j.gatewayGiven || j.gateway {
		return nil
	}
	objects, err := manifests.Gateway()
	if err != nil {
		return err
	}
	return deleteExisting(ctx, j.member, objects, j.r)
}

// awaitGateway waits until the hub has an address of the gateways, if the Member allows one.
func (j *joinCommand) awaitGateway(ctx context.Context) error {
	if !j.gateway || j.wait == 0 || !hasGatewayRanges(j.networkSettings()) {
		return nil
	}
	j.r.titlef("Waiting for the gateways' address on the hub")
	ctx, cancel := context.WithTimeout(ctx, j.wait)
	defer cancel()
	published := &hubv1alpha1.PublishedGateway{}
	err := pollUntilEnd(ctx, func(ctx context.Context) (bool, error) {
		err := j.hub.client.Get(ctx, client.ObjectKey{Namespace: j.id.HubNamespace(), Name: hubv1alpha1.GatewayName}, published)
		if err != nil {
			return false, client.IgnoreNotFound(ignoreTransient(err))
		}
		return len(published.Spec.Addresses) > 0, nil
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("everything is installed, but the agent published no address of the gateways within %s: \"kubectl -n %s get events,services\" says why; "+
			"if the address is not allowed, run this again with --gateway-cidrs or --gateway-names", j.wait, manifests.AgentNamespace)
	}
	if err != nil {
		return err
	}
	var texts []string
	for _, a := range published.Spec.Addresses {
		texts = append(texts, a.String())
	}
	j.r.okf("other members reach the gateways at %s", strings.Join(texts, ", "))
	return nil
}
