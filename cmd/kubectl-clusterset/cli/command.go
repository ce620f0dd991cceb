// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli builds the command line of "kubectl clusterset" and runs it. Each verb is a package of cmd/kubectl-clusterset/internal. It reads in
// the order in which it runs: it connects, checks, reports the results, and then makes the changes, one object after the other. All checks run
// before the first change. A command can be interrupted and run again.
package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/bundle"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/canconnect"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/checknetwork"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/dashboard"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/diff"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/dns"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/explain"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/export"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/graph"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/inithub"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/invite"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/join"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/leave"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/status"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/trace"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/upgrade"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/version"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
)

// Exit codes of the command.
const (
	ExitOK     = 0
	ExitFailed = 1
	// ExitUsage means that the command line is wrong; no API server was contacted.
	ExitUsage = 2
	// ExitIncomplete means that a command that reads has not read everything that it should: what it shows is incomplete, and a result may not
	// be known. The output names what is missing.
	ExitIncomplete = 3
	// ExitDiffFailed is the exit code of diff on an error, as 1 means a difference.
	ExitDiffFailed = 2
)

// Build describes the build of the command.
type Build = workload.Build

// Run runs the command line and returns the exit code. It writes errors to streams.ErrOut.
func Run(ctx context.Context, build Build, args []string, streams genericiooptions.IOStreams) int {
	command := NewCommand(build, streams) //nolint:contextcheck // cobra passes the context to the commands
	command.SetArgs(args)
	ctx, changed := connection.NoteChanges(ctx)
	err := command.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	code := exitCode(err)
	if ctx.Err() != nil && !errors.Is(err, output.ErrIncomplete) {
		fmt.Fprintln(streams.ErrOut, changed.Interrupted())
		return code
	}
	fmt.Fprintln(streams.ErrOut, "error:", err)
	if output.IsUsage(err) {
		fmt.Fprintln(streams.ErrOut, `see "kubectl clusterset --help"`)
	}
	return code
}

// exitCode returns the exit code of an error.
func exitCode(err error) int {
	switch {
	case output.IsUsage(err):
		return ExitUsage
	case output.IsDiffFailed(err):
		return ExitDiffFailed
	case errors.Is(err, output.ErrIncomplete):
		return ExitIncomplete
	}
	return ExitFailed
}

const about = `Join Kubernetes clusters into a clusterset and share services between them (Multi-Cluster Services API).

One API server is the hub: the API server of a member, or a separate one. It stores small records of what the members
export. No packet passes through it.

  kubectl clusterset init-hub --context hub
  kubectl clusterset join --context east --hub-context hub --cluster-id east
  kubectl clusterset join --context west --hub-context hub --cluster-id west

Then create a ServiceExport for a Service in one of them. The others get a ServiceImport, and
<service>.<namespace>.svc.clusterset.local resolves there.`

// NewCommand returns the command with all subcommands, which read from and write to the streams. Run runs it.
func NewCommand(build Build, streams genericiooptions.IOStreams) *cobra.Command {
	usual := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{
		Use:           "kubectl-clusterset",
		Short:         "join Kubernetes clusters into a clusterset",
		Long:          about,
		Version:       build.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl clusterset"},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return output.Usage(err) })
	usual.AddFlags(root.PersistentFlags())
	addGroup(root, "Make a clusterset:", inithub.New(build, usual, streams), join.New(build, usual, streams), invite.New(usual, streams), dns.New(usual, streams),
		upgrade.New(build, usual, streams), leave.New(usual, streams))
	addGroup(root, "Read it:", status.New(usual, streams), dashboard.New(usual, streams), trace.New(usual, streams), explain.New(usual, streams), canconnect.New(usual, streams), diff.New(usual, streams),
		graph.New(usual, streams), checknetwork.New(build, usual, streams), bundle.New(usual, streams))
	addGroup(root, "Act in it:", export.New(usual, streams), export.NewUnexport(usual, streams))
	root.AddCommand(version.New(build, streams))
	for _, command := range withSubcommands(root) {
		connection.Completer{Usual: usual}.AddTo(command)
		inner := command.Args
		command.Args = func(cmd *cobra.Command, args []string) error {
			if err := inner(cmd, args); err != nil {
				return output.Usage(argumentError(cmd, args, err))
			}
			return nil
		}
	}
	return root
}

// withSubcommands returns a command and all commands below it.
func withSubcommands(command *cobra.Command) []*cobra.Command {
	result := []*cobra.Command{command}
	for _, child := range command.Commands() {
		result = append(result, withSubcommands(child)...)
	}
	return result
}

// argumentError returns an error that names the arguments of a command. The error of cobra only counts them.
func argumentError(cmd *cobra.Command, args []string, err error) error {
	_, wanted, takesSome := strings.Cut(strings.TrimSuffix(cmd.Use, " [flags]"), " ")
	switch {
	case !takesSome:
		return err
	case len(args) == 0:
		return fmt.Errorf("the argument %s is missing: %s %s", wanted, cmd.CommandPath(), wanted)
	}
	return fmt.Errorf("%d arguments are too many: %s %s", len(args), cmd.CommandPath(), wanted)
}

// addGroup adds commands under a title, in their order.
func addGroup(root *cobra.Command, title string, verbs ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, verb := range verbs {
		verb.GroupID = title
	}
	root.AddCommand(verbs...)
}
