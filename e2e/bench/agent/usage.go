// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has used of the machine.
type usage struct {
	cpu      time.Duration // since it started
	resident int           // bytes
}

// ticks is how many units of CPU time Linux counts a second.
const ticks = 100

// usageOf asks the kernel, or where there is no /proc, as on macOS, ps.
func usageOf(ctx context.Context, pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usageByPS(ctx, pid)
	}
	// The second field is a name in parentheses that may hold anything. utime, stime and rss are the 14th, 15th and 24th.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var user, system, pages int
	if _, err := fmt.Sscan(strings.Join([]string{fields[11], fields[12], fields[21]}, " "), &user, &system, &pages); err != nil {
		return usage{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return usage{cpu: time.Duration(user+system) * time.Second / ticks, resident: pages * os.Getpagesize()}, nil
}

func usageByPS(ctx context.Context, pid int) (usage, error) {
	output, err := exec.CommandContext(ctx, "ps", "-o", "rss=,time=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return usage{}, fmt.Errorf("ask ps about process %d: %w", pid, err)
	}
	return parsePS(string(output))
}

// parsePS reads "RSS TIME": kilobytes, and [[DD-]HH:]MM:SS with or without hundredths.
func parsePS(line string) (usage, error) {
	fields := strings.Fields(line)
	if len(fields) != 2 {
		return usage{}, fmt.Errorf("ps says %q", line)
	}
	kilobytes, err := strconv.Atoi(fields[0])
	if err != nil {
		return usage{}, fmt.Errorf("ps says %q: %w", line, err)
	}
	days, clock, hasDays := strings.Cut(fields[1], "-")
	if !hasDays {
		days, clock = "0", fields[1]
	}
	total, err := strconv.ParseFloat(days, 64)
	if err != nil {
		return usage{}, fmt.Errorf("ps says %q: %w", line, err)
	}
	total *= 24 // hours
	for i, part := range strings.Split(clock, ":") {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return usage{}, fmt.Errorf("ps says %q: %w", line, err)
		}
		if i == 0 {
			total += n
		} else {
			total = total*60 + n
		}
	}
	return usage{cpu: time.Duration(total * float64(time.Second)), resident: kilobytes << 10}, nil
}
