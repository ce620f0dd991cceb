// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause is the first process of a lab's pods: it holds their namespaces until SIGINT or SIGTERM, and takes the exit
// status of whatever processes are left to it, so that none remains as a zombie.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	// A child may have ended before signals were listened to.
	err := reap()
	for err == nil && <-signals == syscall.SIGCHLD {
		err = reap()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pause:", err)
		os.Exit(1)
	}
}

// reap takes the status of all children that have ended: one signal may stand for several.
func reap() error {
	for {
		switch pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			return nil
		case err != nil:
			return os.NewSyscallError("wait4", err)
		case pid == 0:
			return nil
		}
	}
}
