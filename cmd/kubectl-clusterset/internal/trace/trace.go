// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace implements the command trace: it follows a service from its pods to its DNS name, and prints the first broken hop.
package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const about = `Follow one service from its pods to its DNS name, and report the first broken hop and what to do about it. The command reads
the hub and the cluster of the current context. With --contexts or --all-contexts it follows the service through all of these.

The hops are: the ServiceExport and its Service, its ready endpoints, the agent, the records on the hub; in each importing
cluster the namespace, the ServiceImport, the derived Service and the mirrored slices, what kube-proxy sees of them, and the
DNS answer. If the Service is an alias, the command follows its import first.

The command changes nothing: it runs the agents' own controllers with dry-run requests, with the agents' rights if you may
impersonate them. --from names a cluster that must import the service. --client names the service account of a client, which
the rules about access must not deny.

The exit code is 1 if the service is broken, or if it is not known whether it works. It is 3 if the hub or a cluster could
not be read.`

const examples = `  kubectl clusterset trace shop/cart
  kubectl clusterset trace shop/cart --all-contexts --from west
  kubectl clusterset trace shop/cart --contexts east,west --client west/shop/frontend
  kubectl clusterset trace cart --namespace shop --contexts east,west --hub-context hub -o yaml`

// errBroken is returned if a hop is broken, and errNotKnown if a hop is neither broken nor known to work. They have been printed.
var (
	errBroken   = errors.New("the service is broken: see above")
	errNotKnown = errors.New("it is not known whether the service works: see above")
)

// New returns the command trace.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	t := &command{}
	cmd := &cobra.Command{
		Use:     "trace NAMESPACE/SERVICE",
		Short:   "follow a service from its pods to its name, and find the first broken hop",
		Long:    about,
		Example: examples,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), usual, streams, args[0])
		},
	}
	t.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&t.from, "from", "", "ID of the member in which the service is wanted")
	cmd.Flags().StringVar(&t.client, "client", "", "CLUSTER/NAMESPACE/SERVICEACCOUNT of a client whose access is checked")
	cmd.Flags().StringToStringVar(&t.servers, "dns-server", nil, "MEMBER=HOST:PORT, a DNS server to ask instead of the cluster's own, over TCP; MEMBER=none for no question")
	cmd.Flags().DurationVar(&t.settle, "settle", trace.DefaultSettle, "repeat the check for so long if a hop is broken")
	output.AddFlag(cmd, &t.output, "json or yaml; defaults to text", output.JSON, output.YAML)
	complete := connection.Completer{Usual: usual}
	cmd.ValidArgsFunction = output.CompleteAt(0, complete.Keys(&t.HubFlags))
	output.CompleteFlag(cmd, "from", complete.Members(&t.HubFlags))
	return cmd
}

// command is the state of the command trace.
type command struct {
	reading.Flags
	from    string
	client  string
	servers map[string]string
	settle  time.Duration
	output  output.Format
}

func (t *command) run(ctx context.Context, usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, service string) error {
	key, err := connection.ServiceKey(usual, service)
	if err != nil {
		return err
	}
	if err := t.output.Check(output.Text, output.JSON, output.YAML); err != nil {
		return err
	}
	var client access.Client
	if t.client != "" {
		if client, err = reading.ClientOf(t.client); err != nil {
			return err
		}
	}
	found, err := t.Find(ctx, usual, streams.ErrOut)
	if err != nil {
		return err
	}
	if t.from != "" && found.Member(clusterset.ClusterID(t.from)) == nil && len(found.Unread) == 0 {
		return output.Usage(fmt.Errorf("--from=%s: none of the contexts that were read leads to such a member: pass --contexts or --all-contexts", t.from))
	}
	result, err := trace.Run(ctx, trace.Options{
		Clusterset: found, Key: key, From: clusterset.ClusterID(t.from), Client: client, Resolve: t.resolvers, Settle: t.settle,
	})
	if err != nil {
		return err
	}
	if t.output.IsData() {
		if err := output.PrintData(streams.Out, t.output, result); err != nil {
			return err
		}
	} else {
		printTrace(streams.Out, result)
	}
	read := reading.Completeness(len(found.Unread) == 0 && !result.IsIncomplete())
	switch {
	case result.Broken() != nil:
		return read.Verdict(errBroken)
	case result.NotKnown() != nil:
		return read.Verdict(errNotKnown)
	}
	return read.Verdict(nil)
}

// resolvers returns the DNS servers to query for a member.
func (t *command) resolvers(ctx context.Context, m *survey.Member) ([]memberdns.Resolver, error) {
	switch server := t.servers[string(m.ID)]; server {
	case "none":
		return nil, nil
	case "":
		return trace.ClusterDNS(ctx, m)
	default:
		return []memberdns.Resolver{memberdns.Server(server)}, nil
	}
}

// marks are the printed states of a hop.
var marks = map[trace.Health]string{trace.OK: "ok", trace.Note: "note", trace.Broken: "BROKEN", trace.NotKnown: "?"}

// printTrace prints the result first, then the hops. It escapes the text, which quotes API servers and other members.
func printTrace(w io.Writer, t trace.Result) {
	switch broken, notKnown := t.Broken(), t.NotKnown(); {
	case broken != nil:
		fmt.Fprintf(w, "%s is broken at hop %q%s:\n  %s\n", t.Key, broken.Hop, ofCluster(broken.Cluster), output.Plain(broken.Found))
		fmt.Fprintf(w, "What to do:\n  %s\n\n", output.Plain(broken.Fix))
	case notKnown != nil:
		fmt.Fprintf(w, "It is not known whether %s works. This was seen at hop %q%s:\n  %s\n", t.Key, notKnown.Hop, ofCluster(notKnown.Cluster), output.Plain(notKnown.Found))
		fmt.Fprintf(w, "What to do:\n  %s\n\n", output.Plain(notKnown.Fix))
	default:
		fmt.Fprintf(w, "%s works, as far as can be seen from here.\n\n", t.Key)
	}
	width := 0
	for _, step := range t.Steps {
		width = max(width, len(step.Cluster))
	}
	for _, step := range t.Steps {
		fmt.Fprintf(w, "  %-6s  %-*s  %-15s  %s\n", marks[step.State], width, step.Cluster, step.Hop, output.Plain(step.Found))
	}
}

func ofCluster(id clusterset.ClusterID) string {
	if id == "" {
		return ""
	}
	return " of " + string(id)
}
