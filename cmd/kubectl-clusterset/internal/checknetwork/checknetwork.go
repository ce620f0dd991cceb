// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checknetwork implements the command check-network: its pods send packets to each other.
package checknetwork

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

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/ranges"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const about = `Check that pods of the members of one network reach each other by their own addresses, in both IP families, and that members of
different networks reach each other's gateways.

The command first compares the ranges of the Members on the hub. Then it asks, unless --yes is given, and starts pods in each
cluster of --contexts or --all-contexts, which send 64 KiB to the pods of all other clusters of the same network and expect
them back. This also finds a network with a smaller MTU than the senders assume. The pods run the agent's image in its
namespace, without rights, and are deleted afterwards. Of gateways, it prints what they report.

The exit code is 1 if a check fails, and 3 if the hub or a cluster could not be read: the rest is checked.`

const examples = `  kubectl clusterset check-network --all-contexts
  kubectl clusterset check-network --yes --contexts east,west --hub-context hub --agent-image registry.example.com/tombolo-agent:v1`

// errNetwork is returned if the network is not flat. The failed checks have been printed.
var errNetwork = errors.New("the network between the clusters is not what Tombolo needs: see above, and docs/networks.md")

// New returns the command check-network.
func New(build workload.Build, usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	n := &command{build: build, r: &output.Report{Out: streams.Out}, confirm: output.Confirmation{Streams: streams}}
	cmd := &cobra.Command{
		Use:     "check-network",
		Short:   "check the network between the pods of all clusters",
		Long:    about,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n.r.Collect = n.output.IsData()
			found, err := n.Find(cmd.Context(), usual, streams.ErrOut)
			if err != nil {
				return err
			}
			reading.NoteUnread(streams.ErrOut, found.Unread)
			err = reading.CompletenessOf(found).Verdict(n.run(cmd.Context(), found))
			if n.output.IsData() && (err == nil || errors.Is(err, errNetwork) || errors.Is(err, output.ErrIncomplete)) {
				err = errors.Join(err, output.PrintData(streams.Out, n.output, networkChecks{networkChecksType, n.r.Checks}))
			}
			return err
		},
	}
	n.addFlags(cmd.Flags())
	output.AddFormat(cmd, &n.output, "json or yaml", output.JSON, output.YAML)
	return cmd
}

// networkChecks is what the command prints as data.
type networkChecks struct {
	metav1.TypeMeta `json:",inline"`
	Checks          []output.CheckResult `json:"checks"`
}

var networkChecksType = metav1.TypeMeta{APIVersion: assess.StatusVersion, Kind: "NetworkChecks"}

// command is the state of the command check-network.
type command struct {
	reading.Flags
	build                workload.Build
	confirm              output.Confirmation
	image, imageRegistry string
	timeout              time.Duration
	output               output.Format
	r                    *output.Report
	// compared counts the connections whose result is known.
	compared int
}

func (n *command) addFlags(flags *pflag.FlagSet) {
	n.AddFlags(flags)
	n.confirm.AddFlags(flags)
	flags.StringVar(&n.image, "agent-image", "", "image of the pods; defaults to the image of the cluster's agent")
	workload.AddImageRegistryFlag(flags, &n.imageRegistry, "")
	flags.DurationVar(&n.timeout, "timeout", 2*time.Minute, "timeout for the start of the pods, and for their deletion")
}

func (n *command) run(ctx context.Context, found *survey.Clusterset) (err error) {
	if !found.Hub.IsRead() { // it has the networks and the ranges
		n.r.Failf("the networks and the ranges of the members are not known without the hub: nothing was checked")
		return errNetwork
	}
	n.r.Titlef("The ranges that the hub states")
	n.compareRanges(found.Hub)
	if len(found.Members) < 2 {
		n.r.Failf("the contexts that were read lead to %d members, and it takes two to send packets: pass --contexts or --all-contexts", len(found.Members))
		return errNetwork
	}
	if err := n.confirm.Ask(ctx, "Pods are started in namespace %s of %d clusters (%s).", manifests.AgentNamespace, len(found.Members), memberNames(found.Members)); err != nil {
		return err
	}
	pods := &networkPods{check: n}
	defer func() {
		cleanUp, cancel := context.WithTimeout(context.WithoutCancel(ctx), connection.RequestTimeout)
		defer cancel()
		err = errors.Join(err, pods.remove(cleanUp))
	}()
	n.r.Titlef("Starting pods in %d clusters", len(found.Members))
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
	n.r.Titlef("From pod to pod")
	for _, m := range found.Members {
		direct := slices.DeleteFunc(slices.Clone(listeners), func(l listener) bool {
			return l.id == m.ID || networkIn(found.Hub, l.id) != networkIn(found.Hub, m.ID)
		})
		if len(direct) == 0 {
			n.r.Notef("%s is alone in its network", m.ID)
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
		n.r.Failf("nothing was checked: no two of these clusters are in one network, and no gateway reports on another one")
	}
	if n.r.Failed > 0 {
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
func (n *command) checkGateways(ctx context.Context, found *survey.Clusterset) error {
	others := found.Hub.Records.Members()
	slices.Sort(others)
	titled := false
	for _, m := range found.Members {
		for _, to := range others {
			if networkIn(found.Hub, to) == networkIn(found.Hub, m.ID) {
				continue
			}
			if !titled {
				n.r.Titlef("From gateway to gateway")
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
func (n *command) printGateway(from, to clusterset.ClusterID, reach survey.GatewayReach) {
	n.compared += reach.Reached + reach.Unreached
	switch {
	case !reach.Installed:
		n.r.Notef("%s -> %s: they are in different networks, and %s has no gateways: kubectl clusterset join --gateway installs them", from, to, from)
	case reach.Reached > 0 && reach.Unreached == 0:
		n.r.Okf("%s -> %s: %d gateways reach it", from, to, reach.Reached)
	case reach.Reached > 0:
		n.r.Notef("%s -> %s: %d of %d gateways reach it; %s", from, to, reach.Reached, reach.Reached+reach.Unreached, output.Plain(reach.Message))
	case reach.Unreached > 0:
		n.r.Failf("%s -> %s: no gateway reaches it; %s", from, to, output.Plain(reach.Message))
	case !reach.Known:
		n.r.Notef("%s -> %s: the gateways of %s do not know those of %s, which publishes none, or none that its Member allows", from, to, from, to)
	default:
		n.r.Notef("%s -> %s: not tried, because no service of %s is imported through gateways", from, to, to)
	}
}

// compareRanges reports members whose ranges overlap.
func (n *command) compareRanges(h *survey.Hub) {
	networks := map[string]map[clusterset.ClusterID]ranges.Set{}
	ids := h.Records.Members()
	slices.Sort(ids)
	for _, id := range ids {
		member := h.Records.Member(id)
		own, network := ranges.Of(member.Spec), record.NetworkOf(member)
		others := networks[network]
		for _, o := range ranges.Overlaps(own, others) {
			n.r.Failf("%s: %s: packets may go to the wrong cluster", id, o)
		}
		if others == nil {
			networks[network] = map[clusterset.ClusterID]ranges.Set{}
		}
		networks[network][id] = own
	}
	if n.r.Failed == 0 {
		n.r.Okf("no pod or node range of %d members overlaps with another of the same network", len(ids))
	}
}

// compareAddresses reports pods whose address is not in the ranges of their Member: endpoints with such addresses are refused.
func (n *command) compareAddresses(h *survey.Hub, listeners []listener) {
	for _, l := range listeners {
		own := ranges.Of(h.Records.Member(l.id).Spec)
		for _, address := range l.addresses {
			if !slices.ContainsFunc(own.Pods, func(p netip.Prefix) bool { return p.Contains(address) }) {
				n.r.Failf("a pod of %s has the address %s, which is in none of the pod CIDRs of its Member (%s): its endpoints are refused. Correct the Member on the hub", l.id, address, ranges.List(own.Pods))
			}
		}
	}
}

// printResults prints the results of the connections from one cluster.
func (n *command) printResults(from clusterset.ClusterID, listeners []listener, results map[string]string) {
	for _, l := range listeners {
		for _, address := range l.addresses {
			family := clusterset.FamilyOf(address)
			n.compared++
			switch problem, asked := results[net.JoinHostPort(address.String(), networkPort)]; {
			case !asked:
				n.r.Failf("%s -> %s, %s: nothing is known; run it again", from, l.id, family)
			case problem != "":
				n.r.Failf("%s -> %s, %s: %s", from, l.id, family, output.Plain(problem))
			default:
				n.r.Okf("%s -> %s, %s (%s)", from, l.id, family, address)
			}
		}
	}
}
