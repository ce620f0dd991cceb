// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows what Tombolo does, on real API servers: it exports services, shows what other clusters see of them,
// asks their DNS and compares the answers with what the API servers hold.
//
//	demo run   plays the story and cleans up
//	demo up    plays the first part and leaves everything running
//	demo down  ends what up left running
//	demo env   prints where that is, for a shell to evaluate
//	demo ask NAME TYPE  asks its DNS
package main

import (
	"context"
	"errors"
	"os"

	"github.com/tombolo-mcs/tombolo/e2e/framework/background"
)

func main() { background.Main("The demo failed", command) }

func command(ctx context.Context, args []string) error {
	lab, err := background.New("demo")
	if err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "run":
		return run(ctx)
	case len(args) == 1 && args[0] == "up":
		return lab.Up(ctx, os.Stdout, serveCommand, string(styleOf(os.Stdout)))
	case len(args) == 1 && args[0] == "down":
		return lab.Down(ctx, os.Stdout)
	case len(args) == 1 && args[0] == "env":
		return env(lab)
	case len(args) == 3 && args[0] == "ask":
		return ask(ctx, lab, args[1], args[2])
	case len(args) == 2 && args[0] == serveCommand:
		return serve(ctx, lab, style(args[1]))
	}
	return errors.New("usage: demo run | up | down | env | ask NAME TYPE")
}

// run plays all of the story.
func run(ctx context.Context) error {
	n := newNarrator(os.Stdout, styleOf(os.Stdout))
	n.title("Two clusters and a hub, on this machine")
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s, err := newStage(ctx, n, fail)
	if err == nil {
		err = play(ctx, s, n, (*story).exportWeb, (*story).exportDB, (*story).conflict, (*story).withdraw)
	}
	if err := conclude(ctx, s, err); err != nil {
		return err
	}
	n.title("Every answer was as it should be. All is stopped and removed.")
	n.sayf("%s  in all. Now try \"make demo-up\", which leaves the clusters running for you.", n.stamp())
	return nil
}

// play tells the chapters of the story.
func play(ctx context.Context, s *stage, n *narrator, chapters ...func(*story, context.Context) error) error {
	t := &story{stage: s, narrator: n}
	for _, chapter := range chapters {
		if err := chapter(t, ctx); err != nil {
			return err
		}
	}
	return nil
}

// conclude closes the stage and returns how it all ended: where it failed, with the ends of the logs.
func conclude(ctx context.Context, s *stage, err error) error {
	result := err
	switch {
	case ctx.Err() != nil:
		result = context.Cause(ctx)
		if !errors.Is(result, background.ErrInterrupted) {
			result = s.explain(result)
		}
	case err != nil:
		result = s.explain(err)
	}
	return errors.Join(result, s.close())
}
