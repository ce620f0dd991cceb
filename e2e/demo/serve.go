// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tombolo-mcs/tombolo/e2e/framework/background"
)

// serveCommand is what up starts. It is not for users.
const serveCommand = "serve"

// serve plays the first part of the story for the reader of a pipe, and keeps the stage until it is told to end.
func serve(ctx context.Context, l *background.Lab, s style) error {
	server, err := l.Serve()
	if err != nil {
		return err
	}
	n := newNarrator(server, s)
	n.title("Two clusters and a hub, on this machine")
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stage, err := newStage(ctx, n, fail)
	if err == nil {
		err = play(ctx, stage, n, (*story).exportWeb, (*story).exportDB)
	}
	if err == nil {
		err = keep(ctx, stage, server)
	}
	err = conclude(ctx, stage, err)
	if err != nil && !errors.Is(err, background.ErrInterrupted) {
		fmt.Fprintf(server, "\n%v\n", err) // nobody reads it once all was ready; the log has it
	}
	return errors.Join(err, server.Close())
}

// keep tells that all is ready and waits for the end.
func keep(ctx context.Context, s *stage, server *background.Server) error {
	guide, err := s.guide()
	if err != nil {
		return err
	}
	err = server.Ready(background.State{Guide: guide, Variables: map[string]string{
		"HUB": s.hub.Kubeconfig(), "A": s.a.cluster.Kubeconfig(), "B": s.b.cluster.Kubeconfig(), "DNS": s.b.dns,
	}})
	if err != nil {
		return err
	}
	return s.renewCredentials(ctx)
}
