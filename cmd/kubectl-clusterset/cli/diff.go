// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const aboutDiff = `Show what the agents would write now, in their clusters and on the hub, for one service or for all: the agent of the current
context's cluster, or those of --contexts or --all-contexts. In a healthy clusterset the output is empty, because agents write
a change within a second.

The command runs the agents' own controllers with dry-run requests. It shows writes that an API server would refuse with the
reason. Exit codes, as those of kubectl diff: 0 if nothing would be written, 1 if something would be written, 2 on an error,
which includes a context that cannot be read, a member without a context if --all-contexts is given, and a service of which
nothing is known.`

// errDiffers is returned if agents have pending writes. These have been printed.
var errDiffers = errors.New("there is something to write: see above")

func newDiff(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	d := &diffCommand{out: streams.Out}
	cmd := &cobra.Command{
		Use:     "diff [NAMESPACE/SERVICE]",
		Short:   "show what the agents would change now",
		Long:    aboutDiff,
		Example: "  kubectl clusterset diff\n  kubectl clusterset diff shop/cart --all-contexts\n  kubectl clusterset diff -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := d.run(cmd.Context(), usual, streams.ErrOut, args)
			if err != nil && !errors.Is(err, errDiffers) {
				err = diffError{err}
			}
			return err
		},
	}
	d.addFlags(cmd.Flags())
	addOutput(cmd, &d.output, "json or yaml; defaults to text", formatJSON, formatYAML)
	cmd.ValidArgsFunction = at(0, completeWith(completer{usual}.keys(&d.hubFlags)))
	return cmd
}

// diffCommand is the state of the command diff.
type diffCommand struct {
	clustersetFlags
	out    io.Writer
	output format
	// namespace and key restrict what is read; empty values mean all.
	namespace string
	key       *clusterset.ServiceKey
	// found is true if a service was read.
	found  bool
	writes []pendingWrite
}

func (d *diffCommand) run(ctx context.Context, usual *genericclioptions.ConfigFlags, warnings io.Writer, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.output.check(formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	d.namespace = *usual.Namespace
	if len(args) > 0 {
		key, err := serviceKey(usual, args[0])
		if err != nil {
			return err
		}
		d.key, d.namespace = &key, key.Namespace
	}
	found, err := d.find(ctx, usual, warnings)
	if err != nil {
		return err
	}
	for _, m := range found.Members {
		view, err := m.Read(ctx, found.Hub, d.namespace)
		if err != nil {
			return err
		}
		if err := d.member(ctx, view); err != nil {
			return err
		}
	}
	if d.output.isData() {
		if err := printData(d.out, d.output, newPendingWrites(d.writes)); err != nil {
			return err
		}
	}
	switch missing := d.notRead(found); {
	case missing != nil:
		return missing
	case len(d.writes) > 0:
		return errDiffers
	case d.key != nil && !d.found:
		return fmt.Errorf("nothing is known of %s: no cluster that was read exports or imports it, and the hub has no record of it; "+
			"\"kubectl clusterset trace %s\" says why", d.key, d.key)
	}
	return nil
}

// notRead returns an error that names what could not be read of what was asked for: contexts, and with --all-contexts members without
// a context.
func (d *diffCommand) notRead(found *survey.Clusterset) error {
	var missing []string
	for _, u := range found.Unreached {
		if !d.all || u.Cluster != "" {
			missing = append(missing, "context "+u.Context)
		}
	}
	if d.all {
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

// member prints the writes of one member's agent, for the given service or all.
func (d *diffCommand) member(ctx context.Context, view *survey.MemberView) error {
	keys, err := view.Keys(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if d.namespace != "" && d.namespace != key.Namespace || d.key != nil && *d.key != key {
			continue
		}
		d.found = true
		r, err := view.DryRun(ctx, key)
		if err != nil {
			return err
		}
		for _, a := range r.Published {
			d.add(pendingOnHub, view.Member.ID, a)
		}
		for _, a := range append(r.Status, r.Imported...) {
			d.add(pendingInMember, view.Member.ID, a)
		}
	}
	return nil
}
