// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const aboutDiff = `Show what the agents would write now, in every cluster of the kubeconfig and on the hub, for one service or for all. In a
healthy clusterset the output is empty, because agents write a change within a second.

The command runs the agents' own controllers with dry-run requests. It shows writes that an API server would refuse with the
reason. Exit codes: 0 if nothing would be written; 1 if something would be written, if a member cannot be read (--contexts
selects the members), if the service does not exist, or on an error.`

// errDiffers says that agents have something to write. What it is has been printed.
var errDiffers = errors.New("there is something to write: see above")

func newDiff(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	d := &diffing{out: streams.Out}
	cmd := &cobra.Command{
		Use:     "diff [NAMESPACE/SERVICE]",
		Short:   "show what the agents would change now",
		Long:    aboutDiff,
		Example: "  kubectl clusterset diff\n  kubectl clusterset diff shop/cart",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.run(cmd.Context(), usual, streams.ErrOut, args)
		},
	}
	d.addFlags(cmd.Flags())
	return cmd
}

// diffing is a diff that is asked for.
type diffing struct {
	reading
	out io.Writer
	// namespace is the only one looked at, and key the only service; all if they are empty.
	namespace string
	key       *clusterset.ServiceKey
	// known says that a service was looked at, acts how many writes were shown.
	known bool
	acts  int
}

func (d *diffing) run(ctx context.Context, usual *genericclioptions.ConfigFlags, warnings io.Writer, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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
		look, err := m.Look(ctx, found.Hub, d.namespace)
		if err != nil {
			return err
		}
		if err := d.member(ctx, look); err != nil {
			return err
		}
	}
	switch missed := d.missed(found); {
	case d.acts > 0:
		return errors.Join(errDiffers, missed)
	case missed != nil:
		return missed
	case d.key != nil && !d.known:
		return fmt.Errorf("nothing is known of %s: no cluster that was read exports or imports it, and the hub has no record of it; "+
			"\"kubectl clusterset trace %s\" says why", d.key, d.key)
	}
	return nil
}

// missed returns an error that names what was to be looked at and was not: contexts that --contexts names, or else members that
// no context leads to.
func (d *diffing) missed(found *survey.Clusterset) error {
	var missed []string
	for _, u := range found.Unreached {
		if len(d.contexts) > 0 || u.Cluster != "" {
			missed = append(missed, "context "+u.Place)
		}
	}
	if len(d.contexts) == 0 {
		ids := found.Hub.Records.Members()
		slices.Sort(ids)
		for _, id := range ids {
			if found.Member(id) == nil {
				missed = append(missed, "member "+string(id))
			}
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return fmt.Errorf("not everything was read, so what its agent would write is not known: %s; "+
		"pass --contexts with those to read", strings.Join(missed, ", "))
}

// member shows what the agent of one member would write: about the service given, or all.
func (d *diffing) member(ctx context.Context, look *survey.Look) error {
	keys, err := look.Keys(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if d.namespace != "" && d.namespace != key.Namespace || d.key != nil && *d.key != key {
			continue
		}
		d.known = true
		r, err := look.Rehearse(ctx, key)
		if err != nil {
			return err
		}
		for _, a := range r.Published {
			d.show("the hub, by "+string(look.Member.ID), a)
		}
		for _, a := range append(r.Status, r.Imported...) {
			d.show(string(look.Member.ID), a)
		}
	}
	return nil
}

// show prints one write: the object, why it would be refused, and what would change.
func (d *diffing) show(where string, a apply.Act) {
	d.acts++
	kind := strings.TrimPrefix(fmt.Sprintf("%T", a.Object), "*")
	fmt.Fprintf(d.out, "%s: %s %s %s\n", where, a.Verb, kind[strings.Index(kind, ".")+1:], client.ObjectKeyFromObject(a.Object))
	if a.Err != nil {
		fmt.Fprintf(d.out, "  would be refused: %s\n", plain(a.Err.Error()))
	}
	if a.Observed == nil || a.Verb == "delete" {
		return
	}
	for _, line := range strings.Split(strings.TrimRight(cmp.Diff(essence(a.Observed), essence(a.Object)), "\n"), "\n") {
		line = strings.NewReplacer("\u00a0", " ", "\t", "  ").Replace(line) // cmp's spaces vary, so that nobody parses them
		fmt.Fprintf(d.out, "  %s\n", plain(line))
	}
}

// essence returns an object without what an API server adds to it at each write.
func essence(o client.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return map[string]any{"unreadable": err.Error()}
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, field := range []string{"resourceVersion", "managedFields", "generation", "uid", "creationTimestamp"} {
			delete(metadata, field)
		}
	}
	return content
}
