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

// errDiffers is returned if agents have pending writes. These have been printed.
var errDiffers = errors.New("there is something to write: see above")

func newDiff(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	d := &diffCommand{out: streams.Out}
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

// diffCommand is the state of the command diff.
type diffCommand struct {
	clustersetFlags
	out io.Writer
	// namespace and key restrict what is read; empty values mean all.
	namespace string
	key       *clusterset.ServiceKey
	// found is true if a service was read, writes counts the writes that were printed.
	found  bool
	writes int
}

func (d *diffCommand) run(ctx context.Context, usual *genericclioptions.ConfigFlags, warnings io.Writer, args []string) error {
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
		view, err := m.Read(ctx, found.Hub, d.namespace)
		if err != nil {
			return err
		}
		if err := d.member(ctx, view); err != nil {
			return err
		}
	}
	switch missing := d.notRead(found); {
	case d.writes > 0:
		return errors.Join(errDiffers, missing)
	case missing != nil:
		return missing
	case d.key != nil && !d.found:
		return fmt.Errorf("nothing is known of %s: no cluster that was read exports or imports it, and the hub has no record of it; "+
			"\"kubectl clusterset trace %s\" says why", d.key, d.key)
	}
	return nil
}

// notRead returns an error that names what could not be read: the contexts of --contexts, or else the members without a context.
func (d *diffCommand) notRead(found *survey.Clusterset) error {
	var missing []string
	for _, u := range found.Unreached {
		if len(d.contexts) > 0 || u.Cluster != "" {
			missing = append(missing, "context "+u.Context)
		}
	}
	if len(d.contexts) == 0 {
		ids := found.Hub.Records.Members()
		slices.Sort(ids)
		for _, id := range ids {
			if found.Member(id) == nil {
				missing = append(missing, "member "+string(id))
			}
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
			d.printWrite("the hub, by "+string(view.Member.ID), a)
		}
		for _, a := range append(r.Status, r.Imported...) {
			d.printWrite(string(view.Member.ID), a)
		}
	}
	return nil
}

// printWrite prints one write: the object, the reason of a refusal, and the differences.
func (d *diffCommand) printWrite(where string, a apply.DryRunWrite) {
	d.writes++
	kind := strings.TrimPrefix(fmt.Sprintf("%T", a.Object), "*")
	fmt.Fprintf(d.out, "%s: %s %s %s\n", where, a.Verb, kind[strings.Index(kind, ".")+1:], client.ObjectKeyFromObject(a.Object))
	if a.Err != nil {
		fmt.Fprintf(d.out, "  would be refused: %s\n", plain(a.Err.Error()))
	}
	if a.Existing == nil || a.Verb == "delete" {
		return
	}
	for _, line := range strings.Split(strings.TrimRight(cmp.Diff(withoutServerFields(a.Existing), withoutServerFields(a.Object)), "\n"), "\n") {
		line = strings.NewReplacer("\u00a0", " ", "\t", "  ").Replace(line) // cmp varies its spaces, so that its output is not parsed
		fmt.Fprintf(d.out, "  %s\n", plain(line))
	}
}

// withoutServerFields returns an object without the fields that an API server sets at each write.
func withoutServerFields(o client.Object) map[string]any {
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
