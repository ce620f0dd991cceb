// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Freeze halts the process and returns when it has halted: its connections stay open, and there is no answer. It is an error
// if it does not run.
func (p *Process) Freeze() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	pid := p.run.cmd.Process.Pid
	err := wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		return halted(ctx, pid)
	})
	if err != nil {
		return fmt.Errorf("freezing %s: %w", p.name, err)
	}
	return nil
}

// Thaw lets a frozen process continue. It is an error if it does not run.
func (p *Process) Thaw() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signal(syscall.SIGCONT)
}

// settled returns when a process that runs is ready, and an error where that takes five minutes.
func (p *Process) settled(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return p.awaitReady(ctx, p.run)
}

// halt halts a process and reports whether it has. One that has ended, or of which nothing is left but the number,
// counts as halted.
func halt(ctx context.Context, pid int) (bool, error) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); errors.Is(err, syscall.ESRCH) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	ended := err != nil || strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z")
	if ended {
		return true, nil
	}
	return halted(ctx, pid)
}

// halted reports whether all of a process has stopped. SIGSTOP itself is no proof: a thread on another processor may
// still answer a request. Without /proc, as on macOS, ps is used.
func halted(ctx context.Context, pid int) (bool, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil { // "PID (NAME) STATE ..."; the name may hold anything
		return strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " T"), nil
	}
	state, err := exec.CommandContext(ctx, "ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false, fmt.Errorf("the state of process %d: %w", pid, err)
	}
	return strings.HasPrefix(strings.TrimSpace(string(state)), "T"), nil
}
