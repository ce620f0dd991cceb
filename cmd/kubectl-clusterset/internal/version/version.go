// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version implements the command version.
package version

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
)

const about = `Print the version of this command. It contacts no cluster: "kubectl clusterset status" shows the versions of the agents.`

// result is what the command version prints as data.
type result struct {
	Version   string `json:"version"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// New returns the command version.
func New(build workload.Build, streams genericiooptions.IOStreams) *cobra.Command {
	var as output.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print the version of this command",
		Long:  about,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			printed := result{build.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if as.IsData() {
				return output.PrintData(streams.Out, as, printed)
			}
			fmt.Fprintln(streams.Out, "kubectl clusterset", printed.Version)
			return nil
		},
	}
	output.AddFormat(cmd, &as, "json or yaml", output.JSON, output.YAML)
	return cmd
}
