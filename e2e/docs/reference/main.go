// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command reference writes the reference of the command lines, docs/cli.md: from the commands of cmd/kubectl-clusterset/cli, and from the
// help of the agent.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("reference", flag.ContinueOnError)
	out := flags.String("out", "docs", "folder to write to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: io.Discard, ErrOut: io.Discard}
	commands := commandReference(cli.NewCommand(cli.Build{}, streams)) //nolint:contextcheck // nothing is run
	// The agent's flags are made in its main package: ask it, as a user does.
	agent := exec.CommandContext(ctx, "go", "run", "./cmd/tombolo-agent", "--help")
	agent.Env = append(os.Environ(), "POD_NAMESPACE=") // a default of the agent's
	help, err := agent.CombinedOutput()
	if err != nil {
		return fmt.Errorf("tombolo-agent --help: %w\n%s", err, help)
	}
	text, err := agentReference(string(help))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*out, "cli.md"), []byte(commands+"\n"+text), 0o644) //nolint:gosec // documents are for all to read
}
