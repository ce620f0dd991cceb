// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard implements the command dashboard: it serves the page until it is interrupted.
package dashboard

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	page "github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/dashboard"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/picture"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/watch"
)

const about = `Show the clusterset in a browser: its problems, its clusters by network, the state of each service in each cluster, and
what has changed since the command began. On request, it shows how the exports of a service are merged (as explain does), and the
first hop at which the service is broken (as trace does).

The command serves the page on 127.0.0.1 until it is interrupted, and prints a link, which opens the page in one browser,
once. The page only reads, with your rights, and needs no access to the internet.

It reads the hub and the cluster of the current context; --contexts or --all-contexts reads more members. -n selects the
services of one namespace.

The exit code is 3 if something could not be read when the command was interrupted.`

const examples = `  kubectl clusterset dashboard --all-contexts
  kubectl clusterset dashboard --contexts east,west --port 8080`

// command is the state of the command dashboard.
type command struct {
	reading.Flags
	port     uint16
	out, err io.Writer
}

// New returns the command dashboard.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	d := &command{out: streams.Out, err: streams.ErrOut}
	cmd := &cobra.Command{
		Use:     "dashboard",
		Short:   "show the clusterset in a browser",
		Long:    about,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return d.run(cmd.Context(), usual) },
	}
	d.AddFlags(cmd.Flags())
	cmd.Flags().Uint16Var(&d.port, "port", 0, "port of 127.0.0.1 on which the page is served; 0 for any free port")
	return cmd
}

func (d *command) run(ctx context.Context, usual *genericclioptions.ConfigFlags) error {
	found, err := d.Find(ctx, usual, d.err)
	if err != nil {
		return err
	}
	reading.NoteUnread(d.err, found.Unread)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(d.port))))
	if err != nil {
		return fmt.Errorf("--port=%d: %w", d.port, err)
	}
	server := page.New(picture.SVG)
	fmt.Fprintf(d.out, "%s\nThis link opens the dashboard in one browser. Interrupt the command to end it.\n", server.URL(listener.Addr()))
	read := reading.CompletenessOf(found)
	publish := func(o watch.Observation) error {
		o.Status = o.Status.InNamespace(*usual.Namespace)
		read = reading.Completeness(o.Status.IsComplete() && len(o.Unanswered) == 0)
		return server.Publish(o)
	}
	group, serving := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(serving, listener) })
	group.Go(func() error { return d.watch(serving, found, publish) })
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return read.Verdict(nil) // an interruption is the usual end
}

// watch shows the clusterset until ctx ends. If something could not be read, it tries again, and starts anew when more can be read.
func (d *command) watch(ctx context.Context, found *survey.Clusterset, publish func(watch.Observation) error) error {
	for {
		watching, stop := context.WithCancel(ctx)
		more := make(chan *survey.Clusterset, 1)
		go func() {
			if next := d.awaitMore(watching, len(found.Unread)); next != nil {
				more <- next
				stop()
			}
		}()
		err := watch.Run(watching, found, publish)
		stop()
		select {
		case found = <-more:
		default:
			return err
		}
	}
}

// awaitMore returns the clusterset when less of it is unread, with increasing pauses between the attempts; nil if ctx ends.
func (d *command) awaitMore(ctx context.Context, unread int) *survey.Clusterset {
	if unread == 0 {
		return nil
	}
	backoff := wait.Backoff{Duration: 2 * time.Second, Factor: 1.5, Jitter: 0.2, Steps: 8, Cap: 30 * time.Second}
	var result *survey.Clusterset
	_ = backoff.DelayFunc().Until(ctx, false, true, func(ctx context.Context) (bool, error) { // it ends with ctx
		found, err := survey.Find(ctx, d.Options)
		if err != nil || len(found.Unread) >= unread {
			return false, nil //nolint:nilerr // the page shows what cannot be read
		}
		result = found
		return true, nil
	})
	return result
}
