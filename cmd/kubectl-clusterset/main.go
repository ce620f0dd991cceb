// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-clusterset is a plugin of kubectl: "kubectl clusterset" configures hubs and members of a clusterset. It must be
// in the PATH.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
)

// version and registry are set when a release is built: see tools/release.
var (
	version  = "devel"
	registry = ""
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Build{Version: version, Registry: registry}, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
