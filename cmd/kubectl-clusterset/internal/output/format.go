// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
)

// Format is the output format of a command.
type Format string

// The output formats of tables and data.
const (
	Text Format = ""
	Wide Format = "wide"
	JSON Format = "json"
	YAML Format = "yaml"
)

// Check returns an error if the format is none of the known ones.
func (f Format) Check(known ...Format) error {
	var words []string
	for _, k := range known {
		if f == k {
			return nil
		}
		if k != Text {
			words = append(words, string(k))
		}
	}
	return Usage(fmt.Errorf("-o %s: must be one of %s", f, strings.Join(words, ", ")))
}

// AddFlag adds the flag for the format of a command, and completes it.
func AddFlag(cmd *cobra.Command, f *Format, usage string, formats ...Format) {
	cmd.Flags().StringVarP((*string)(f), "output", "o", string(*f), usage)
	words := make([]string, len(formats))
	for i, known := range formats {
		words[i] = string(known)
	}
	CompleteFlag(cmd, "output", completeValues(words...))
}

// AddFormat adds the flag as AddFlag does, and checks it before the command runs. Text is a format too if it is the default.
func AddFormat(cmd *cobra.Command, f *Format, usage string, formats ...Format) {
	AddFlag(cmd, f, usage, formats...)
	if *f == Text {
		formats = append(formats, Text)
	}
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.Check(formats...) }
}

// IsData reports whether programs read the format.
func (f Format) IsData() bool { return f == JSON || f == YAML }

// PrintData writes a value as JSON or YAML.
func PrintData(out io.Writer, f Format, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if f == YAML {
		if content, err = yaml.JSONToYAML(content); err != nil {
			return err
		}
		fmt.Fprint(out, "---\n", string(content))
		return nil
	}
	fmt.Fprintln(out, string(content))
	return nil
}

// DryRunFlags say whether a command only simulates its changes.
type DryRunFlags struct {
	DryRun install.DryRun
	output Format
}

// AddFlags adds the flag for a dry run.
func (o *DryRunFlags) AddFlags(cmd *cobra.Command) {
	o.DryRun = install.NoDryRun
	cmd.Flags().StringVar((*string)(&o.DryRun), "dry-run", string(install.NoDryRun),
		"none; server: check and print the changes, which the API server validates and does not make; or client: without a request that writes")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = string(install.ServerDryRun)
	CompleteFlag(cmd, "dry-run", completeValues(string(install.NoDryRun), string(install.ServerDryRun), string(install.ClientDryRun)))
}

// AddObjectOutput adds the flag with which a command prints the objects that it would apply.
func (o *DryRunFlags) AddObjectOutput(cmd *cobra.Command) {
	AddFlag(cmd, &o.output, "with --dry-run=client, print the objects that would be applied: yaml", YAML)
}

// errOutput is returned if -o has nothing to print.
var errOutput = errors.New("-o prints what would be applied: pass --dry-run=client too")

// Check validates the flags.
func (o DryRunFlags) Check() error {
	switch o.DryRun {
	case install.NoDryRun, install.ServerDryRun, install.ClientDryRun:
	default:
		return Usage(fmt.Errorf("--dry-run=%s: must be %s, %s or %s", o.DryRun, install.NoDryRun, install.ServerDryRun, install.ClientDryRun))
	}
	if o.output != Text && o.DryRun != install.ClientDryRun {
		return Usage(errOutput)
	}
	return o.output.Check(Text, YAML)
}

// IsDryRun reports whether nothing is changed.
func (o DryRunFlags) IsDryRun() bool {
	return o.DryRun == install.ServerDryRun || o.DryRun == install.ClientDryRun
}

// Heading returns a title that marks a dry run.
func (o DryRunFlags) Heading(title string) string {
	if o.IsDryRun() {
		return title + " (dry run: nothing is changed)"
	}
	return title
}

// NewReport returns the report of a command. If the objects are printed, all else is printed as an error is.
func (o DryRunFlags) NewReport(streams genericiooptions.IOStreams) *Report {
	if o.output.IsData() {
		return &Report{Out: streams.ErrOut, objects: streams.Out, dryRun: o.DryRun}
	}
	return &Report{Out: streams.Out, dryRun: o.DryRun}
}
