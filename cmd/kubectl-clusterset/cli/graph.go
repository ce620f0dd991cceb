// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli/picture"
)

const aboutGraph = `Draw the clusterset: which members export and import each service, with the number of ready endpoints; conflicts; silent
members. Members are grouped by network. If importers use gateways, it shows which do, and whether their gateways reach those
of the exporters.

-o svg is a matrix of services and members that any browser can show. -o dot is a graph for graphviz. -n selects the services
of one namespace. Imports are shown for the members that can be reached.`

const examplesGraph = `  kubectl clusterset graph --file clusterset.svg
  kubectl clusterset graph -n shop -o dot | dot -Tpng > shop.png`

const (
	formatSVG format = "svg"
	formatDOT format = "dot"
)

// graphCommand is the state of the command graph.
type graphCommand struct {
	clustersetFlags
	output   format
	file     string
	out, err io.Writer
}

func newGraph(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	d := &graphCommand{out: streams.Out, err: streams.ErrOut}
	cmd := &cobra.Command{
		Use:     "graph",
		Short:   "draw the clusterset",
		Long:    aboutGraph,
		Example: examplesGraph,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context(), usual) },
	}
	d.addFlags(cmd.Flags())
	cmd.Flags().StringVarP((*string)(&d.output), "output", "o", string(formatSVG), "svg or dot")
	cmd.Flags().StringVarP(&d.file, "file", "f", "", "write it to this file")
	return cmd
}

func (d *graphCommand) run(ctx context.Context, usual *genericclioptions.ConfigFlags) error {
	if err := d.output.check(formatSVG, formatDOT); err != nil {
		return err
	}
	found, err := d.find(ctx, usual, d.err)
	if err != nil {
		return err
	}
	status := found.Status(ctx).InNamespace(*usual.Namespace)
	drawn := picture.SVG(status)
	if d.output == formatDOT {
		drawn = picture.DOT(status)
	}
	if d.file == "" {
		_, err := d.out.Write(drawn)
		return err
	}
	if err := os.WriteFile(d.file, drawn, 0o644); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}
