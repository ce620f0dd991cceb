// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reading finds the clusterset for the commands that read it: the flags that select contexts, notes about what could not be read, and
// the words that several commands print.
package reading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// errNoContext is returned if there is no cluster to read.
var errNoContext = errors.New("the kubeconfig has no current context: pass --context, --contexts, --all-contexts or --hub-context (and --kubeconfig, or KUBECONFIG)")

// Flags are the flags of the commands that read the clusterset.
type Flags struct {
	HubFlags connection.HubFlags
	contexts []string
	All      bool
	// Options are those with which the clusterset was found.
	Options survey.FindOptions
}

// AddFlags adds the flags that select contexts and the hub.
func (o *Flags) AddFlags(flags *pflag.FlagSet) {
	o.HubFlags.AddFlags(flags)
	flags.Lookup("hub-context").Usage = "context of the hub; defaults to the hub among the contexts that are read, or the context with the URL that the agent uses"
	flags.Lookup("hub-kubeconfig").Usage = "kubeconfig of the hub; defaults to --kubeconfig"
	flags.StringSliceVar(&o.contexts, "contexts", nil, "comma-separated contexts to read; defaults to the current context")
	flags.BoolVar(&o.All, "all-contexts", false, "read all contexts of the kubeconfig")
}

// Find returns the reachable part of the clusterset. It reports on warnings which contexts do not matter and are left out. What should have
// been read and was not is in Unread: the command must report it.
func (o *Flags) Find(ctx context.Context, usual *genericclioptions.ConfigFlags, warnings io.Writer) (*survey.Clusterset, error) {
	options, err := o.findOptions(usual)
	if err != nil {
		return nil, output.Usage(err)
	}
	o.Options = options
	found, err := survey.Find(ctx, options)
	if err != nil {
		return nil, err
	}
	for _, u := range found.Unreached {
		if !slices.ContainsFunc(found.Unread, func(unread survey.Unread) bool { return unread.Context == u.Context }) {
			fmt.Fprintf(warnings, "note: context %s is left out: %s\n", u.Context, output.Plain(apiserver.FailureOf(u.Err, u.Context).Message))
		}
	}
	if note := o.unreadNote(found.NotRead()); note != "" {
		fmt.Fprintln(warnings, note)
	}
	return found, nil
}

// maxNamedMembers is the number of members that a note names.
const maxNamedMembers = 5

// unreadNote returns which members are not read by default, and how to read them. It is empty if the user has selected contexts.
func (o *Flags) unreadNote(unread []clusterset.ClusterID) string {
	if len(unread) == 0 || o.All || len(o.contexts) > 0 {
		return ""
	}
	names := strings.ReplaceAll(IDs(unread), ",", ", ")
	if len(unread) > maxNamedMembers {
		names = fmt.Sprintf("%d members", len(unread))
	}
	return fmt.Sprintf("note: only what the hub stores of %s is known: --all-contexts or --contexts reads more clusters than the current context's", names)
}

// findOptions returns what to read.
func (o *Flags) findOptions(usual *genericclioptions.ConfigFlags) (survey.FindOptions, error) {
	result := survey.FindOptions{Timeout: connection.IdentifyTimeout, Selection: survey.Named}
	if o.All {
		result.Selection = survey.All
	}
	known, err := usual.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return result, err
	}
	if o.HubFlags.Kubeconfig != "" || o.HubFlags.Context != "" {
		config, err := o.HubFlags.Config(usual)
		if err != nil {
			return result, err
		}
		result.Hub = &survey.KubeContext{Name: o.hubName(), Config: config}
	}
	names, err := o.names(*usual.Context, known)
	if err != nil {
		return result, err
	}
	for _, name := range names {
		if known.Contexts[name] == nil {
			return result, fmt.Errorf("context %q does not exist: pass one of %s", name, strings.Join(slices.Sorted(maps.Keys(known.Contexts)), ", "))
		}
		config, err := contextConfig(usual, name)
		if err != nil {
			return result, fmt.Errorf("context %q: %w", name, err)
		}
		result.Contexts = append(result.Contexts, survey.KubeContext{Name: name, Config: config})
	}
	for _, name := range slices.Sorted(maps.Keys(known.Contexts)) {
		if config, err := contextConfig(usual, name); err == nil { // another context that cannot be used is no obstacle
			result.Known = append(result.Known, survey.KubeContext{Name: name, Config: config})
		}
	}
	return result, nil
}

func (o *Flags) hubName() string {
	if o.HubFlags.Context != "" {
		return o.HubFlags.Context
	}
	return o.HubFlags.Kubeconfig
}

// names returns the names of the contexts to read. current is that of --context, empty if it is not given.
func (o *Flags) names(current string, known clientcmdapi.Config) ([]string, error) {
	selections := 0
	for _, given := range []bool{current != "", len(o.contexts) > 0, o.All} {
		if given {
			selections++
		}
	}
	current = cmp.Or(current, known.CurrentContext)
	switch {
	case selections > 1:
		return nil, errors.New("--context, --contexts and --all-contexts exclude each other: pass one of them")
	case len(o.contexts) > 0:
		return o.contexts, nil
	case o.All && len(known.Contexts) > 0:
		return slices.Sorted(maps.Keys(known.Contexts)), nil
	case current != "":
		return []string{current}, nil
	case o.HubFlags.Kubeconfig != "" || o.HubFlags.Context != "":
		return nil, nil // the hub alone
	}
	return nil, errNoContext
}

func contextConfig(usual *genericclioptions.ConfigFlags, name string) (*rest.Config, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Context = usual.KubeConfig, &name
	return flags.ToRESTConfig()
}

// NoteUnread prints what could not be read, and what to do about it.
func NoteUnread(warnings io.Writer, unread []survey.Unread) {
	for _, u := range unread {
		NoteFailure(warnings, u.String(), u.Next)
	}
}

// NoteFailure prints that something could not be read, and the next step.
func NoteFailure(warnings io.Writer, message, next string) {
	fmt.Fprintf(warnings, "note: %s\n", output.Plain(message))
	if next != "" {
		fmt.Fprintf(warnings, "      -> %s\n", output.Plain(next))
	}
}

// NoteObjects prints which objects of the members could not be read, and reports whether there are some.
func NoteObjects(warnings io.Writer, members []survey.MemberObjects) bool {
	noted := false
	for _, m := range members {
		for _, failure := range m.Failures() {
			noted = true
			NoteFailure(warnings, fmt.Sprintf("not all objects of %s could be read: %s", m.ID, failure.Message), failure.Next)
		}
	}
	return noted
}

// Completeness says whether a command has read what it should.
type Completeness bool

const (
	complete   Completeness = true
	incomplete Completeness = false
)

// CompletenessOf returns the completeness of what was found.
func CompletenessOf(found *survey.Clusterset) Completeness {
	return Completeness(len(found.Unread) == 0)
}

// Verdict returns the error of a command: the error of its result, which may be nil, and output.ErrIncomplete if not everything was read.
func (c Completeness) Verdict(result error) error {
	switch {
	case c == complete:
		return result
	case result == nil:
		return output.ErrIncomplete
	}
	return fmt.Errorf("%w; %w", result, output.ErrIncomplete)
}
