// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const aboutLeave = `Remove the current context's cluster from its clusterset.

The command first stops the agent. Then it suspends the Member on the hub, so that the other members stop using its pods,
waits for the next heartbeat of each connected member, for three heartbeat intervals (30 seconds by default, at most a
minute), and lists members that sent none. It deletes the Member with all its records, and then everything that Tombolo has
created in the cluster. The users' ServiceExports, grants and policies stay, without status, and so do their kinds. The
command asks before its first change, unless --yes is given.

If one side no longer exists, leave on the other side only: --from hub if the cluster no longer exists (with --cluster-id),
--from member if the hub no longer exists. Run the command again after an interruption.`

const examplesLeave = `  kubectl clusterset leave --context east --hub-context hub --dry-run
  kubectl clusterset leave --context east --hub-context hub --yes

  # east no longer exists
  kubectl clusterset leave --from hub --cluster-id east --hub-context hub

  # the hub no longer exists
  kubectl clusterset leave --from member --context east`

// leaveScope states on which sides objects are deleted.
type leaveScope string

const (
	both       leaveScope = "both"
	hubOnly    leaveScope = "hub"
	memberOnly leaveScope = "member"
)

func newLeave(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	l := &leaveCommand{confirm: confirmation{streams: streams}}
	cmd := &cobra.Command{
		Use:     "leave",
		Short:   "remove a cluster from the clusterset",
		Long:    aboutLeave,
		Example: examplesLeave,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l.r = l.report(streams)
			if err := l.connect(usual); err != nil {
				return err
			}
			return l.run(cmd.Context())
		},
	}
	l.addFlags(cmd)
	l.confirm.addFlags(cmd.Flags())
	l.hubFlags.add(cmd.Flags())
	cmd.Flags().StringVar(&l.given, "cluster-id", "", "the ID of the cluster that leaves; defaults to its ClusterProperty")
	cmd.Flags().StringVar((*string)(&l.from), "from", string(both), "both; hub: the cluster no longer exists; member: the hub no longer exists")
	return cmd
}

// leaveCommand is the state of the command leave.
type leaveCommand struct {
	writeFlags
	hubFlags hubFlags
	confirm  confirmation
	given    string
	from     leaveScope
	r        *report

	hub, member *cluster // nil if the scope excludes it
	id          clusterset.ClusterID
}

func (l *leaveCommand) connect(usual *genericclioptions.ConfigFlags) error {
	switch l.from {
	case both:
		hub, member, err := connectBoth(usual, &l.hubFlags, l.writeFlags)
		if err != nil {
			return fmt.Errorf("%w; if one of the two no longer exists, see --from", err)
		}
		l.hub, l.member = hub, member
		return nil
	case hubOnly:
		if l.given == "" {
			return usageError{fmt.Errorf("which member no longer exists? Pass --cluster-id")}
		}
		config, err := l.hubFlags.config(usual)
		if err != nil {
			return err
		}
		l.hub, err = connect("the hub", "--hub-kubeconfig and --hub-context", config, l.writeFlags)
		return err
	case memberOnly:
		config, err := usual.ToRESTConfig()
		if err != nil {
			return usageError{err}
		}
		l.member, err = connect("this cluster", "--kubeconfig and --context", config, l.writeFlags)
		return err
	}
	return usageError{fmt.Errorf("--from=%s: must be both, hub or member", l.from)}
}

func (l *leaveCommand) run(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	if err := l.r.checkError(); err != nil {
		return err
	}
	if !l.isDryRun() {
		if err := l.confirm.ask(ctx, "%s", l.consequence()); err != nil {
			return err
		}
	}
	if l.member != nil {
		l.r.titlef("%s", l.heading("In this cluster, the agent"))
		if err := l.stopAgent(ctx); err != nil {
			return err
		}
	}
	if l.hub != nil {
		l.r.titlef("%s", l.heading("On the hub"))
		if err := l.suspend(ctx); err != nil {
			return err
		}
		if err := l.deleteMember(ctx); err != nil {
			return err
		}
	}
	if l.member != nil {
		l.r.titlef("%s", l.heading("In this cluster, all other objects"))
		if err := l.clean(ctx); err != nil {
			return err
		}
	}
	if !l.isDryRun() {
		l.r.titlef("%s has left.", l.name())
		l.noteHub()
	}
	return nil
}

// noteHub says how the records on the hub are deleted if only the member's side has been.
func (l *leaveCommand) noteHub() {
	if l.from != memberOnly {
		return
	}
	id := cmp.Or(string(l.id), "ID")
	l.r.notef("if the hub still exists, it keeps the Member and the records: kubectl clusterset leave --from hub --cluster-id %s --hub-context HUB", id)
}

// consequence returns what the command is about to do.
func (l *leaveCommand) consequence() string {
	switch l.from {
	case hubOnly:
		return fmt.Sprintf("On the hub, %s and all of its records are deleted: the other members stop using its services.", l.name())
	case memberOnly:
		return fmt.Sprintf("In %s, all imports, the agent and the DNS of the clusterset are deleted.", l.member.config.Host)
	case both:
	}
	return fmt.Sprintf("%s leaves the clusterset: the other members stop using its services, and its imports, its agent and its DNS of the clusterset are deleted.", l.name())
}

func (l *leaveCommand) name() string {
	if l.id == "" {
		return "This cluster"
	}
	return string(l.id)
}

// deleteMember deletes the member's objects on the hub, and waits until they do not exist.
func (l *leaveCommand) deleteMember(ctx context.Context) error {
	objects, err := manifests.Member(manifests.MemberOptions{ClusterID: l.id})
	if err != nil {
		return err
	}
	slices.Reverse(objects)
	return deleteObjects(ctx, l.hub, objects, l.r, func(o *unstructured.Unstructured) bool {
		return o.GetNamespace() == "" // the API server deletes the rest with the namespace
	})
}

// deleteExisting deletes the objects in reverse order. It does not report those that do not exist.
func deleteExisting(ctx context.Context, c *cluster, objects []*unstructured.Unstructured, r *report) error {
	for _, object := range slices.Backward(objects) {
		outcome, err := c.install.Delete(ctx, object)
		if err != nil {
			return err
		}
		if outcome != install.NotFound {
			r.deleted(outcome, object, object.GroupVersionKind().GroupKind())
		}
	}
	return nil
}

// deleteObjects deletes the objects that pick selects, in their order, and waits until they do not exist.
func deleteObjects(ctx context.Context, c *cluster, objects []*unstructured.Unstructured, r *report, pick func(*unstructured.Unstructured) bool) error {
	for _, object := range objects {
		if !pick(object) {
			continue
		}
		outcome, err := c.install.Delete(ctx, object)
		if err != nil {
			return err
		}
		r.deleted(outcome, object, object.GroupVersionKind().GroupKind())
		if outcome == install.Deleted && !c.install.IsDryRun() {
			if err := awaitDeleted(ctx, c, object); err != nil {
				return err
			}
		}
	}
	return nil
}
