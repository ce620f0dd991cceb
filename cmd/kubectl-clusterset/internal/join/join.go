// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package join implements the command join. Its steps are those of command.run in join.go: connect, check, admit on the hub, install in the cluster, wait.
package join

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/admission"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/clusterdns"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/identity"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/invitation"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
)

const about = `Make the current context's cluster a member of a clusterset.

The command checks everything first, and changes nothing if a check fails. Then it creates a namespace for the cluster on the
hub, in which its agent may write. In the cluster it installs the kinds of the Multi-Cluster Services API if they are
missing, the agent with a short-lived token for the hub, the DNS of the clusterset, and, with --gateway, gateways.

With --invite, you need no rights on the hub. After a failure, run the command again with the same invitation.

You can run it again at any time: after an interruption, with other flags, or to renew the token. Settings without a flag
stay as they are, also ranges of the Member on the hub and arguments of the agent that another user has changed.

If Helm or the kustomizations have installed the agent, the command writes only the objects on the hub and the agent's
Secret, and restarts the agent if the URL of the hub is new to it.`

const examples = `  # join by an invitation, without rights on the hub
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

// options are the flags of join, beside those for the admission of the cluster.
type options struct {
	connection.WriteFlags
	workload.Options
	gatewayOptions
	autoExportOptions
	hubFlags connection.HubFlags

	checkFromInside    bool
	wait, checkTimeout time.Duration
	inviteFile         string

	invited *invitation.File // the content of inviteFile, nil if it is not set
	usedUp  bool             // an earlier run has used up the invitation: the agent's token replaces it
	chosen  []string         // the flags that are given, and decide what runs in the cluster
}

// command is the state of the command join. The checks set the values that the writes use.
type command struct {
	options
	admission.Candidate
	member    *connection.Cluster
	namespace string // of the pod that checks from inside
	r         *output.Report

	hasServiceCIDRs   bool // the cluster has ServiceCIDRs, which its agent reads
	definitions       []*unstructured.Unstructured
	clusterProperties []*unstructured.Unstructured
}

// New returns the command join.
func New(build workload.Build, usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	j := &command{options: options{Options: workload.Options{Build: build}}}
	cmd := &cobra.Command{
		Use:     "join",
		Short:   "make a cluster a member",
		Long:    about,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := j.parse(cmd.Flags()); err != nil {
				return output.Usage(err)
			}
			if err := j.openInvitation(cmd.Flags(), time.Now()); err != nil {
				return output.Usage(err)
			}
			if err := j.connect(cmd.Context(), usual); err != nil {
				return err
			}
			var err error
			if j.namespace, _, err = usual.ToRawKubeConfigLoader().Namespace(); err != nil {
				return err
			}
			j.r = j.NewReport(streams)
			j.Report = j.r // of the checks and writes on the hub
			return j.run(cmd.Context())
		},
	}
	j.add(cmd)
	return cmd
}

// add adds the flags.
func (j *command) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	j.AddFlags(cmd)
	j.AddObjectOutput(cmd)
	j.addWorkloadFlags(flags)
	j.hubFlags.AddFlags(flags)
	j.AddIdentityFlags(flags)
	j.AddMemberFlags(flags)
	flags.StringVar(&j.inviteFile, inviteFlag, "", "file of \"kubectl clusterset invite\", instead of the flags for the hub and for the settings of the Member")
	flags.BoolVar(&j.checkFromInside, "check-from-inside", true, "check from a short-lived pod in --namespace that the cluster can reach the hub")
	flags.DurationVar(&j.checkTimeout, "check-timeout", time.Minute, "timeout of that pod, including the download of its image")
	flags.DurationVar(&j.wait, "wait", 2*time.Minute, "how long to wait for the agent's first heartbeat on the hub; 0 does not wait")
}

// addWorkloadFlags adds the flags that decide what runs in the cluster.
func (o *options) addWorkloadFlags(flags *pflag.FlagSet) {
	o.AddRuntimeFlags(flags)
	o.addGatewayFlags(flags)
	o.addAutoExportFlags(flags)
}

// parse validates the flags, and reads the files that they name.
func (j *command) parse(flags *pflag.FlagSet) error {
	network := j.parseGateway(flags)
	if network == nil {
		j.GatewayHosts = j.hosts()
		network = j.ParseNetwork()
	}
	if err := errors.Join(j.Validate(), network, j.CheckProperties()); err != nil {
		return err
	}
	j.autoExportGiven = flags.Changed(workload.AutoExportFlag)
	j.chosen = chosenFlags(flags)
	return j.ParseMember(flags)
}

// chosenFlags returns the flags that are given, and decide what runs in the cluster.
func chosenFlags(flags *pflag.FlagSet) []string {
	deciding := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&options{}).addWorkloadFlags(deciding)
	var chosen []string
	deciding.VisitAll(func(f *pflag.Flag) {
		if flags.Changed(f.Name) {
			chosen = append(chosen, "--"+f.Name)
		}
	})
	return chosen
}

// run joins the cluster: it checks everything (checks.go), writes on the hub, writes in the cluster (install.go), and waits for the agent.
func (j *command) run(ctx context.Context) error {
	j.r.Titlef("Checking the hub at %s and this cluster at %s", j.Hub.Config.Host, j.member.Config.Host)
	if err := j.check(ctx); err != nil {
		return err
	}
	if err := j.r.CheckError(); err != nil {
		return err
	}
	if j.invited == nil {
		j.r.Titlef("%s", j.Heading("On the hub"))
		if err := j.Admit(ctx); err != nil {
			return err
		}
	}
	j.r.Titlef("%s", j.Heading("In this cluster"))
	before, err := identity.Heartbeat(ctx, j.Hub, j.ID)
	if err != nil {
		return err
	}
	if err := j.installMember(ctx); err != nil {
		return err
	}
	if j.IsDryRun() {
		return nil
	}
	if err := errors.Join(j.awaitHeartbeat(ctx, before), j.awaitGateway(ctx)); err != nil {
		return err
	}
	j.r.Titlef("%s is a member now.", j.ID)
	return clusterdns.PrintNextStep(ctx, j.member, j.Own.Services, j.r)
}
