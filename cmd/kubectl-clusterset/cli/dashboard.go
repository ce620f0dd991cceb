// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli/picture"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/dashboard"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
)

const aboutDashboard = `Show the clusterset in a browser: its problems, its clusters by network, the state of each service in each cluster, and what has
changed since the command began. The page is updated when something changes. A service shows on request how its exports are merged
(as explain does), and the first hop at which it is broken (as trace does).

The command serves the page on 127.0.0.1 until it is interrupted, and prints the link. The link opens the page in one browser, once. The
page needs no installation and no access to the internet. It only reads, with your rights.

It reads the hub and the cluster of the current context; --contexts or --all-contexts reads more members. -n selects the services of one
namespace. status -o json prints the same data, and graph draws it as a file.`

const examplesDashboard = `  kubectl clusterset dashboard --all-contexts
  kubectl clusterset dashboard --contexts east,west --port 8080`

// dashboardCommand is the state of the command dashboard.
type dashboardCommand struct {
	clustersetFlags
	port     uint16
	out, err io.Writer
}

func newDashboard(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	d := &dashboardCommand{out: streams.Out, err: streams.ErrOut}
	cmd := &cobra.Command{
		Use:     "dashboard",
		Short:   "show the clusterset in a browser",
		Long:    aboutDashboard,
		Example: examplesDashboard,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context(), usual) },
	}
	d.addFlags(cmd.Flags())
	cmd.Flags().Uint16Var(&d.port, "port", 0, "port of 127.0.0.1 on which the page is served; 0 for any free port")
	return cmd
}

func (d *dashboardCommand) run(ctx context.Context, usual *genericclioptions.ConfigFlags) error {
	found, err := d.find(ctx, usual, d.err)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(d.port))))
	if err != nil {
		return fmt.Errorf("--port=%d: %w", d.port, err)
	}
	server := dashboard.New(picture.SVG)
	fmt.Fprintf(d.out, "%s\nThis link opens the dashboard in one browser. Interrupt the command to end it.\n", server.URL(listener.Addr()))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(ctx, listener) })
	group.Go(func() error {
		return found.Watch(ctx, func(o survey.Observation) error {
			o.Status = o.Status.InNamespace(*usual.Namespace)
			return server.Publish(o)
		})
	})
	return group.Wait()
}
