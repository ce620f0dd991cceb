// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// endVariable tells this test binary to start a lab, and how to end without closing it.
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
	fmt.Println("started")
	switch how {
	case "panic":
		panic("on purpose")
	case "exit":
		return 3
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

// apiServer is a file that is there as soon as an API server is, relative to the folder in which its lab's folder lies.
const apiServer = "*/*/kube-apiserver.pid"

// TestNothingStaysBehind ends a process that runs a lab, one process of it frozen, or that is about to start one.
func TestNothingStaysBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		how    string
		signal syscall.Signal
		during moment
	}{
		"killed":                      {how: "wait", signal: syscall.SIGKILL},
		"interrupted":                 {how: "wait", signal: syscall.SIGINT},
		"panicked":                    {how: "panic"},
		"exited":                      {how: "exit"},
		"killed when the API starts":  {how: "wait", signal: syscall.SIGKILL, during: looksAt(apiServer, 1)},
		"killed when the API is late": {how: "wait", signal: syscall.SIGKILL, during: looksAt(apiServer, 20_000)},
	} {
		t.Run(name, func(t *testing.T) {
			testDeath(t, tc.how, tc.signal, tc.during)
		})
	}
}

// TestNothingStaysBehindOfAnEarlyStart is about the moments in which folders and processes come into being.
func TestNothingStaysBehindOfAnEarlyStart(t *testing.T) {
	for i := range 10 {
		testDeath(t, "wait", syscall.SIGKILL, looksAt("", 1+1000*i))
		testDeath(t, "wait", syscall.SIGKILL, looksAt("*", 1+200*i))
	}
}

// moment reports, of the folder for temporary files, whether it has come in which the process that starts a lab there is to end. Nil is the
// moment in which the start is complete.
type moment func(folder string) (bool, error)

// looksAt returns the moment in which files of this pattern have been seen so many times. How fast looks follow each other is up to the
// machine, so each run ends in moments of its own.
func looksAt(pattern string, times int) moment {
	seen := 0
	return func(folder string) (bool, error) {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if len(found) > 0 {
			seen++
		}
		return seen >= times, err
	}
}

func testDeath(t *testing.T, how string, signal syscall.Signal, during moment) {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "lab-test-") // t.TempDir is too long for sockets on macOS
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(folder)
	runUntilDeath(t, folder, how, signal, during)
	eventually(t, "processes and folders are gone", func(ctx context.Context) (bool, error) {
		left, err := leftovers(ctx, folder)
		return left == "", err
	})
}

// runUntilDeath runs this test binary with a folder for temporary files until it is dead.
func runUntilDeath(t *testing.T, folder, how string, signal syscall.Signal, during moment) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), endVariable+"="+how, "TMPDIR="+folder)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if during != nil {
		awaitMoment(t, folder, during)
	} else if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "started\n" {
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
		t.Error("the process ended well; it should have died")
	}
}

// awaitMoment looks at a folder again and again until the moment has come.
func awaitMoment(t *testing.T, folder string, during moment) {
	t.Helper()
	for range 10_000_000 {
		come, err := during(folder)
		if err != nil {
			t.Fatal(err)
		}
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
