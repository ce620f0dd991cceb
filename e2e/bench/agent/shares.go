// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// shares is the CPU time that each process has used, by what it is.
type shares []share

type share struct {
	name string
	cpu  time.Duration
}

// sharesOf asks for those of the agents, the API servers with their etcd, and this process.
func sharesOf(ctx context.Context, w *world, running agents) (shares, error) {
	var result shares
	add := func(name string, pids ...int) error {
		one := share{name: name}
		for _, pid := range pids {
			u, err := usageOf(ctx, pid)
			if err != nil {
				return err
			}
			one.cpu += u.cpu
		}
		result = append(result, one)
		return nil
	}
	for _, a := range running {
		if err := add("agent "+string(a.id), a.cmd.Process.Pid); err != nil {
			return nil, err
		}
	}
	for _, c := range w.lab.Clusters() {
		if err := add("API server "+c.Name, c.APIServer.PID(), c.Etcd.PID()); err != nil {
			return nil, err
		}
	}
	return result, add("harness", os.Getpid())
}

// since returns what has been used since an earlier time, as shares of all.
func (s shares) since(earlier shares) string {
	total := time.Duration(0)
	for i := range s {
		total += s[i].cpu - earlier[i].cpu
	}
	var parts []string
	for i := range s {
		spent := s[i].cpu - earlier[i].cpu
		parts = append(parts, fmt.Sprintf("%s %.1f s (%.0f%%)", s[i].name, spent.Seconds(), 100*spent.Seconds()/max(total.Seconds(), 0.01)))
	}
	return strings.Join(parts, ", ")
}

// tellShares says where the CPU time has gone since an earlier count.
func (b *bench) tellShares(ctx context.Context, w *world, running agents, before shares) error {
	after, err := sharesOf(ctx, w, running)
	if err == nil {
		b.say("CPU: %s", after.since(before))
	}
	return err
}
