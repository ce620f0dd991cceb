// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/e2e/lab"
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

// TestNothingStaysBehind ends a process that runs a lab, one process of it frozen, or that is about to start one.
func TestNothingStaysBehind(t *testing.T) {
	for name, tc := range map[string]struct {
		how    string
		signal syscall.Signal
		after  time.Duration // during the start; zero: when it is complete
	}{
		"killed":                      {how: "wait", signal: syscall.SIGKILL},
		"interrupted":                 {how: "wait", signal: syscall.SIGINT},
		"panicked":                    {how: "panic"},
		"exited":                      {how: "exit"},
		"killed when the API starts":  {how: "wait", signal: syscall.SIGKILL, after: 700 * time.Millisecond},
		"killed when the API is late": {how: "wait", signal: syscall.SIGKILL, after: 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			testDeath(t, tc.how, tc.signal, tc.after)
		})
	}
}

// TestNothingStaysBehindOfAnEarlyStart is about the moments in which folders and processes come into being.
func TestNothingStaysBehindOfAnEarlyStart(t *testing.T) {
	for after := 5 * time.Millisecond; after < 150*time.Millisecond; after += 5 * time.Millisecond {
		testDeath(t, "wait", syscall.SIGKILL, after)
	}
}

func testDeath(t *testing.T, how string, signal syscall.Signal, after time.Duration) {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "lab-test-") // t.TempDir is too long for sockets on macOS
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(folder)
	runUntilDeath(t, folder, how, signal, after)
	eventually(t, "processes and folders are gone", func(ctx context.Context) (bool, error) {
		left, err := leftovers(ctx, folder)
		return left == "", err
	})
}

// runUntilDeath runs this test binary with a folder for temporary files until it is dead.
func runUntilDeath(t *testing.T, folder, how string, signal syscall.Signal, after time.Duration) {
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
	if after > 0 {
		<-time.After(after)
	} else if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "started\n" {
		t.Errorf("the lab did not start: %q, %v", line, err)
	}
	if signal != 0 {
		if left, err := leftovers(t.Context(), folder); after == 0 && (err != nil || strings.Count(left, "\n") < 4) {
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
