// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// waitLimit is how long anything may take on a busy machine.
const waitLimit = 90 * time.Second

// endVariable makes this test binary start a lab, and says how to end without closing it.
const endVariable = "TOMBOLO_LAB_TEST_END"

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // else controller-runtime complains after 30 seconds
	if how := os.Getenv(endVariable); how != "" {
		os.Exit(startAndEnd(how))
	}
	os.Exit(m.Run())
}

func startAndEnd(how string) int {
	start := startMember
	if how == "complete" {
		start = startComplete
	}
	l, err := start()
	defer runtime.KeepAlive(l) // it ends when nothing refers to it any more
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started", l.Cluster("a").Config().Host)
	if how == "panic" {
		panic("on purpose")
	}
	select {}
}

func startMember() (*lab.Lab, error) {
	l, err := lab.New(context.Background(), lab.Options{Clusters: []lab.ClusterOptions{lab.Member("a")}})
	if err != nil {
		return nil, err
	}
	return l, l.Cluster("a").Etcd.Freeze()
}

// apiServer matches a file that exists as soon as an API server runs, below the folder for temporary files.
const apiServer = "*/*/kube-apiserver.pid"

// TestNothingStaysBehind ends a process that runs a lab, one process of it frozen, or that is about to start one.
func TestNothingStaysBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		how    string
		signal syscall.Signal
		during moment
	}{
		"killed":                        {how: "wait", signal: syscall.SIGKILL},
		"panicked":                      {how: "panic"},
		"killed before it has a folder": {how: "wait", signal: syscall.SIGKILL, during: seen("")},
		"killed as soon as it has one":  {how: "wait", signal: syscall.SIGKILL, during: seen("*")},
		"killed when its processes run": {how: "wait", signal: syscall.SIGKILL, during: seen(apiServer)},
	} {
		t.Run(name, func(t *testing.T) {
			folder, err := os.MkdirTemp("/tmp", "lab-test-") // t.TempDir is too long for sockets on macOS
			lab.Must(t, err)
			defer os.Remove(folder)
			runUntilKilled(t, folder, tc.how, tc.signal, tc.during)
			lab.Eventually(t, waitLimit, func(ctx context.Context) error {
				left, err := leftovers(ctx, folder)
				if left != "" {
					return errors.New("left behind: " + left)
				}
				return err
			})
		})
	}
}

// moment reports whether the process that starts a lab must end now. folder is its folder for temporary files. Nil: as soon
// as the lab has started.
type moment func(folder string) (bool, error)

// seen returns the moment in which a file of this pattern was seen.
func seen(pattern string) moment {
	return func(folder string) (bool, error) {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		return len(found) > 0, err
	}
}

// runUntilKilled runs this test binary with a folder for temporary files until it is dead.
func runUntilKilled(t *testing.T, folder, how string, signal syscall.Signal, during moment) {
	t.Helper()
	cmd, stdout := startTestBinary(t, folder, how)
	if during != nil {
		awaitMoment(t, folder, during)
	} else if line, err := stdout.ReadString('\n'); err != nil || !strings.HasPrefix(line, "started ") {
		t.Errorf("the lab did not start: %q, %v", line, err)
	}
	if signal != 0 {
		if left, err := leftovers(t.Context(), folder); during == nil && (err != nil || strings.Count(left, "\n") < 4) {
			t.Errorf("a folder, a watchdog and two processes should exist, not: %s, %v", left, err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended well; it should have been killed")
	}
}

// startTestBinary starts this test binary with a folder for temporary files, and returns what it prints too.
func startTestBinary(t *testing.T, folder, how string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), endVariable+"="+how, "TMPDIR="+folder)
	stdout, err := cmd.StdoutPipe()
	lab.Must(t, err)
	lab.Must(t, cmd.Start())
	return cmd, bufio.NewReader(stdout)
}

// awaitMoment reads a folder again and again until the moment has come.
func awaitMoment(t *testing.T, folder string, during moment) {
	t.Helper()
	for range 10_000_000 {
		come, err := during(folder)
		lab.Must(t, err)
		if come {
			return
		}
	}
	t.Error("the moment has not come")
}

// leftovers returns a line for each file in a folder and each process that has the folder's path in its arguments.
func leftovers(ctx context.Context, folder string) (string, error) {
	var left strings.Builder
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		fmt.Fprintln(&left, e.Name())
	}
	processes, err := exec.CommandContext(ctx, "ps", "-A", "-o", "args").Output()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(processes)) {
		if strings.Contains(line, folder) {
			left.WriteString(line)
		}
	}
	return left.String(), nil
}
