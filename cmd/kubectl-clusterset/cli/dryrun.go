// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
)

// dryRunFlags say whether a command only simulates its changes.
type dryRunFlags struct {
	dryRun install.DryRun
	output format
}

func (o *dryRunFlags) addFlags(cmd *cobra.Command) {
	o.dryRun = install.NoDryRun
	cmd.Flags().StringVar((*string)(&o.dryRun), "dry-run", string(install.NoDryRun),
		"none; server: check and print the changes, which the API server validates and does not make; or client: without a request that writes")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = string(install.ServerDryRun)
	completeFlag(cmd, "dry-run", completeValues(string(install.NoDryRun), string(install.ServerDryRun), string(install.ClientDryRun)))
}

// addObjectOutput adds the flag with which a command prints the objects that it would apply.
func (o *dryRunFlags) addObjectOutput(cmd *cobra.Command) {
	addOutput(cmd, &o.output, "with --dry-run=client, print the objects that would be applied: yaml", formatYAML)
}

// errOutput is returned if -o has nothing to print.
var errOutput = errors.New("-o prints what would be applied: pass --dry-run=client too")

// check validates the flags.
func (o dryRunFlags) check() error {
	switch o.dryRun {
	case install.NoDryRun, install.ServerDryRun, install.ClientDryRun:
	default:
		return usageError{fmt.Errorf("--dry-run=%s: must be %s, %s or %s", o.dryRun, install.NoDryRun, install.ServerDryRun, install.ClientDryRun)}
	}
	if o.output != formatTable && o.dryRun != install.ClientDryRun {
		return usageError{errOutput}
	}
	return o.output.check(formatTable, formatYAML)
}

// isDryRun reports whether nothing is changed.
func (o dryRunFlags) isDryRun() bool {
	return o.dryRun == install.ServerDryRun || o.dryRun == install.ClientDryRun
}

// heading returns a title that marks a dry run.
func (o dryRunFlags) heading(title string) string {
	if o.isDryRun() {
		return title + " (dry run: nothing is changed)"
	}
	return title
}

// report returns the report of a command. If the objects are printed, all else is printed as an error is.
func (o dryRunFlags) report(streams genericiooptions.IOStreams) *report {
	if o.output.isData() {
		return &report{out: streams.ErrOut, objects: streams.Out, dryRun: o.dryRun}
	}
	return &report{out: streams.Out, dryRun: o.dryRun}
}
