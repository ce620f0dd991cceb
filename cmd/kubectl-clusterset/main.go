// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-clusterset is a plugin of kubectl: "kubectl clusterset" configures hubs and members of a clusterset. It must be
// in the PATH.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/manifests"
)

func main() {
	log.SetLogger(logr.Discard()) // caches log each failed request; the commands report what matters
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	release, err := manifests.CurrentRelease()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(cli.ExitFailed)
	}
	code := cli.Run(ctx, cli.Build{Version: release.Version, Registry: release.Registry}, os.Args[1:],
		genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
