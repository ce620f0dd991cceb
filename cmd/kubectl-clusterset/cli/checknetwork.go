// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const aboutCheckNetwork = `Check that pods of the members of one network reach each other by their own addresses, in both IP families, and that members of
different networks reach each other's gateways.

The command first compares the ranges of the Members on the hub. Then it asks, unless --yes is given, and starts pods in each
cluster of --contexts or --all-contexts, which send 64 KiB to the pods of all other clusters of the same network and expect
them back. This also finds a network with a smaller MTU than the senders assume. The pods run the agent's image in its
namespace, without rights, and are deleted afterwards. Of gateways, it prints what they report.

The exit code is 1 if a check fails, and 3 if the hub or a cluster could not be read: the rest is checked.`

const examplesCheckNetwork = `  kubectl clusterset check-network --all-contexts
  kubectl clusterset check-network --yes --contexts east,west --hub-context hub --agent-image registry.example.com/tombolo-agent:v1`

// errNetwork is returned if the network is not flat. The failed checks have been printed.
var errNetwork = errors.New("the network between the clusters is not what Tombolo needs: see above, and docs/networks.md")

func newCheckNetwork(build Build, usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	n := &checkNetworkCommand{build: build, r: &report{out: streams.Out}, confirm: confirmation{streams: streams}}
	cmd := &cobra.Command{
		Use:     "check-network",
		Short:   "check the network between the pods of all clusters",
		Long:    aboutCheckNetwork,
		Example: examplesCheckNetwork,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := n.output.check(formatTable, formatJSON, formatYAML); err != nil {
				return err
			}
			n.r.collect = n.output.isData()
			found, err := n.find(cmd.Context(), usual, streams.ErrOut)
			if err != nil {
				return err
			}
			noteUnread(streams.ErrOut, found.Unread)
			err = completenessOf(found).verdict(n.run(cmd.Context(), found))
			if n.output.isData() && (err == nil || errors.Is(err, errNetwork) || errors.Is(err, errIncomplete)) {
				err = errors.Join(err, printData(streams.Out, n.output, networkChecks{networkChecksType, n.r.checks}))
			}
			return err
		},
	}
	n.addFlags(cmd.Flags())
	addOutput(cmd, &n.output, "json or yaml", formatJSON, formatYAML)
	return cmd
}

// networkChecks is what the command prints as data.
type networkChecks struct {
	metav1.TypeMeta `json:",inline"`
	Checks          []checkResult `json:"checks"`
}

var networkChecksType = metav1.TypeMeta{APIVersion: survey.StatusVersion, Kind: "NetworkChecks"}

// checkNetworkCommand is the state of the command check-network.
type checkNetworkCommand struct {
	clustersetFlags
	build                Build
	confirm              confirmation
	image, imageRegistry string
	timeout              time.Duration
	output               format
	r                    *report
	// compared counts the connections whose result is known.
	compared int
}

func (n *checkNetworkCommand) addFlags(flags *pflag.FlagSet) {
	n.clustersetFlags.addFlags(flags)
	n.confirm.addFlags(flags)
	flags.StringVar(&n.image, "agent-image", "", "image of the pods; defaults to the image of the cluster's agent")
	addImageRegistryFlag(flags, &n.imageRegistry, "")
	flags.DurationVar(&n.timeout, "timeout", 2*time.Minute, "timeout for the start of the pods, and for their deletion")
}

func (n *checkNetworkCommand) run(ctx context.Context, found *survey.Clusterset) (err error) {
	if !found.Hub.IsRead() { // it has the networks and the ranges
		n.r.failf("the networks and the ranges of the members are not known without the hub: nothing was checked")
		return errNetwork
	}
	n.r.titlef("The ranges that the hub states")
	n.compareRanges(found.Hub)
	if len(found.Members) < 2 {
		n.r.failf("the contexts that were read lead to %d members, and it takes two to send packets: pass --contexts or --all-contexts", len(found.Members))
		return errNetwork
	}
	if err := n.confirm.ask(ctx, "Pods are started in namespace %s of %d clusters (%s).", manifests.AgentNamespace, len(found.Members), memberNames(found.Members)); err != nil {
		return err
	}
	pods := &networkPods{check: n}
	defer func() {
		cleanUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		err = errors.Join(err, pods.remove(cleanUp))
	}()
	n.r.titlef("Starting pods in %d clusters", len(found.Members))
	for _, m := range found.Members {
		if err := pods.add(ctx, m); err != nil {
			return err
		}
	}
	listeners, err := pods.listen(ctx)
	if err != nil {
		return err
	}
	n.compareAddresses(found.Hub, listeners)
	n.r.titlef("From pod to pod")
	for _, m := range found.Members {
		direct := slices.DeleteFunc(slices.Clone(listeners), func(l listener) bool {
			return l.id == m.ID || networkIn(found.Hub, l.id) != networkIn(found.Hub, m.ID)
		})
		if len(direct) == 0 {
			n.r.notef("%s is alone in its network", m.ID)
			continue
		}
		results, err := pods.reach(ctx, m, direct)
		if err != nil {
			return err
		}
		n.printResults(m.ID, direct, results)
	}
	if err := n.checkGateways(ctx, found); err != nil {
		return err
	}
	if n.compared == 0 {
		n.r.failf("nothing was checked: no two of these clusters are in one network, and no gateway reports on another one")
	}
	if n.r.failed > 0 {
		return errNetwork
	}
	return nil
}

func memberNames(members []*survey.Member) string {
	var names []string
	for _, m := range members {
		names = append(names, string(m.ID))
	}
	return strings.Join(names, ", ")
}

func networkIn(h *survey.Hub, id clusterset.ClusterID) string {
	return record.NetworkOf(h.Records.Member(id))
}

// checkGateways prints what the gateways of each member report of the members of other networks.
func (n *checkNetworkCommand) checkGateways(ctx context.Context, found *survey.Clusterset) error {
	others := found.Hub.Records.Members()
	slices.Sort(others)
	titled := false
	for _, m := range found.Members {
		for _, to := range others {
			if networkIn(found.Hub, to) == networkIn(found.Hub, m.ID) {
				continue
			}
			if !titled {
				n.r.titlef("From gateway to gateway")
				titled = true
			}
			reach, err := m.ReachThroughGateways(ctx, to)
			if err != nil {
				return err
			}
			n.printGateway(m.ID, to, reach)
		}
	}
	return nil
}

// printGateway prints what the gateways of one cluster report of another.
func (n *checkNetworkCommand) printGateway(from, to clusterset.ClusterID, reach survey.GatewayReach) {
	n.compared += reach.Reached + reach.Unreached
	switch {
	case !reach.Installed:
		n.r.notef("%s -> %s: they are in different networks, and %s has no gateways: kubectl clusterset join --gateway installs them", from, to, from)
	case reach.Reached > 0 && reach.Unreached == 0:
		n.r.okf("%s -> %s: %d gateways reach it", from, to, reach.Reached)
	case reach.Reached > 0:
		n.r.notef("%s -> %s: %d of %d gateways reach it; %s", from, to, reach.Reached, reach.Reached+reach.Unreached, plain(reach.Message))
	case reach.Unreached > 0:
		n.r.failf("%s -> %s: no gateway reaches it; %s", from, to, plain(reach.Message))
	case !reach.Known:
		n.r.notef("%s -> %s: the gateways of %s do not know those of %s, which publishes none, or none that its Member allows", from, to, from, to)
	default:
		n.r.notef("%s -> %s: not tried, because no service of %s is imported through gateways", from, to, to)
	}
}

// compareRanges reports members whose ranges overlap.
func (n *checkNetworkCommand) compareRanges(h *survey.Hub) {
	networks := map[string]map[clusterset.ClusterID]ranges{}
	ids := h.Records.Members()
	slices.Sort(ids)
	for _, id := range ids {
		member := h.Records.Member(id)
		own, network := rangesOf(member.Spec), record.NetworkOf(member)
		others := networks[network]
		for _, o := range overlaps(own, others) {
			n.r.failf("%s: %s: packets may go to the wrong cluster", id, o)
		}
		if others == nil {
			networks[network] = map[clusterset.ClusterID]ranges{}
		}
		networks[network][id] = own
	}
	if n.r.failed == 0 {
		n.r.okf("no pod or node range of %d members overlaps with another of the same network", len(ids))
	}
}

// compareAddresses reports pods whose address is not in the ranges of their Member: endpoints with such addresses are refused.
func (n *checkNetworkCommand) compareAddresses(h *survey.Hub, listeners []listener) {
	for _, l := range listeners {
		own := rangesOf(h.Records.Member(l.id).Spec)
		for _, address := range l.addresses {
			if !slices.ContainsFunc(own.pods, func(p netip.Prefix) bool { return p.Contains(address) }) {
				n.r.failf("a pod of %s has the address %s, which is in none of the pod CIDRs of its Member (%s): its endpoints are refused. Correct the Member on the hub", l.id, address, list(own.pods))
			}
		}
	}
}

// printResults prints the results of the connections from one cluster.
func (n *checkNetworkCommand) printResults(from clusterset.ClusterID, listeners []listener, results map[string]string) {
	for _, l := range listeners {
		for _, address := range l.addresses {
			family := clusterset.FamilyOf(address)
			n.compared++
			switch problem, asked := results[net.JoinHostPort(address.String(), networkPort)]; {
			case !asked:
				n.r.failf("%s -> %s, %s: nothing is known; run it again", from, l.id, family)
			case problem != "":
				n.r.failf("%s -> %s, %s: %s", from, l.id, family, plain(problem))
			default:
				n.r.okf("%s -> %s, %s (%s)", from, l.id, family, address)
			}
		}
	}
}
