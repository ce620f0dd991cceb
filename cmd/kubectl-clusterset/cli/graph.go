// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli/picture"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
)

const aboutGraph = `Draw the clusterset: which members export and import each service, with the number of ready endpoints; conflicts; silent
members; networks, and whether gateways reach each other.

-o svg is a matrix of services and members: write it to a file, with --file or >. -o dot is a graph for graphviz. -o json and
-o yaml print what is drawn, as status does. -n selects the services of one namespace. Imports are shown for the members that
are read (--contexts, --all-contexts).

The exit code is 3 if the hub or a cluster could not be read completely: the rest is drawn.`

const examplesGraph = `  kubectl clusterset graph --all-contexts --file clusterset.svg
  kubectl clusterset graph --all-contexts -n shop -o dot | dot -Tpng > shop.png`

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
	d.output = formatSVG
	addOutput(cmd, &d.output, "svg, dot, json or yaml", formatSVG, formatDOT, formatJSON, formatYAML)
	cmd.Flags().StringVar(&d.file, "file", "", "write it to this file")
	return cmd
}

func (d *graphCommand) run(ctx context.Context, usual *genericclioptions.ConfigFlags) error {
	if err := d.output.check(formatSVG, formatDOT, formatJSON, formatYAML); err != nil {
		return err
	}
	if d.output == formatSVG && d.file == "" && isTerminal(d.out) {
		return usageError{errSVGOnTerminal}
	}
	found, err := d.find(ctx, usual, d.err)
	if err != nil {
		return err
	}
	status := found.Status(ctx).InNamespace(*usual.Namespace)
	drawn, err := d.draw(status)
	if err != nil {
		return err
	}
	if d.file == "" {
		_, err = d.out.Write(drawn)
	} else {
		err = os.WriteFile(d.file, drawn, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	d.noteUnread(status)
	return completeness(status.IsComplete()).verdict(nil)
}

// noteUnread prints what could not be read: a picture has no problems.
func (d *graphCommand) noteUnread(status survey.Status) {
	for _, p := range status.Unread() {
		noteFailure(d.err, p.Message, p.Next)
	}
}

// errSVGOnTerminal is returned instead of an image that a terminal cannot show.
var errSVGOnTerminal = errors.New("a terminal cannot show SVG: pass --file clusterset.svg, or -o dot")

// draw returns the status in the format of the command.
func (d *graphCommand) draw(status survey.Status) ([]byte, error) {
	switch d.output {
	case formatDOT:
		return picture.DOT(status), nil
	case formatJSON, formatYAML:
		var out bytes.Buffer
		err := printData(&out, d.output, status)
		return out.Bytes(), err
	case formatSVG, formatTable, formatWide:
	}
	return picture.SVG(status), nil
}
