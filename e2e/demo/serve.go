// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// serveCommand is what up starts. It is not for users.
const serveCommand = "serve"

// Files that up hands over.
const (
	lockFile = 3
	tellFile = 4
)

// serve plays the first part of the story for the reader of a pipe, and keeps the stage until it is told to end.
func serve(ctx context.Context, s style) error {
	syscall.CloseOnExec(lockFile) // the programs on the stage must not hold it
	syscall.CloseOnExec(tellFile)
	lock, tells := os.NewFile(lockFile, "lock"), os.NewFile(tellFile, "pipe")
	defer lock.Close()
	h, err := newHome()
	if err != nil {
		return err
	}
	if err := h.write(state{PID: os.Getpid()}); err != nil {
		return err
	}
	n := newNarrator(tells, s)
	n.title("Two clusters and a hub, on this machine")
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stage, err := newStage(ctx, n, fail)
	if err == nil {
		err = play(ctx, stage, n, (*story).exportWeb, (*story).exportDB)
	}
	if err == nil {
		err = keep(ctx, h, stage, tells)
	}
	err = conclude(ctx, stage, err)
	if clearErr := h.clear(); clearErr != nil {
		err = errors.Join(err, clearErr)
	}
	if err != nil && !errors.Is(err, errInterrupted) {
		fmt.Fprintf(tells, "\n%v\n", err) // nobody reads it once all was ready; the log has it
	}
	return err
}

// keep tells that all is ready and waits for the end.
func keep(ctx context.Context, h home, s *stage, tells *os.File) error {
	guide, err := s.guide()
	if err != nil {
		return err
	}
	ready := state{
		PID: os.Getpid(), Guide: guide,
		Hub: s.hub.Kubeconfig(), A: s.a.cluster.Kubeconfig(), B: s.b.cluster.Kubeconfig(), DNS: s.b.dns,
	}
	if err := h.write(ready); err != nil {
		return err
	}
	if err := tells.Close(); err != nil {
		return err
	}
	return s.renewCredentials(ctx)
}
