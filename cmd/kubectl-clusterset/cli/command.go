// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli implements the commands of "kubectl clusterset". The file of a command reads in the order in which it runs: it
// connects, checks, reports the results, and then makes the changes, one object after the other. All checks run before the first
// change. A command can be interrupted and run again.
package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
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

// diffError is an error of the command diff.
type diffError struct{ error }

func (e diffError) Unwrap() error { return e.error }

// errIncomplete is returned if something could not be read. It has been named.
var errIncomplete = errors.New("not everything could be read: see above")

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Run runs the command line and returns the exit code. It writes errors to streams.ErrOut.
func Run(ctx context.Context, build Build, args []string, streams genericiooptions.IOStreams) int {
	command := NewCommand(build, streams) //nolint:contextcheck // cobra passes the context to the commands
	command.SetArgs(args)
	ctx, changed := noteChanges(ctx)
	err := command.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	code := exitCode(err)
	if ctx.Err() != nil && !errors.Is(err, errIncomplete) {
		fmt.Fprintln(streams.ErrOut, changed.interrupted())
		return code
	}
	fmt.Fprintln(streams.ErrOut, "error:", err)
	if errors.As(err, &usageError{}) {
		fmt.Fprintln(streams.ErrOut, `see "kubectl clusterset --help"`)
	}
	return code
}

// exitCode returns the exit code of an error.
func exitCode(err error) int {
	switch {
	case errors.As(err, &usageError{}):
		return ExitUsage
	case errors.As(err, &diffError{}):
		return ExitDiffFailed
	case errors.Is(err, errIncomplete):
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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	usual.AddFlags(root.PersistentFlags())
	addGroup(root, "Make a clusterset:", newInitHub(build, usual, streams), newJoin(build, usual, streams), newInvite(usual, streams), newDNS(usual, streams),
		newUpgrade(build, usual, streams), newLeave(usual, streams))
	addGroup(root, "Read it:", newStatus(usual, streams), newDashboard(usual, streams), newTrace(usual, streams), newExplain(usual, streams), newCanConnect(usual, streams), newDiff(usual, streams),
		newGraph(usual, streams), newCheckNetwork(build, usual, streams), newBundle(usual, streams))
	addGroup(root, "Act in it:", newExport(usual, streams), newUnexport(usual, streams))
	root.AddCommand(newVersion(build, streams))
	for _, command := range withSubcommands(root) {
		completer{usual}.addTo(command)
		inner := command.Args
		command.Args = func(cmd *cobra.Command, args []string) error {
			if err := inner(cmd, args); err != nil {
				return usageError{argumentError(cmd, args, err)}
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
