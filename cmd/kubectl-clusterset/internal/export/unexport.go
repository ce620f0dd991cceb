// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const aboutUnexport = `Stop exporting Services of the current context's cluster: delete their ServiceExports.

The other clusters stop sending traffic to this one at once. If no other cluster exports the service, its imports and names
are deleted. The Services themselves stay. Select Services by name, by label with -l, or with --all; -l and --all ask before
they delete.`

const examplesUnexport = `  kubectl clusterset unexport shop/web
  kubectl clusterset unexport --all -n shop --context east --dry-run
  kubectl clusterset unexport --all -n shop --context east --yes`

// unexportCommand is the state of the command unexport.
type unexportCommand struct {
	selection
	confirm output.Confirmation
}

// NewUnexport returns the command unexport.
func NewUnexport(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	u := &unexportCommand{confirm: output.Confirmation{Streams: streams}}
	cmd := &cobra.Command{
		Use:     "unexport [NAMESPACE/]SERVICE...",
		Short:   "stop exporting Services of a cluster",
		Long:    aboutUnexport,
		Example: examplesUnexport,
	}
	u.define(cmd, usual, streams, connection.Completer{Usual: usual}.Exports, u.run)
	u.confirm.AddFlags(cmd.Flags())
	return cmd
}

func (u *unexportCommand) run(ctx context.Context) error {
	u.r.Titlef("Checking")
	names, err := u.check(ctx)
	if err != nil {
		return err
	}
	if err := u.r.CheckError(); err != nil {
		return err
	}
	if u.isSelector() && !u.IsDryRun() && len(names) > 0 {
		if err := u.confirm.Ask(ctx, "%d ServiceExports of namespace %s are deleted, and the other clusters stop using these services.", len(names), u.namespace); err != nil {
			return err
		}
	}
	u.r.Titlef("%s", u.Heading("In this cluster"))
	for _, name := range names {
		object := newServiceExport(u.namespace, name)
		outcome, err := u.member.Install.Delete(ctx, object)
		if err != nil {
			return err
		}
		u.r.Deleted(outcome, object, object.GroupVersionKind().GroupKind())
	}
	return nil
}

// check returns the ServiceExports to delete, sorted. It fails for a name without a ServiceExport, which may be a typing error.
func (u *unexportCommand) check(ctx context.Context) ([]string, error) {
	if err := u.checkKinds(ctx); err != nil {
		return nil, err
	}
	list := &mcsv1beta1.ServiceExportList{}
	if err := u.member.Client.List(ctx, list, client.InNamespace(u.namespace)); err != nil {
		return nil, fmt.Errorf("list ServiceExports of namespace %s: %w", u.namespace, err)
	}
	wanted, err := u.wanted(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		if name := list.Items[i].Name; u.all || slices.Contains(wanted, name) {
			u.r.Okf("Service %s is exported", name)
			if clusterset.IsAutomatic(&list.Items[i]) {
				u.r.Notef("an agent with --%s has exported %s because of the label %s, and does so again as long as the Service or its Namespace has it: set it to \"false\" on the Service instead",
					workload.AutoExportFlag, name, clusterset.LabelAutoExport)
			}
			names = append(names, name)
		}
	}
	for _, name := range u.names {
		if !slices.Contains(names, name) {
			u.r.Failf("there is no ServiceExport %s in namespace %s: see kubectl get serviceexports -A", name, u.namespace)
		}
	}
	if len(names) == 0 && u.isSelector() {
		u.r.Notef("no ServiceExport of namespace %s is picked", u.namespace)
	}
	slices.Sort(names)
	return names, nil
}

// wanted returns the names of the selected Services.
func (u *unexportCommand) wanted(ctx context.Context) ([]string, error) {
	if u.all || !u.isSelector() {
		return u.names, nil // the Services may not exist
	}
	services, err := u.services(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range services {
		names = append(names, s.name)
	}
	return names, nil
}
