// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leave implements the command leave: it suspends and deletes a member on the hub, and deletes what Tombolo has created in the cluster.
package leave

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/identity"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const about = `Remove the current context's cluster from its clusterset.

The command first stops the agent. Then it suspends the Member on the hub, so that the other members stop using its pods,
waits for the next heartbeat of each connected member, for three heartbeat intervals (30 seconds by default, at most a
minute), and lists members that sent none. It deletes the Member with all its records, and then everything that Tombolo has
created in the cluster. The users' ServiceExports, grants and policies stay, without status, and so do their kinds. The
command asks before its first change, unless --yes is given.

If one side no longer exists, leave on the other side only: --from hub if the cluster no longer exists (with --cluster-id),
--from member if the hub no longer exists. Run the command again after an interruption.`

const examples = `  kubectl clusterset leave --context east --hub-context hub --dry-run
  kubectl clusterset leave --context east --hub-context hub --yes

  # east no longer exists
  kubectl clusterset leave --from hub --cluster-id east --hub-context hub

  # the hub no longer exists
  kubectl clusterset leave --from member --context east`

// scope states on which sides objects are deleted.
type scope string

const (
	both       scope = "both"
	hubOnly    scope = "hub"
	memberOnly scope = "member"
)

// New returns the command leave.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	l := &command{confirm: output.Confirmation{Streams: streams}}
	cmd := &cobra.Command{
		Use:     "leave",
		Short:   "remove a cluster from the clusterset",
		Long:    about,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l.r = l.NewReport(streams)
			if err := l.connect(usual); err != nil {
				return err
			}
			return l.run(cmd.Context())
		},
	}
	l.AddFlags(cmd)
	l.confirm.AddFlags(cmd.Flags())
	l.hubFlags.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&l.given, "cluster-id", "", "the ID of the cluster that leaves; defaults to its ClusterProperty")
	cmd.Flags().StringVar((*string)(&l.from), "from", string(both), "both; hub: the cluster no longer exists; member: the hub no longer exists")
	return cmd
}

// command is the state of the command leave.
type command struct {
	connection.WriteFlags
	hubFlags connection.HubFlags
	confirm  output.Confirmation
	given    string
	from     scope
	r        *output.Report

	hub, member *connection.Cluster // nil if the scope excludes it
	id          clusterset.ClusterID
}

func (l *command) connect(usual *genericclioptions.ConfigFlags) error {
	switch l.from {
	case both:
		hub, member, err := connection.OpenBoth(usual, &l.hubFlags, l.WriteFlags)
		if err != nil {
			return fmt.Errorf("%w; if one of the two no longer exists, see --from", err)
		}
		l.hub, l.member = hub, member
		return nil
	case hubOnly:
		if l.given == "" {
			return output.Usage(fmt.Errorf("which member no longer exists? Pass --cluster-id"))
		}
		config, err := l.hubFlags.Config(usual)
		if err != nil {
			return err
		}
		l.hub, err = connection.Open("the hub", "--hub-kubeconfig and --hub-context", config, l.WriteFlags)
		return err
	case memberOnly:
		member, err := connection.OpenMember(usual, l.WriteFlags)
		l.member = member
		return err
	}
	return output.Usage(fmt.Errorf("--from=%s: must be both, hub or member", l.from))
}

func (l *command) run(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	if err := l.r.CheckError(); err != nil {
		return err
	}
	if !l.IsDryRun() {
		if err := l.confirm.Ask(ctx, "%s", l.consequence()); err != nil {
			return err
		}
	}
	if l.member != nil {
		l.r.Titlef("%s", l.Heading("In this cluster, the agent"))
		if err := l.stopAgent(ctx); err != nil {
			return err
		}
	}
	if l.hub != nil {
		l.r.Titlef("%s", l.Heading("On the hub"))
		if err := l.suspend(ctx); err != nil {
			return err
		}
		if err := l.deleteMember(ctx); err != nil {
			return err
		}
	}
	if l.member != nil {
		l.r.Titlef("%s", l.Heading("In this cluster, all other objects"))
		if err := l.clean(ctx); err != nil {
			return err
		}
	}
	if !l.IsDryRun() {
		l.r.Titlef("%s has left.", l.name())
		l.noteHub()
	}
	return nil
}

// noteHub says how the records on the hub are deleted if only the member's side has been.
func (l *command) noteHub() {
	if l.from != memberOnly {
		return
	}
	id := cmp.Or(string(l.id), "ID")
	l.r.Notef("if the hub still exists, it keeps the Member and the records: kubectl clusterset leave --from hub --cluster-id %s --hub-context HUB", id)
}

// consequence returns what the command is about to do.
func (l *command) consequence() string {
	switch l.from {
	case hubOnly:
		return fmt.Sprintf("On the hub, %s and all of its records are deleted: the other members stop using its services.", l.name())
	case memberOnly:
		return fmt.Sprintf("In %s, all imports, the agent and the DNS of the clusterset are deleted.", l.member.Config.Host)
	case both:
	}
	return fmt.Sprintf("%s leaves the clusterset: the other members stop using its services, and its imports, its agent and its DNS of the clusterset are deleted.", l.name())
}

func (l *command) name() string {
	if l.id == "" {
		return "This cluster"
	}
	return string(l.id)
}

// deleteMember deletes the member's objects on the hub, and waits until they do not exist.
func (l *command) deleteMember(ctx context.Context) error {
	objects, err := manifests.Member(manifests.MemberOptions{ClusterID: l.id})
	if err != nil {
		return err
	}
	slices.Reverse(objects)
	return writing.DeleteAll(ctx, l.hub, objects, l.r, func(o *unstructured.Unstructured) bool {
		return o.GetNamespace() == "" // the API server deletes the rest with the namespace
	})
}

// check sets the cluster ID, and fails if it is not the ID of the selected cluster (K2).
func (l *command) check(ctx context.Context) error {
	l.r.Titlef("Checking")
	wanted := l.given
	if l.member != nil {
		own, err := identity.Property(ctx, l.member, aboutv1beta1.ClusterIDProperty)
		if err != nil {
			return err
		}
		switch {
		case own == nil && wanted == "" && l.from == memberOnly:
			l.r.Notef("this cluster has no ClusterProperty %s: whatever is left of Tombolo in it is removed", aboutv1beta1.ClusterIDProperty)
			return nil
		case own != nil && wanted != "" && own.Spec.Value != wanted:
			l.r.Failf("this cluster calls itself %q, not %q: correct --cluster-id or --context", own.Spec.Value, wanted)
			return nil
		case own != nil:
			wanted = own.Spec.Value
		}
	}
	id, err := clusterset.ParseClusterID(wanted)
	if err != nil {
		l.r.Failf("%v", err)
		return nil
	}
	l.id = id
	l.r.Okf("cluster ID %q", id)
	if l.hub == nil {
		return nil
	}
	return l.checkHolder(ctx)
}

// checkHolder fails if another cluster than the selected one has sent the heartbeat on the hub.
func (l *command) checkHolder(ctx context.Context) error {
	beat, err := identity.Heartbeat(ctx, l.hub, l.id)
	if err != nil || beat == nil {
		return err
	}
	if l.member == nil {
		l.r.Notef("its last heartbeat, by its own clock, was at %s", beat.Spec.RenewTime.UTC().Format("2006-01-02 15:04:05 MST"))
		return nil
	}
	uid, err := identity.ClusterUID(ctx, l.member)
	if err != nil {
		return err
	}
	if uid != beat.Spec.ClusterUID {
		l.r.Failf("on the hub, %q is another cluster (its kube-system has the UID %s, this one's %s): to take this one out, pass --from member", l.id, beat.Spec.ClusterUID, uid)
		return nil
	}
	return l.checkCopy(ctx, beat)
}

// checkCopy fails if the heartbeat on the hub is not that of the process that holds the Lease of this cluster, or held it last: then this
// cluster is a copy of the member, and its leaving would delete the member.
func (l *command) checkCopy(ctx context.Context, beat *hubv1alpha1.Heartbeat) error {
	if beat.Spec.Nonce == "" { // an older agent
		return nil
	}
	lease, isLast, err := identity.IsLastSender(ctx, l.hub, l.member, beat)
	if err != nil {
		return err
	}
	if lease == nil {
		l.r.Notef("this cluster has no Lease of an agent, so it cannot be checked that %s is not a copy of it", l.id)
		return nil
	}
	if !isLast {
		l.r.Failf("the last heartbeat of %q on the hub is not from the agent of this cluster, so this cluster can be a copy of the member: to take only this cluster out, pass --from member; "+
			"if this cluster is the member, run this again when its agent has sent a heartbeat, or use --from member here and then --from hub", l.id)
	}
	return nil
}
