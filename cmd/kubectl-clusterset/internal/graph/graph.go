// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package graph implements the command graph: it draws the clusterset.
package graph

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

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/picture"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/watch"
)

const about = `Draw the clusterset: which members export and import each service, with the number of ready endpoints; conflicts; silent
members; networks, and whether gateways reach each other.

-o svg is a matrix of services and members: write it to a file, with --file or >. -o dot is a graph for graphviz. -o json and
-o yaml print what is drawn, as status does. -n selects the services of one namespace. Imports are shown for the members that
are read (--contexts, --all-contexts).

The exit code is 3 if the hub or a cluster could not be read completely: the rest is drawn.`

const examples = `  kubectl clusterset graph --all-contexts --file clusterset.svg
  kubectl clusterset graph --all-contexts -n shop -o dot | dot -Tpng > shop.png`

const (
	formatSVG output.Format = "svg"
	formatDOT output.Format = "dot"
)

// command is the state of the command graph.
type command struct {
	reading.Flags
	output   output.Format
	file     string
	out, err io.Writer
}

// New returns the command graph.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	d := &command{out: streams.Out, err: streams.ErrOut}
	cmd := &cobra.Command{
		Use:     "graph",
		Short:   "draw the clusterset",
		Long:    about,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context(), usual) },
	}
	d.AddFlags(cmd.Flags())
	d.output = formatSVG
	output.AddFormat(cmd, &d.output, "svg, dot, json or yaml", formatSVG, formatDOT, output.JSON, output.YAML)
	cmd.Flags().StringVar(&d.file, "file", "", "write it to this file")
	return cmd
}

func (d *command) run(ctx context.Context, usual *genericclioptions.ConfigFlags) error {
	if d.output == formatSVG && d.file == "" && output.IsTerminal(d.out) {
		return output.Usage(errSVGOnTerminal)
	}
	found, err := d.Find(ctx, usual, d.err)
	if err != nil {
		return err
	}
	status := watch.Once(ctx, found).InNamespace(*usual.Namespace)
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
	return reading.Completeness(status.IsComplete()).Verdict(nil)
}

// reading.NoteUnread prints what could not be read: a picture has no problems.
func (d *command) noteUnread(status assess.Status) {
	for _, p := range status.Unread() {
		reading.NoteFailure(d.err, p.Message, p.Next)
	}
}

// errSVGOnTerminal is returned instead of an image that a terminal cannot show.
var errSVGOnTerminal = errors.New("a terminal cannot show SVG: pass --file clusterset.svg, or -o dot")

// draw returns the status in the format of the command.
func (d *command) draw(status assess.Status) ([]byte, error) {
	switch d.output {
	case formatDOT:
		return picture.DOT(status), nil
	case output.JSON, output.YAML:
		var out bytes.Buffer
		err := output.PrintData(&out, d.output, status)
		return out.Bytes(), err
	case formatSVG, output.Text, output.Wide:
	}
	return picture.SVG(status), nil
}
