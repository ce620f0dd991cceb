// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundle implements the command bundle: it writes an archive for a bug report.
package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	archive "github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/bundle"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
)

const about = `Collect the data for a bug report into one archive, of the hub and of the clusters whose contexts are read (--contexts,
--all-contexts): status, the merge of services with problems, records, exports, imports, derived objects, grants and
policies, Tombolo's Deployments, pods, Events and logs, and all versions.

The command does not read Secrets, and removes annotations, values of environment variables, and anything that resembles a
credential. The archive contains names of namespaces and services, and addresses: check it before you share it.

The exit code is 3 if the hub, a cluster or some of the data could not be read: left-out.txt in the archive says what.`

const examples = `  kubectl clusterset bundle --all-contexts --file clusterset.tar.gz
  tar -tzf clusterset.tar.gz`

// command is the state of the command bundle.
type command struct {
	reading.Flags
	file     string
	out, err io.Writer
}

// New returns the command bundle.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	b := &command{out: streams.Out, err: streams.ErrOut}
	cmd := &cobra.Command{
		Use:     "bundle",
		Short:   "collect the data for a bug report",
		Long:    about,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return b.run(cmd.Context(), usual, cmd.Root().Version)
		},
	}
	b.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&b.file, "file", "clusterset.tar.gz", "write it to this file, which must not exist")
	return cmd
}

func (b *command) run(ctx context.Context, usual *genericclioptions.ConfigFlags, version string) error {
	found, err := b.Find(ctx, usual, b.err)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(b.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%w: name another with --file", err)
	}
	reading.NoteUnread(b.err, found.Unread)
	missing, err := archive.Write(ctx, file, found, version)
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(b.file))
	}
	for _, text := range missing {
		fmt.Fprintf(b.err, "note: not in the bundle: %s\n", output.Plain(text))
	}
	fmt.Fprintf(b.out, "%s holds what can be seen of %d members. Look into it before you hand it on.\n", b.file, len(found.Members))
	return reading.Completeness(len(found.Unread)+len(missing) == 0).Verdict(nil)
}
