// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package background

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// ErrInterrupted is the cause for which the context of Main ends when the user has had enough.
var ErrInterrupted = errors.New("interrupted")

// Main is the main function of a program that runs labs: it runs a command with the program's arguments, ends its context
// when the user interrupts it, and exits. An error is printed after what it is called, as in "The demo failed".
func Main(failure string, command func(context.Context, []string) error) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-signals
		stop(ErrInterrupted)
		signal.Stop(signals) // a second one ends the process; the lab's watchdog cleans up then
	}()
	err := command(ctx, os.Args[1:])
	switch {
	case err == nil:
	case errors.Is(err, ErrInterrupted):
		fmt.Fprintln(os.Stderr, "\nInterrupted. Nothing is left running.")
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "\n%s: %v\n", failure, err)
		os.Exit(1)
	}
}
