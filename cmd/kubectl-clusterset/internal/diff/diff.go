// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff implements the command diff: it prints what the agents would write now.
package diff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/dryrun"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const about = `Show what the agents would write now, in their clusters and on the hub, for one service or for all: the agent of the current
context's cluster, or the agents of --contexts or --all-contexts. In a healthy clusterset the output is empty.

The command runs the agents' own controllers with dry-run requests. It shows writes that an API server would refuse with the
reason. Exit codes as of kubectl diff: 0 if nothing would be written, 1 if something would be written, 2 on an error, for
example if the hub or a context cannot be read. What can be read is compared nevertheless.`

// Errors of a diff that has compared nothing.
var (
	errHubDecides      = errors.New("nothing was compared: what an agent writes depends on the hub, which could not be read; see above")
	errNothingCompared = errors.New("nothing was compared: none of the contexts that were read leads to a member; pass those of members in --context or --contexts, or pass --all-contexts")
)

// errDiffers is returned if agents have pending writes. These have been printed.
var errDiffers = errors.New("there is something to write: see above")

// New returns the command diff.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	d := &command{out: streams.Out}
	cmd := &cobra.Command{
		Use:     "diff [NAMESPACE/SERVICE]",
		Short:   "show what the agents would change now",
		Long:    about,
		Example: "  kubectl clusterset diff\n  kubectl clusterset diff shop/cart --all-contexts\n  kubectl clusterset diff -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := d.run(cmd.Context(), usual, streams.ErrOut, args)
			if err != nil && !errors.Is(err, errDiffers) {
				err = output.DiffFailed(err)
			}
			return err
		},
	}
	d.AddFlags(cmd.Flags())
	output.AddFormat(cmd, &d.output, "json or yaml; defaults to text", output.JSON, output.YAML)
	cmd.ValidArgsFunction = output.CompleteAt(0, connection.Completer{Usual: usual}.Keys(&d.HubFlags))
	return cmd
}

// command is the state of the command diff.
type command struct {
	reading.Flags
	out    io.Writer
	output output.Format
	// namespace and key restrict what is read; empty values mean all.
	namespace string
	key       *clusterset.ServiceKey
	// found is true if a service was read.
	found  bool
	writes []pendingWrite
	// failed are the members that could not be compared completely.
	failed []string
}

func (d *command) run(ctx context.Context, usual *genericclioptions.ConfigFlags, warnings io.Writer, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.namespace = *usual.Namespace
	if len(args) > 0 {
		key, err := connection.ServiceKey(usual, args[0])
		if err != nil {
			return err
		}
		d.key, d.namespace = &key, key.Namespace
	}
	found, err := d.Find(ctx, usual, warnings)
	if err != nil {
		return err
	}
	reading.NoteUnread(warnings, found.Unread)
	if !found.Hub.IsRead() {
		return errHubDecides
	}
	if len(found.Members) == 0 && len(found.Unread) == 0 {
		return errNothingCompared
	}
	for _, m := range found.Members {
		if err := d.member(ctx, found.Hub, m); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			failure := apiserver.FailureOf(err, m.KubeContext.Name)
			reading.NoteFailure(warnings, fmt.Sprintf("what the agent of %s would write is not known completely: %s", m.ID, failure.Message), failure.Next)
			d.failed = append(d.failed, "member "+string(m.ID))
		}
	}
	if d.output.IsData() {
		if err := output.PrintData(d.out, d.output, newPendingWrites(d.writes)); err != nil {
			return err
		}
	}
	switch missing := d.notRead(found); {
	case missing != nil:
		return missing
	case len(d.writes) > 0:
		return errDiffers
	case d.key == nil && d.namespace != "" && !d.found:
		return fmt.Errorf("nothing was compared: no service of namespace %s is exported or imported in the clusters that were read, and the hub has no record of one", d.namespace)
	case d.key != nil && !d.found:
		return fmt.Errorf("nothing is known of %s: no cluster that was read exports or imports it, and the hub has no record of it; "+
			"\"kubectl clusterset trace %s\" says why", d.key, d.key)
	}
	return nil
}

// notRead returns an error that names what could not be read of what was asked for: contexts, and with --all-contexts members without
// a context.
func (d *command) notRead(found *survey.Clusterset) error {
	var missing []string
	for _, u := range found.Unreached {
		isUnread := slices.ContainsFunc(found.Unread, func(unread survey.Unread) bool { return unread.Context == u.Context })
		if !d.All || u.Cluster != "" || isUnread {
			missing = append(missing, "context "+u.Context)
		}
	}
	missing = append(missing, d.failed...)
	if d.All {
		for _, id := range found.NotRead() {
			missing = append(missing, "member "+string(id))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("not everything was read, so what its agent would write is not known: %s; "+
		"pass --contexts with those to read", strings.Join(missing, ", "))
}

// member prints the writes of one member's agent, for the given service or all. A service that cannot be read does not stop the others.
func (d *command) member(ctx context.Context, h *survey.Hub, m *survey.Member) error {
	view, err := dryrun.Read(ctx, m, h, d.namespace)
	if err != nil {
		return err
	}
	keys, err := view.Keys(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, key := range keys {
		if d.namespace != "" && d.namespace != key.Namespace || d.key != nil && *d.key != key {
			continue
		}
		d.found = true
		r, err := view.Service(ctx, key)
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		failed = cmp.Or(failed, r.Unread())
		for _, a := range r.Published {
			d.add(pendingOnHub, view.Member.ID, a)
		}
		for _, a := range append(r.Status, r.Imported...) {
			d.add(pendingInMember, view.Member.ID, a)
		}
	}
	return failed
}
