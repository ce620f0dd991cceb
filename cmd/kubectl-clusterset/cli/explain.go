// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const aboutExplain = `Explain how the exports of a service become one service.

The output lists the exporting clusters, oldest first: the oldest wins a conflict. For each field it shows the value that is
used, the cluster that it comes from, and the clusters with another value. It shows which clusters serve each port, which
ports are not reachable, and which records are refused and why. For each member that it reaches and that has a
ServiceImportRoutingPolicy for the service, it shows which sources serve. It lists the rules about who may use the service
through gateways, in the order in which they are evaluated.

The exit code is 1 if no cluster exports the service. It is 3 if the hub or a cluster could not be read completely.`

const examplesExplain = `  kubectl clusterset explain shop/web
  kubectl clusterset explain shop/web --hub-context hub -o yaml`

// errNotExported is returned if the hub has no record of the service. Hints have been printed.
var errNotExported = errors.New("no member exports this service: see above")

// explainCommand is the state of the command explain.
type explainCommand struct {
	clustersetFlags
	output   format
	out, err io.Writer
}

func newExplain(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	e := &explainCommand{out: streams.Out, err: streams.ErrOut}
	cmd := &cobra.Command{
		Use:     "explain NAMESPACE/SERVICE",
		Short:   "explain how the exports of a service become one",
		Long:    aboutExplain,
		Example: examplesExplain,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), usual, args[0]) },
	}
	e.addFlags(cmd.Flags())
	addOutput(cmd, &e.output, "json or yaml", formatJSON, formatYAML)
	cmd.ValidArgsFunction = at(0, completer{usual}.keys(&e.hubFlags))
	return cmd
}

func (e *explainCommand) run(ctx context.Context, usual *genericclioptions.ConfigFlags, name string) error {
	if err := e.output.check(formatTable, formatJSON, formatYAML); err != nil {
		return err
	}
	key, err := serviceKey(usual, name)
	if err != nil {
		return err
	}
	found, err := e.find(ctx, usual, e.err)
	if err != nil {
		return err
	}
	noteUnread(e.err, found.Unread)
	members := found.ReadObjects(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	read := completeness(!noteObjects(e.err, members) && len(found.Unread) == 0)
	explanation, ok := found.Hub.Explain(key)
	if !ok && found.Hub.IsRead() {
		e.printNotExported(key, found.Hub.Records.Keys(), members)
		return read.verdict(errNotExported)
	}
	explanation.Access = found.ExplainAccess(ctx, key)
	explanation.Preferences = survey.Preferences(key, members)
	if !found.Hub.IsRead() {
		explanation.Seen = survey.Seen(key, members)
	}
	switch {
	case e.output.isData():
		err = printData(e.out, e.output, explanation)
	case !found.Hub.IsRead():
		printSeen(e.out, explanation)
	default:
		printExplanation(e.out, explanation, found.Hub)
	}
	if err != nil {
		return err
	}
	return read.verdict(nil)
}

// printSeen prints what the clusters that were read have of a service, without the hub.
func printSeen(out io.Writer, e survey.Explanation) {
	fmt.Fprintf(out, "How the exports of %s/%s are merged is not known without the hub. The clusters that were read have:\n", e.Namespace, e.Name)
	t := &table{header: []string{"CLUSTER", "OBJECT", "CONDITIONS"}}
	for _, s := range e.Seen {
		t.add(string(s.Cluster), s.Object, strings.Join(s.Conditions, " "))
	}
	t.write(out)
	printPreferences(out, e)
	printRules(out, e.Access)
}

// printPreferences prints which sources serve in the members that have a ServiceImportRoutingPolicy.
func printPreferences(out io.Writer, e survey.Explanation) {
	if len(e.Preferences) == 0 {
		return
	}
	fmt.Fprintln(out, "\nPREFERENCES")
	for _, p := range e.Preferences {
		fmt.Fprintf(out, "  In %s: %s.\n", p.Importer, plain(p.Message))
	}
}

// printNotExported prints the ServiceExports and similar names of a service that the hub has no record of.
func (e *explainCommand) printNotExported(key clusterset.ServiceKey, known []clusterset.ServiceKey, members []survey.MemberObjects) {
	fmt.Fprintf(e.err, "The hub has no record of service %s.\n", key)
	wanted := false
	for _, s := range members {
		for i := range s.Exports {
			if s.Exports[i].Namespace != key.Namespace || s.Exports[i].Name != key.Name {
				continue
			}
			wanted = true
			fmt.Fprintf(e.err, "%s has a ServiceExport for it: %s\n", s.ID, plain(exportMessage(&s.Exports[i])))
		}
	}
	for _, s := range members {
		for _, gap := range s.Gaps {
			if gap.Key() == key {
				fmt.Fprintf(e.err, "In %s, the label %s asks to export it, but %s.\n", s.ID, clusterset.LabelAutoExport, plain(gap.Why()))
			}
		}
	}
	if !wanted {
		fmt.Fprintf(e.err, "To export it, where its Service runs: kubectl clusterset export -n %s %s\n", key.Namespace, key.Name)
	}
	if similar := survey.Similar(key, known); len(similar) > 0 {
		fmt.Fprintln(e.err, "Do you mean one of these?")
		for _, k := range similar {
			fmt.Fprintln(e.err, "  "+k.String())
		}
	}
}

// exportMessage returns the message of the condition that explains why an export is not on the hub.
func exportMessage(export *mcsv1beta1.ServiceExport) string {
	for _, kind := range []mcsv1beta1.ServiceExportConditionType{mcsv1beta1.ServiceExportConditionValid, mcsv1beta1.ServiceExportConditionReady} {
		if c := meta.FindStatusCondition(export.Status.Conditions, string(kind)); c != nil && c.Status != "True" {
			return c.Message
		}
	}
	return "its agent has not reported a condition; see kubectl clusterset status"
}

func printExplanation(out io.Writer, e survey.Explanation, h *survey.Hub) {
	name := e.Namespace + "/" + e.Name
	if len(e.Exports) == 0 {
		fmt.Fprintf(out, "No member imports %s: its records on the hub are refused.\n", name)
		printRefused(out, e.Refused)
		return
	}
	fmt.Fprintf(out, "%s, of type %s, is exported by %s. Where they disagree, the oldest export counts.\n\nEXPORTS, oldest first\n", name, e.Type, clusters(len(e.Exports)))
	exports := &table{header: []string{"CLUSTER", "SINCE", "AGE", "READY", "MEMBER", "NOTE"}}
	for _, x := range e.Exports {
		var notes []string
		if x.Claimed != nil {
			notes = append(notes, "claims "+x.Claimed.UTC().Format(timeFormat)+", which is more than 10 minutes before the hub first saw it")
		}
		if x.GrantedTo != nil {
			notes = append(notes, "exported to "+conditions.GrantedTo(x.GrantedTo))
			notes = append(notes, noMembers(x.NoMembers)...)
		}
		exports.add(string(x.Cluster), x.Since.UTC().Format(timeFormat), duration.HumanDuration(h.Now.Sub(x.Since.Time)),
			endpointCount{x.ReadyEndpoints, x.Endpoints, x.AtLeast}.String(), stateWords[x.State], strings.Join(notes, "; "))
	}
	exports.write(out)
	fmt.Fprintln(out, "\nWHAT COUNTS")
	fields := &table{header: []string{"FIELD", "VALUE", "FROM", "WHO SAYS OTHERWISE"}}
	for _, f := range e.Fields {
		from := string(f.From)
		if from == "" {
			from = "all exports"
		}
		fields.add(f.Field, survey.Shortened(f.Using), from, otherValues(f))
	}
	fields.write(out)
	printPorts(out, e)
	printPreferences(out, e)
	printRules(out, e.Access)
	printRefused(out, e.Refused)
}

// noMembers returns the note about clusters that are no members; none if there are none.
func noMembers(clusters []clusterset.ClusterID) []string {
	if len(clusters) == 0 {
		return nil
	}
	return []string{"not a member: " + ids(clusters)}
}

// timeFormat is the format of times. They are in UTC, because they are of several clusters.
const timeFormat = "2006-01-02 15:04:05Z"

func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

func otherValues(f survey.ExplainedField) string {
	var words []string
	for _, d := range f.Disagree {
		words = append(words, fmt.Sprintf("%s: %s", d.Cluster, survey.Shortened(d.Value)))
	}
	return strings.Join(words, "; ")
}

func printPorts(out io.Writer, e survey.Explanation) {
	if len(e.Ports) == 0 {
		return
	}
	fmt.Fprintln(out, "\nPORTS")
	t := &table{header: []string{"PORT", "APP PROTOCOL", "FROM", "SERVED BY"}}
	for _, p := range e.Ports {
		t.add(p.Port, p.AppProtocol, string(p.From), ids(p.ServedBy))
	}
	t.write(out)
	for _, lost := range e.LostPorts {
		fmt.Fprintf(out, "  Port %s of %s: %s.\n", plain(lost.Port), lost.Cluster, plain(lost.Reason))
	}
}

// printRules prints who may use the service through gateways, in the order in which the rules are asked.
func printRules(out io.Writer, rules []survey.ExplainedAccess) {
	if len(rules) == 0 {
		return
	}
	fmt.Fprintln(out, "\nACCESS through gateways, the first rule that matches decides")
	t := &table{header: []string{"CLUSTER", "DIRECTION", "ACTION", "CLIENTS", "RULE"}}
	for _, a := range rules {
		for _, r := range a.Rules {
			t.add(string(a.Cluster), string(a.Direction), r.Action, survey.Shortened(r.Clients), r.Rule)
		}
		if a.Reason != "" {
			t.add(string(a.Cluster), string(a.Direction), "?", "", survey.Shortened(a.Reason))
		}
	}
	t.write(out)
}

func printRefused(out io.Writer, refused []string) {
	if len(refused) == 0 {
		return
	}
	fmt.Fprintf(out, "\nREFUSED (%d)\n", len(refused))
	for _, text := range refused {
		fmt.Fprintln(out, "  "+plain(text))
	}
}
