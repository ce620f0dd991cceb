// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const aboutVersion = `Print the version of this command. It contacts no cluster: "kubectl clusterset status" shows the versions of the agents.`

// versionOutput is what the command version prints as data.
type versionOutput struct {
	Version   string `json:"version"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

func newVersion(build Build, streams genericiooptions.IOStreams) *cobra.Command {
	var output format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print the version of this command",
		Long:  aboutVersion,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := output.check(formatTable, formatJSON, formatYAML); err != nil {
				return err
			}
			version := versionOutput{build.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if output.isData() {
				return printData(streams.Out, output, version)
			}
			fmt.Fprintln(streams.Out, "kubectl clusterset", version.Version)
			return nil
		},
	}
	addOutput(cmd, &output, "json or yaml", formatJSON, formatYAML)
	return cmd
}
