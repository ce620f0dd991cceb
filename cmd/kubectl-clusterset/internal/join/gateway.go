// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/admission"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
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
}

// maxGatewayRanges is the maximum in the hub's schema.
const maxGatewayRanges = 16

func (o *gatewayOptions) addGatewayFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.gatewayFlag, "gateway", false, "run gateways in the cluster, through which it and the clusters of other networks reach each other's services; defaults to whether they run already, and =false removes them")
	flags.StringVar(&o.gatewayServiceType, "gateway-service", "", "type of the Service of the gateways: LoadBalancer, NodePort or ClusterIP; defaults to the present one, or LoadBalancer")
	flags.StringSliceVar(&o.gatewayAddresses, workload.GatewayAddressFlag, nil, "addresses at which other members reach the gateways, such as gateway.example.com or 198.51.100.1:8443; defaults to the addresses of an earlier join, or those of the Service")
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
		if _, err := reach.ParseAddress(text); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", workload.GatewayAddressFlag, err))
		}
	}
	return errors.Join(errs...)
}

// hosts returns the hosts of the addresses.
func (o *gatewayOptions) hosts() []string {
	var result []string
	for _, text := range o.gatewayAddresses {
		address, _ := reach.ParseAddress(text) // parseGateway has parsed it
		result = append(result, address.Host)
	}
	return result
}

// checkGateway sets what the Member allows for gateways, unless a flag or the Member says it: the addresses of the existing Service. It
// reports what the clusters of other networks cannot use.
func (j *command) checkGateway(context.Context) error {
	network := j.networkSettings()
	own := record.NetworkOf(&hubv1alpha1.Member{Spec: network})
	if !j.Gateway {
		if len(j.GatewayHosts) > 0 {
			j.r.Failf("--%s is the address of gateways: pass --gateway too", workload.GatewayAddressFlag)
		}
		foreign := slices.ContainsFunc(j.Others, func(other string) bool { return other != own })
		if network.Publish == hubv1alpha1.PublishAvailability || foreign {
			j.r.Notef("clusters of other networks are reached through gateways, and this one has none: pass --gateway")
		}
		return nil
	}
	if !admission.HasGatewayRanges(network) && j.invited == nil {
		j.FoundCIDRs, j.FoundNames = j.findGatewayRanges()
		network = j.DesiredNetwork()
	}
	switch {
	case len(network.GatewayCIDRs) > maxGatewayRanges || len(network.GatewayNames) > maxGatewayRanges:
		j.r.Failf("the gateways have %d addresses and %d names, and a member may have %d of each: pass --gateway-cidrs with the networks that the addresses are in",
			len(network.GatewayCIDRs), len(network.GatewayNames), maxGatewayRanges)
	case !admission.HasGatewayRanges(network) && j.invited != nil:
		j.r.Notef("the Member allows no address of gateways, so this cluster can import and not export: let the hub's administrator invite it with --gateway-cidrs or --gateway-names")
	case !admission.HasGatewayRanges(network):
		j.r.Notef("the Service of the gateways has no address yet, so this cluster can import and not export: run this again when \"kubectl -n %s get service %s\" shows one, or pass --%s",
			manifests.AgentNamespace, clusterset.GatewayService, workload.GatewayAddressFlag)
	default:
		j.r.Okf("gateways may be published at %s", describeGateway(network))
	}
	return nil
}

// networkSettings returns the desired settings of the Member, or those that it has if an invitation has made it.
func (j *command) networkSettings() hubv1alpha1.MemberSpec {
	if j.invited != nil && j.Admitted != nil {
		return j.Admitted.Spec
	}
	return j.DesiredNetwork()
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
func (j *command) findGatewayRanges() (cidrs []hubv1alpha1.CIDR, names []hubv1alpha1.DNSName) {
	if j.GatewayType == corev1.ServiceTypeNodePort {
		for _, prefix := range j.Own.Nodes {
			cidrs = append(cidrs, hubv1alpha1.CIDR(prefix.String()))
		}
		return cidrs, nil
	}
	if j.GatewayService == nil {
		return nil, nil
	}
	var hosts []string
	for _, address := range reach.Addresses(j.GatewayService, nil) {
		hosts = append(hosts, address.Host)
	}
	return admission.RangesOfHosts(hosts)
}

// gatewayArgs returns the addresses of the gateways as an argument of the agent: from the flag, else as before.
func (j *command) gatewayArgs() []string {
	switch {
	case !j.Gateway:
		return nil
	case len(j.gatewayAddresses) > 0:
		return []string{"--" + workload.GatewayAddressFlag + "=" + strings.Join(j.gatewayAddresses, ",")}
	}
	return workload.JoinArgument(j.Agent(), workload.GatewayAddressFlag)
}

// removeGateway deletes the gateways if --gateway=false. Their kinds stay until the cluster leaves.
func (j *command) removeGateway(ctx context.Context) error {
	if !j.gatewayGiven || j.Gateway {
		return nil
	}
	objects, err := manifests.Gateway()
	if err != nil {
		return err
	}
	return writing.DeleteExisting(ctx, j.member, objects, j.r)
}

// awaitGateway waits until the hub has an address of the gateways, if the Member allows one.
func (j *command) awaitGateway(ctx context.Context) error {
	if !j.Gateway || j.wait == 0 || !admission.HasGatewayRanges(j.networkSettings()) {
		return nil
	}
	j.r.Titlef("Waiting for the gateways' address on the hub")
	ctx, cancel := context.WithTimeout(ctx, j.wait)
	defer cancel()
	published := &hubv1alpha1.PublishedGateway{}
	err := connection.PollUntilEnd(ctx, func(ctx context.Context) (bool, error) {
		err := j.Hub.Client.Get(ctx, client.ObjectKey{Namespace: j.ID.HubNamespace(), Name: hubv1alpha1.GatewayName}, published)
		if err != nil {
			return false, client.IgnoreNotFound(connection.IgnoreTransient(err))
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
	j.r.Okf("other members reach the gateways at %s", strings.Join(texts, ", "))
	return nil
}
