// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// profiled is how long a profile of the CPU takes.
const profiled = 10 * time.Second

// profile takes a profile of the CPU of each agent. The function that it returns waits for them and shows what they say.
func (b *bench) profile(ctx context.Context, running agents) func() error {
	group, groupCtx := errgroup.WithContext(ctx)
	paths := make([]string, len(running))
	for i, a := range running {
		paths[i] = filepath.Join(b.out, fmt.Sprintf("bench-agent-%s.pprof", a.id))
		group.Go(func() error { return fetchProfile(groupCtx, a.profile, paths[i]) })
	}
	return func() error {
		if err := group.Wait(); err != nil {
			return fmt.Errorf("take a profile: %w", err)
		}
		for _, path := range paths {
			top, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodecount=40", path).Output()
			if err != nil {
				return fmt.Errorf("go tool pprof %s: %w", path, err)
			}
			b.say("where the CPU goes in %s:\n%s", path, top)
		}
		return nil
	}
}

func fetchProfile(ctx context.Context, address, path string) (err error) {
	profile, err := fetch(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", address, int(profiled.Seconds())))
	if err != nil {
		return err
	}
	defer profile.Close()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, profile)
	return err
}

// fetch returns what a URL answers, which is to be closed, and an error where that is not 200.
func fetch(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, response.Status), response.Body.Close())
	}
	return response.Body, nil
}
