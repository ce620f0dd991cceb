// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain implements the command explain: it prints how the exports of a service become one.
package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/reading"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const about = `Explain how the exports of a service become one service.

The output lists the exporting clusters, oldest first: the oldest wins a conflict. For each field it shows the value that is
used, the cluster that it comes from, and the clusters with another value. It shows which clusters serve each port, which
ports are not reachable, and which records are refused and why. For each member that it reaches and that has a
ServiceImportRoutingPolicy for the service, it shows which sources serve. It lists the rules about who may use the service
through gateways, in the order in which they are evaluated.

The exit code is 1 if no cluster exports the service. It is 3 if the hub or a cluster could not be read completely.`

const examples = `  kubectl clusterset explain shop/web
  kubectl clusterset explain shop/web --hub-context hub -o yaml`

// errNotExported is returned if the hub has no record of the service. Hints have been printed.
var errNotExported = errors.New("no member exports this service: see above")

// command is the state of the command explain.
type command struct {
	reading.Flags
	output   output.Format
	out, err io.Writer
}

// New returns the command explain.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	e := &command{out: streams.Out, err: streams.ErrOut}
	cmd := &cobra.Command{
		Use:     "explain NAMESPACE/SERVICE",
		Short:   "explain how the exports of a service become one",
		Long:    about,
		Example: examples,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), usual, args[0]) },
	}
	e.AddFlags(cmd.Flags())
	output.AddFormat(cmd, &e.output, "json or yaml", output.JSON, output.YAML)
	cmd.ValidArgsFunction = output.CompleteAt(0, connection.Completer{Usual: usual}.Keys(&e.HubFlags))
	return cmd
}

func (e *command) run(ctx context.Context, usual *genericclioptions.ConfigFlags, name string) error {
	key, err := connection.ServiceKey(usual, name)
	if err != nil {
		return err
	}
	found, err := e.Find(ctx, usual, e.err)
	if err != nil {
		return err
	}
	reading.NoteUnread(e.err, found.Unread)
	members := found.ReadObjects(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	read := reading.Completeness(!reading.NoteObjects(e.err, members) && len(found.Unread) == 0)
	explanation, ok := explain.Service(found.Hub, key)
	if !ok && found.Hub.IsRead() {
		e.printNotExported(key, found.Hub.Records.Keys(), members)
		return read.Verdict(errNotExported)
	}
	explanation.Access = explain.Rules(ctx, found, key)
	explanation.Preferences = explain.Preferences(key, members)
	if !found.Hub.IsRead() {
		explanation.Seen = explain.Seen(key, members)
	}
	switch {
	case e.output.IsData():
		err = output.PrintData(e.out, e.output, explanation)
	case !found.Hub.IsRead():
		printSeen(e.out, explanation)
	default:
		printExplanation(e.out, explanation, found.Hub)
	}
	if err != nil {
		return err
	}
	return read.Verdict(nil)
}

// printSeen prints what the clusters that were read have of a service, without the hub.
func printSeen(out io.Writer, e explain.Explanation) {
	fmt.Fprintf(out, "How the exports of %s/%s are merged is not known without the hub. The clusters that were read have:\n", e.Namespace, e.Name)
	t := &output.Table{Header: []string{"CLUSTER", "OBJECT", "CONDITIONS"}}
	for _, s := range e.Seen {
		t.Add(string(s.Cluster), s.Object, strings.Join(s.Conditions, " "))
	}
	t.Write(out)
	printPreferences(out, e)
	reading.PrintRules(out, e.Access)
}

// printPreferences prints which sources serve in the members that have a ServiceImportRoutingPolicy.
func printPreferences(out io.Writer, e explain.Explanation) {
	if len(e.Preferences) == 0 {
		return
	}
	fmt.Fprintln(out, "\nPREFERENCES")
	for _, p := range e.Preferences {
		fmt.Fprintf(out, "  In %s: %s.\n", p.Importer, output.Plain(p.Message))
	}
}

// printNotExported prints the ServiceExports and similar names of a service that the hub has no record of.
func (e *command) printNotExported(key clusterset.ServiceKey, known []clusterset.ServiceKey, members []survey.MemberObjects) {
	fmt.Fprintf(e.err, "The hub has no record of service %s.\n", key)
	wanted := false
	for _, s := range members {
		for i := range s.Exports {
			if s.Exports[i].Namespace != key.Namespace || s.Exports[i].Name != key.Name {
				continue
			}
			wanted = true
			fmt.Fprintf(e.err, "%s has a ServiceExport for it: %s\n", s.ID, output.Plain(reading.ExportMessage(&s.Exports[i])))
		}
	}
	for _, s := range members {
		for _, gap := range s.Gaps {
			if gap.Key() == key {
				fmt.Fprintf(e.err, "In %s, the label %s asks to export it, but %s.\n", s.ID, clusterset.LabelAutoExport, output.Plain(gap.Why()))
			}
		}
	}
	if !wanted {
		fmt.Fprintf(e.err, "To export it, where its Service runs: kubectl clusterset export -n %s %s\n", key.Namespace, key.Name)
	}
	if similar := explain.Similar(key, known); len(similar) > 0 {
		fmt.Fprintln(e.err, "Do you mean one of these?")
		for _, k := range similar {
			fmt.Fprintln(e.err, "  "+k.String())
		}
	}
}

func printExplanation(out io.Writer, e explain.Explanation, h *survey.Hub) {
	name := e.Namespace + "/" + e.Name
	if len(e.Exports) == 0 {
		fmt.Fprintf(out, "No member imports %s: its records on the hub are refused.\n", name)
		printRefused(out, e.Refused)
		return
	}
	fmt.Fprintf(out, "%s, of type %s, is exported by %s. Where they disagree, the oldest export counts.\n\nEXPORTS, oldest first\n", name, e.Type, clusters(len(e.Exports)))
	exports := &output.Table{Header: []string{"CLUSTER", "SINCE", "AGE", "READY", "MEMBER", "NOTE"}}
	for _, x := range e.Exports {
		var notes []string
		if x.Claimed != nil {
			notes = append(notes, "claims "+x.Claimed.UTC().Format(output.TimeFormat)+", which is more than 10 minutes before the hub first saw it")
		}
		if x.GrantedTo != nil {
			notes = append(notes, "exported to "+conditions.GrantedTo(x.GrantedTo))
			notes = append(notes, noMembers(x.NoMembers)...)
		}
		exports.Add(string(x.Cluster), x.Since.UTC().Format(output.TimeFormat), duration.HumanDuration(h.Now.Sub(x.Since.Time)),
			reading.EndpointCount{Ready: x.ReadyEndpoints, All: x.Endpoints, AtLeast: x.AtLeast}.String(), reading.StateWord(x.State), strings.Join(notes, "; "))
	}
	exports.Write(out)
	fmt.Fprintln(out, "\nWHAT COUNTS")
	fields := &output.Table{Header: []string{"FIELD", "VALUE", "FROM", "WHO SAYS OTHERWISE"}}
	for _, f := range e.Fields {
		from := string(f.From)
		if from == "" {
			from = "all exports"
		}
		fields.Add(f.Field, phrase.Shortened(f.Using), from, otherValues(f))
	}
	fields.Write(out)
	printPorts(out, e)
	printPreferences(out, e)
	reading.PrintRules(out, e.Access)
	printRefused(out, e.Refused)
}

// noMembers returns the note about clusters that are no members; none if there are none.
func noMembers(clusters []clusterset.ClusterID) []string {
	if len(clusters) == 0 {
		return nil
	}
	return []string{"not a member: " + reading.IDs(clusters)}
}

func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

func otherValues(f explain.Field) string {
	var words []string
	for _, d := range f.Disagree {
		words = append(words, fmt.Sprintf("%s: %s", d.Cluster, phrase.Shortened(d.Value)))
	}
	return strings.Join(words, "; ")
}

func printPorts(out io.Writer, e explain.Explanation) {
	if len(e.Ports) == 0 {
		return
	}
	fmt.Fprintln(out, "\nPORTS")
	t := &output.Table{Header: []string{"PORT", "APP PROTOCOL", "FROM", "SERVED BY"}}
	for _, p := range e.Ports {
		t.Add(p.Port, p.AppProtocol, string(p.From), reading.IDs(p.ServedBy))
	}
	t.Write(out)
	for _, lost := range e.LostPorts {
		fmt.Fprintf(out, "  Port %s of %s: %s.\n", output.Plain(lost.Port), lost.Cluster, output.Plain(lost.Reason))
	}
}

func printRefused(out io.Writer, refused []string) {
	if len(refused) == 0 {
		return
	}
	fmt.Fprintf(out, "\nREFUSED (%d)\n", len(refused))
	for _, text := range refused {
		fmt.Fprintln(out, "  "+output.Plain(text))
	}
}
