// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const aboutJoin = `Make the current context's cluster a member of a clusterset.

The command checks everything first, and changes nothing if a check fails. Then it creates a namespace for the cluster on the
hub, in which its agent may write. In the cluster it installs the kinds of the Multi-Cluster Services API if they are
missing, the agent with a short-lived token for the hub, the DNS of the clusterset, and, with --gateway, gateways.

With --invite, you need no rights on the hub. After a failure, run the command again with the same invitation.

You can run it again at any time: after an interruption, with other flags, or to renew the token. Settings without a flag
stay as they are, also ranges of the Member on the hub and arguments of the agent that another user has changed.

If Helm or the kustomizations have installed the agent, the command writes only the objects on the hub and the agent's
Secret, and restarts the agent if the URL of the hub is new to it.`

const examplesJoin = `  # join by an invitation, without rights on the hub
  kubectl clusterset join --context east --invite east.yaml

  # show what the command would do, and which addresses it finds
  kubectl clusterset join --context east --hub-context hub --cluster-id east --dry-run

  # set the addresses, if the cluster does not report them or will grow
  kubectl clusterset join --context east --hub-context hub --cluster-id east \
      --pod-cidrs 10.1.0.0/16,fd00:1::/48 --node-cidrs 192.0.2.0/24

  # join a cluster whose pods the others do not reach: services are reached through gateways
  kubectl clusterset join --context west --hub-context hub --cluster-id west --network cloud --gateway

  # say where the cluster is, for policies such as "prefer the same region"
  kubectl clusterset join --context east --hub-context hub --cluster-id east --property region=eu

  # for production: two agents on two nodes, disruption budgets, network policies
  kubectl clusterset join --context east --hub-context hub --cluster-id east --profile production`

// joinOptions are the flags of join.
type joinOptions struct {
	writeFlags
	runtimeOptions
	networkOptions
	autoExportOptions
	hub hubFlags

	id, clusterSet        string
	pods, nodes, services []string
	namespaces            []string
	memberProperties      map[string]string
	allowOverlap          bool
	trustAges             bool
	hubServer, hubCA      string
	checkFromInside       bool
	wait, checkTimeout    time.Duration
	inviteFile            string

	invited *invitation             // the content of inviteFile, nil if it is not set
	usedUp  bool                    // an earlier run has used up the invitation: the agent's token replaces it
	chosen  []string                // the flags that are given, and decide what runs in the cluster
	given   ranges                  // pods, nodes and services, parsed
	ca      []byte                  // content of hubCA, nil if it is not set
	ages    hubv1alpha1.ClaimedAges // empty if trustAges is not given
}

// trustAgesFlag is kept as on the hub if it is absent, so its default does not apply.
const trustAgesFlag = "trust-claimed-ages"

func (o *joinOptions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.addFlags(cmd)
	o.addObjectOutput(cmd)
	o.addWorkloadFlags(flags)
	o.hub.add(flags)
	o.addIdentityFlags(flags)
	o.addMemberFlags(flags)
	flags.StringVar(&o.inviteFile, inviteFlag, "", "file of \"kubectl clusterset invite\", instead of the flags for the hub and for the settings of the Member")
	flags.BoolVar(&o.checkFromInside, "check-from-inside", true, "check from a short-lived pod in --namespace that the cluster can reach the hub")
	flags.DurationVar(&o.checkTimeout, "check-timeout", time.Minute, "timeout of that pod, including the download of its image")
	flags.DurationVar(&o.wait, "wait", 2*time.Minute, "how long to wait for the agent's first heartbeat on the hub; 0 does not wait")
}

// addWorkloadFlags adds the flags that decide what runs in the cluster.
func (o *joinOptions) addWorkloadFlags(flags *pflag.FlagSet) {
	o.addRuntimeFlags(flags)
	o.addGatewayFlags(flags)
	o.addAutoExportFlags(flags)
}

// addIdentityFlags adds the flags that say who the member is, and how it reaches the hub.
func (o *joinOptions) addIdentityFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.id, "cluster-id", "", "the cluster's ID in the clusterset, a DNS label; defaults to its ClusterProperty cluster.clusterset.k8s.io")
	flags.StringVar(&o.clusterSet, "clusterset", "", "name of the clusterset, for the ClusterProperty clusterset.k8s.io; defaults to its present value, or "+defaultClusterSet)
	flags.StringVar(&o.hubServer, "hub-server", "", "the hub's URL for the cluster's pods; defaults to the URL of an earlier join, or of the kubeconfig")
	flags.StringVar(&o.hubCA, "hub-ca", "", "file with the certificate authority of that URL; defaults to the authority of an earlier join, or of the kubeconfig")
}

// addMemberFlags adds the flags for the settings of the Member, which the hub's administrator decides.
func (o *joinOptions) addMemberFlags(flags *pflag.FlagSet) {
	o.addNetworkFlags(flags)
	flags.BoolVar(&o.allowOverlap, "allow-overlap", false, "join even if addresses overlap with another member's: packets may reach the wrong cluster")
	flags.StringSliceVar(&o.pods, "pod-cidrs", nil, "ranges of the cluster's pods; defaults to the Member's, or ranges found in the cluster")
	flags.StringSliceVar(&o.nodes, "node-cidrs", nil, "ranges of the cluster's nodes; defaults to the Member's, or the nodes' addresses")
	flags.StringSliceVar(&o.services, "service-cidrs", nil, "ranges of the cluster's Services; defaults to the Member's, or ranges found in the cluster")
	flags.StringSliceVar(&o.namespaces, "namespaces", nil, "the only namespaces whose services the cluster may publish; defaults to the Member's, or all but reserved namespaces")
	flags.StringToStringVar(&o.memberProperties, "property", nil, "a property of the cluster, such as region=eu, to which policies of all members refer; can be repeated, and region= removes it. Properties without a flag stay as they are")
	flags.BoolVar(&o.trustAges, trustAgesFlag, false, "accept the ages that this cluster claims for its exports without limit, to adopt services that are older than the hub; defaults to the setting of the Member, and =false removes it")
}

// parse validates the flags, and reads the file of --hub-ca.
func (o *joinOptions) parse(flags *pflag.FlagSet) (err error) {
	if err := errors.Join(o.validate(), o.parseNetwork(flags), o.checkProperties()); err != nil {
		return err
	}
	o.autoExportGiven = flags.Changed(autoExportFlag)
	runtime := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&joinOptions{}).addWorkloadFlags(runtime)
	runtime.VisitAll(func(f *pflag.Flag) {
		if flags.Changed(f.Name) {
			o.chosen = append(o.chosen, "--"+f.Name)
		}
	})
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
		{"--pod-cidrs", o.pods, &o.given.pods},
		{"--node-cidrs", o.nodes, &o.given.nodes},
		{"--service-cidrs", o.services, &o.given.services},
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

const defaultClusterSet = "clusterset"

func newJoin(build Build, usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := joinOptions{runtimeOptions: runtimeOptions{build: build}}
	cmd := &cobra.Command{
		Use:     "join",
		Short:   "make a cluster a member",
		Long:    aboutJoin,
		Example: examplesJoin,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.parse(cmd.Flags()); err != nil {
				return usageError{err}
			}
			if err := o.openInvitation(cmd.Flags(), time.Now()); err != nil {
				return usageError{err}
			}
			hub, member, err := o.connect(cmd.Context(), usual)
			if err != nil {
				return err
			}
			namespace, _, err := usual.ToRawKubeConfigLoader().Namespace()
			if err != nil {
				return err
			}
			j := &joinCommand{joinOptions: o, hub: hub, member: member, namespace: namespace, r: o.report(streams)}
			return j.run(cmd.Context())
		},
	}
	o.add(cmd)
	return cmd
}

// connectBoth connects to the hub and to the cluster of the kubeconfig flags.
func connectBoth(usual *genericclioptions.ConfigFlags, flags *hubFlags, o writeFlags) (hub, member *cluster, err error) {
	hubConfig, err := flags.config(usual)
	if err != nil {
		return nil, nil, err
	}
	config, err := usual.ToRESTConfig()
	if err != nil {
		return nil, nil, usageError{err}
	}
	if hub, err = connect("the hub", "--hub-kubeconfig and --hub-context", hubConfig, o); err != nil {
		return nil, nil, err
	}
	if member, err = connect("this cluster", "--kubeconfig and --context", config, o); err != nil {
		return nil, nil, err
	}
	return hub, member, nil
}

// joinCommand is the state of the command join. The checks set the values that the writes use.
type joinCommand struct {
	joinOptions
	hub, member *cluster
	namespace   string // of the pod that checks from inside
	r           *report

	id              clusterset.ClusterID
	uid             string              // UID of the member's kube-system namespace, which identifies the cluster
	admitted        *hubv1alpha1.Member // the existing Member; nil for a new member
	others          []string            // the networks of the other members
	quota           *unstructured.Unstructured
	own             ranges
	hasServiceCIDRs bool // the cluster has ServiceCIDRs, which its agent reads
	definitions     []*unstructured.Unstructured
	properties      []*unstructured.Unstructured
	hubAddress      hubAddress
}

func (j *joinCommand) run(ctx context.Context) error {
	j.r.titlef("Checking the hub at %s and this cluster at %s", j.hub.config.Host, j.member.config.Host)
	if err := j.check(ctx); err != nil {
		return err
	}
	if err := j.r.checkError(); err != nil {
		return err
	}
	if j.invited == nil {
		j.r.titlef("%s", j.heading("On the hub"))
		if err := j.admit(ctx); err != nil {
			return err
		}
	}
	j.r.titlef("%s", j.heading("In this cluster"))
	before, err := j.heartbeat(ctx)
	if err != nil {
		return err
	}
	if err := j.installMember(ctx); err != nil {
		return err
	}
	if j.isDryRun() {
		return nil
	}
	if err := errors.Join(j.awaitHeartbeat(ctx, before), j.awaitGateway(ctx)); err != nil {
		return err
	}
	return j.printNextStep(ctx)
}
