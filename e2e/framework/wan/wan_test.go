// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package wan_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/wan"
)

// A network has the delay and the loss that are set, and can be cut.
func TestArea(t *testing.T) {
	lab.NeedComplete(t)
	area := &wan.Area{}
	t.Cleanup(func() { lab.Must(t, area.Close()) })
	var pids []int
	for i := range 2 {
		pid := namespace(t)
		pids = append(pids, pid)
		lab.Must(t, area.Attach(t.Context(), pid, "wan", netip.MustParsePrefix(fmt.Sprintf("198.19.0.%d/24", i+1)), netip.MustParsePrefix(fmt.Sprintf("fd00:19::%d/64", i+1))))
	}
	to := "198.19.0.2"
	ping := func(count string) string {
		out, _ := exec.CommandContext(t.Context(), "nsenter", "--target", fmt.Sprint(pids[0]), "--net",
			"ping", "-q", "-c", count, "-i", "0.02", "-W", "1", to).CombinedOutput()
		return string(out)
	}
	for _, to = range []string{"fd00:19::2", "198.19.0.2"} {
		if out := ping("5"); !strings.Contains(out, " 0% packet loss") {
			t.Errorf("no delay, no loss, to %s:\n%s", to, out)
		}
	}
	area.SetDelay(25 * time.Millisecond)
	if out := ping("5"); !strings.Contains(out, "= 5") { // rtt min/avg/max/mdev = 50.1/...
		t.Errorf("25 ms one way:\n%s", out)
	}
	area.SetDelay(0)
	area.SetLoss(1000)
	if out := ping("2"); !strings.Contains(out, "100% packet loss") {
		t.Errorf("all packets are lost:\n%s", out)
	}
	area.SetLoss(0)
	area.Cut(true)
	if out := ping("2"); !strings.Contains(out, "100% packet loss") {
		t.Errorf("cut:\n%s", out)
	}
	area.Cut(false)
	if out := ping("2"); !strings.Contains(out, " 0% packet loss") {
		t.Errorf("mended:\n%s", out)
	}
}

// namespace returns a process with a network namespace of its own, which ends with the test.
func namespace(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "1000000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	lab.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", cmd.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}
