// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// shares is the CPU time that each process has used, by what it is.
type shares []share

type share struct {
	sort sort
	of   string // the cluster
	cpu  time.Duration
}

// sort is what a process is.
type sort string

// What the processes of a run are. The harness writes and watches for all members that have no agent of their own.
const (
	sortAgent       sort = "agent"
	sortAPIServer   sort = "API server"
	sortEtcd        sort = "etcd"
	sortControllers sort = "controllers"
	sortHarness     sort = "harness"
)

// plural is what all of a sort are called, the hub's and the importer's.
var plural = map[sort]string{sortAPIServer: "API servers", sortEtcd: "etcds", sortHarness: "harness"}

// sharesOf asks for those of the agents, the API servers with their etcd, and this process.
func sharesOf(ctx context.Context, w *world, running agents) (shares, error) {
	var result shares
	add := func(s sort, of string, pid int) error {
		u, err := usageOf(ctx, pid)
		if err == nil {
			result = append(result, share{s, of, u.cpu})
		}
		return err
	}
	for _, a := range running {
		if err := add(sortAgent, string(a.id), a.cmd.Process.Pid); err != nil {
			return nil, err
		}
	}
	for _, c := range w.lab.Clusters() {
		for _, one := range []struct {
			sort    sort
			process *lab.Process
		}{{sortAPIServer, c.APIServer}, {sortEtcd, c.Etcd}, {sortControllers, c.ControllerManager}} {
			if one.process == nil {
				continue
			}
			if err := add(one.sort, c.Name, one.process.PID()); err != nil {
				return nil, err
			}
		}
	}
	return result, add(sortHarness, "", os.Getpid())
}

// since returns what has been used since an earlier time.
func (s shares) since(earlier shares) shares {
	result := make(shares, len(s))
	for i := range s {
		result[i] = share{s[i].sort, s[i].of, s[i].cpu - earlier[i].cpu}
	}
	return result
}

// total returns the time of one sort of processes, or of all where none is given.
func (s shares) total(only ...sort) time.Duration {
	sum := time.Duration(0)
	for _, one := range s {
		if len(only) == 0 || only[0] == one.sort {
			sum += one.cpu
		}
	}
	return sum
}

// busy returns the part of this machine's CPU that was used in so much time.
func (s shares) busy(took time.Duration) float64 {
	return s.total().Seconds() / took.Seconds() / float64(runtime.NumCPU())
}

// percent returns the share of one sort in all.
func (s shares) percent(of sort) float64 {
	return 100 * s.total(of).Seconds() / max(s.total().Seconds(), 0.01)
}

func (s shares) String() string {
	parts := make([]string, 0, len(s))
	for _, one := range s {
		name := strings.TrimSpace(fmt.Sprintf("%s %s", one.sort, one.of))
		parts = append(parts, fmt.Sprintf("%s %.1f s (%.0f%%)", name, one.cpu.Seconds(), 100*one.cpu.Seconds()/max(s.total().Seconds(), 0.01)))
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
