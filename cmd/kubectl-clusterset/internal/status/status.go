// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status implements the command status: it prints the members, the services and the problems of a clusterset, once or as they change.
package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/watch"
)

const about = `Show the problems of the clusterset with the next step for each, its members, and its services.

The command reads the hub and the cluster of the current context; --contexts or --all-contexts reads more members. Each
member that is read adds its imports, its pending deletions, and the problems of its exports.

--namespace lists the services of one namespace. If there are many services, only services with problems are listed, unless
--services all or -o wide is given. -o json and -o yaml print everything in a stable format (kind ClustersetStatus,
cli.tombolo-mcs.io/v1).

What cannot be read is a problem too, and the rest is shown.

The exit code is 0, with or without problems. With --exit-code it is 1 if there is an error or a warning. It is 3 if the hub or a
cluster could not be read completely.`

const examples = `  kubectl clusterset status
  kubectl clusterset status --all-contexts
  kubectl clusterset status --hub-context hub --contexts east,west
  kubectl clusterset status --namespace shop
  kubectl clusterset status --watch
  kubectl clusterset status -o json | jq '.problems[] | select(.severity == "error")'

  # in a monitoring job
  kubectl clusterset status --all-contexts --exit-code`

// pollInterval is the time between two reads of --watch.
const pollInterval = 2 * time.Second

// errProblems is returned with --exit-code if there are problems. They have been printed.
var errProblems = errors.New("the clusterset has problems: see above")

// serviceFilter selects the services that are listed.
type serviceFilter string

const (
	someServices serviceFilter = "some" // all if they are few, else those with problems
	allServices  serviceFilter = "all"
)

// command is the state of the command status.
type command struct {
	reading.Flags
	output    output.Format
	services  serviceFilter
	follow    bool
	exitCode  bool
	namespace string
	out, err  io.Writer
}

// New returns the command status.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	l := &command{out: streams.Out, err: streams.ErrOut}
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "show members, services and problems",
		Long:    about,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return l.run(cmd.Context(), usual) },
	}
	l.AddFlags(cmd.Flags())
	output.AddFormat(cmd, &l.output, "wide, json or yaml", output.Wide, output.JSON, output.YAML)
	cmd.Flags().StringVar((*string)(&l.services), "services", string(someServices), "some: if there are many services, only services with problems; all: every service")
	cmd.Flags().BoolVarP(&l.follow, "watch", "w", false, "keep running and print changes")
	cmd.Flags().BoolVar(&l.exitCode, "exit-code", false, "exit with 1 if there are problems")
	return cmd
}

func (l *command) run(ctx context.Context, usual *genericclioptions.ConfigFlags) error {
	if l.services != someServices && l.services != allServices {
		return output.Usage(fmt.Errorf("--services=%s: must be some or all", l.services))
	}
	found, err := l.Find(ctx, usual, l.err)
	if err != nil {
		return err
	}
	l.namespace = *usual.Namespace
	status := watch.Once(ctx, found).InNamespace(l.namespace)
	if l.namespace != "" && !slices.ContainsFunc(status.Problems, func(p assess.Problem) bool { return p.Service != "" }) && len(status.Services) == 0 {
		fmt.Fprintf(l.err, "note: no service of namespace %s is exported\n", output.Plain(l.namespace))
	}
	if err := l.print(status); err != nil {
		return err
	}
	if l.follow {
		return l.watch(ctx, found, status)
	}
	return l.verdict(status)
}

// verdict returns the error of a status that has been printed.
func (l *command) verdict(status assess.Status) error {
	var result error
	if l.exitCode && len(status.Problems) > 0 {
		result = errProblems
	}
	return reading.Completeness(status.IsComplete()).Verdict(result)
}

func (l *command) print(status assess.Status) error {
	if l.output.IsData() {
		return output.PrintData(l.out, l.output, status)
	}
	p := printer{out: l.out, paint: output.Paint(l.out), output: l.output, services: l.services}
	p.write(status)
	return nil
}

// again reads the hub again, or everything if something could not be read.
func (l *command) again(ctx context.Context, found *survey.Clusterset) (*survey.Clusterset, error) {
	if len(found.Unread) > 0 {
		return survey.Find(ctx, l.Options)
	}
	h, err := survey.ReadHub(ctx, found.Hub.KubeContext)
	next := *found
	next.Hub = h
	return &next, err
}

// watch prints changes until ctx ends. If the hub does not answer, it reports that once, and waits for the hub. It returns an error if not
// everything could be read at the end.
func (l *command) watch(ctx context.Context, found *survey.Clusterset, before assess.Status) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	unreachable := false
	for {
		select {
		case <-ctx.Done():
			return reading.Completeness(before.IsComplete() && !unreachable).Verdict(nil)
		case <-ticker.C:
		}
		next, err := l.again(ctx, found)
		switch {
		case ctx.Err() != nil:
			continue
		case err != nil:
			if !unreachable {
				fmt.Fprintf(l.err, "note: the hub does not answer, waiting for it: %s\n", output.Plain(apiserver.FailureOf(err, "").Message))
			}
			unreachable = true
			continue
		case unreachable:
			fmt.Fprintln(l.err, "note: the hub answers again")
			unreachable = false
		}
		found = next
		after := watch.Once(ctx, found).InNamespace(l.namespace)
		changes := assess.ChangesBetween(before, after)
		if ctx.Err() != nil || changes.IsEmpty() {
			continue
		}
		before = after
		if l.output.IsData() {
			if err := output.PrintData(l.out, l.output, after); err != nil {
				return err
			}
			continue
		}
		printChanges(l.out, output.Paint(l.out), changes)
	}
}
