// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// pauseProgram returns the file of the sandbox image's program.
func pauseProgram(t *testing.T) string {
	t.Helper()
	// Read, so that go test knows the source to be an input and keeps no old result.
	if _, err := os.ReadFile(filepath.Join("pause", "main.go")); err != nil {
		t.Fatal(err)
	}
	k := kitchen{root: productRoot, out: io.Discard, target: platform{"linux", runtime.GOARCH}}
	files, err := pauseFiles(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if err := static(files[0].content); err != nil {
		t.Errorf("pause %v", err)
	}
	name := filepath.Join(t.TempDir(), "pause")
	if err := writeProgram(name, files[0].content, 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// writeProgram writes a file that may be run at once. While a file is written no other test may start a program: that would hold it open for
// writing until it runs, and a file that is being written cannot be run.
func writeProgram(name string, content []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(name, content, mode)
}

// It goes on until it is told to end, and takes the status even of a child that it was born with.
func TestPauseEnds(t *testing.T) {
	t.Parallel()
	program := pauseProgram(t)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		command := exec.Command("sh", "-c", `true & exec "$0"`, program)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { command.Process.Kill() })
		pid := command.Process.Pid
		within(t, "the shell becomes pause", func() bool {
			running, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
			return err == nil && running == program
		})
		// From then on it listens to signals.
		within(t, "pause has no child", func() bool { return len(children(t, pid)) == 0 })
		if err := command.Process.Signal(syscall.SIGCHLD); err != nil {
			t.Fatal(err)
		}
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("%s: %v, want status 0", signal, err)
		}
	}
}

// As the first process of a namespace it inherits those whose parent has ended, and leaves none of them a zombie.
func TestPauseReaps(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a namespace needs root")
	}
	command := exec.Command(pauseProgram(t))
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	pid := command.Process.Pid
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// The shell ends at once; what it leaves behind ends once it has nothing more to read.
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
	shell := exec.CommandContext(ctx, "nsenter", "--target", fmt.Sprint(pid), "--pid", "sh", "-c", "cat <&3 >/dev/null 2>&1 & cat <&3 >/dev/null 2>&1 &")
	shell.ExtraFiles = []*os.File{reader}
	if said, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	reader.Close()
	within(t, "pause has the two orphans", func() bool { return len(children(t, pid)) == 2 })
	// They end while pause stands still, so that one signal stands for both.
	if err := command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	within(t, "both are zombies", func() bool { return strings.Count(strings.Join(children(t, pid), " "), "Z") == 2 })
	if err := command.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	within(t, "pause has no child", func() bool { return len(children(t, pid)) == 0 })
	if _, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil {
		t.Errorf("pause has ended itself: %v", err)
	}
}

// children returns the states of the processes whose parent is pid, "Z" for a zombie.
func children(t *testing.T, pid int) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range all {
		content, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(content), fmt.Sprintf("\nPPid:\t%d\n", pid)) {
			continue // it has ended, or is somebody else's
		}
		_, after, _ := strings.Cut(string(content), "\nState:\t")
		state, _, _ := strings.Cut(after, " ")
		found = append(found, state)
	}
	return found
}
