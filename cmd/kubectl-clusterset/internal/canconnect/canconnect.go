// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package canconnect implements the command can-connect: it prints which rule decides about a client of a service.
package canconnect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
)

const about = `Say whether the pods of a service account may use a service of other clusters through gateways, and which rule decides.

The output has a line for each other cluster that exports the service. The command reads the rules of both clusters, whose
contexts --contexts or --all-contexts names; it connects to nothing.

The exit code is 1 if no exporting cluster allows it. It is 3 if this is not known, or if the hub or a context could not be
read.`

const examples = `  kubectl clusterset can-connect west/shop/frontend shop/cart --contexts east,west
  kubectl clusterset can-connect west/shop/frontend shop/cart --all-contexts -o yaml`

// errNoAccess is returned if no exporting cluster allows a client. The reasons have been printed.
var errNoAccess = errors.New("no exporting cluster allows it: see above")

// errAccessUnknown is returned if no exporting cluster is known to allow a client, but the rules of some could not be read.
var errAccessUnknown = fmt.Errorf("it is not known whether an exporting cluster allows it: see above, and pass the contexts of these clusters (%w)", output.ErrIncomplete)

// command is the state of the command can-connect.
type command struct {
	reading.Flags
	output   output.Format
	out, err io.Writer
}

// New returns the command can-connect.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	c := &command{out: streams.Out, err: streams.ErrOut}
	cmd := &cobra.Command{
		Use:     "can-connect CLUSTER/NAMESPACE/SERVICEACCOUNT NAMESPACE/SERVICE",
		Short:   "say who may use a service through gateways, and which rule decides",
		Long:    about,
		Example: examples,
		Args:    cobra.ExactArgs(2),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), usual, args[0], args[1]) },
	}
	c.AddFlags(cmd.Flags())
	output.AddFormat(cmd, &c.output, "json or yaml", output.JSON, output.YAML)
	cmd.ValidArgsFunction = output.CompleteAt(1, connection.Completer{Usual: usual}.Keys(&c.HubFlags))
	return cmd
}

func (c *command) run(ctx context.Context, usual *genericclioptions.ConfigFlags, who, service string) error {
	from, err := reading.ClientOf(who)
	if err != nil {
		return err
	}
	key, err := connection.ServiceKey(usual, service)
	if err != nil {
		return err
	}
	found, err := c.Find(ctx, usual, c.err)
	if err != nil {
		return err
	}
	reading.NoteUnread(c.err, found.Unread)
	if !found.Hub.IsRead() {
		return c.withoutHub(explain.Rules(ctx, found, key))
	}
	read := reading.CompletenessOf(found)
	if found.Hub.Records.Member(from.Cluster) == nil {
		return output.Usage(fmt.Errorf("%s: cluster %s is no member of the clusterset", who, from.Cluster))
	}
	result := explain.CanConnect(ctx, found, key, from)
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(result) == 0 {
		return read.Verdict(fmt.Errorf("no other cluster exports service %s: see kubectl clusterset explain %s", key, key))
	}
	if c.output.IsData() {
		if err := output.PrintData(c.out, c.output, result); err != nil {
			return err
		}
	} else {
		printAccess(c.out, result)
	}
	return read.Verdict(accessError(result))
}

// accessError returns nil if an exporting cluster allows the access. Otherwise it says whether no cluster does, or whether that is not known.
func accessError(result []explain.Access) error {
	is := func(verdicts ...explain.Verdict) bool {
		return slices.ContainsFunc(result, func(a explain.Access) bool { return slices.Contains(verdicts, a.Verdict) })
	}
	switch {
	case is(explain.Allowed, explain.NotEnforced):
		return nil
	case is(explain.Unknown):
		return errAccessUnknown
	}
	return errNoAccess
}

// withoutHub prints the rules of the clusters that were read: which clusters export the service, and in which networks they are, is not known
// without the hub.
func (c *command) withoutHub(rules []explain.ClusterRules) error {
	if c.output.IsData() {
		if err := output.PrintData(c.out, c.output, []explain.Access{}); err != nil {
			return err
		}
		return output.ErrIncomplete
	}
	fmt.Fprintln(c.out, "It is not known without the hub which clusters export it. The clusters that were read have these rules about it:")
	reading.PrintRules(c.out, rules)
	return output.ErrIncomplete
}

func printAccess(out io.Writer, result []explain.Access) {
	words := map[explain.Verdict]string{
		explain.Allowed: "yes", explain.Denied: "no", explain.NotEnforced: "yes", explain.Unknown: "unknown",
	}
	for _, a := range result {
		var reasons []string
		if a.ImportRule != "" {
			reasons = append(reasons, "by the client's cluster: "+a.ImportRule)
		}
		if a.ExportRule != "" {
			reasons = append(reasons, "by the exporter: "+a.ExportRule)
		}
		if a.Reason != "" {
			reasons = append(reasons, a.Reason)
		}
		fmt.Fprintf(out, "%s: %s (%s)\n", a.Exporter, words[a.Verdict], output.Plain(strings.Join(reasons, "; ")))
	}
}
