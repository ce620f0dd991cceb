// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// heartbeat is the agents' interval. A member is silent after four of them, and no agent takes that long to start, even
// on a busy machine.
const heartbeat = 5 * time.Second

// program and coreDNS are the executables of the agent and of CoreDNS.
var program, coreDNS = built("tombolo-agent"), built("coredns")

// built returns a function that builds a command once for all tests.
func built(name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path := filepath.Join(programFolder, name)
		return path, lab.Build(context.Background(), filepath.Join("..", ".."), name, path)
	})
}

// programFolder goes with the tests.
var programFolder string

// recordScript becomes the program "$@" under the number that it has written to a file before: the lab's watchdog ends
// every process whose number it finds in a cluster's folder, however the test ends.
const recordScript = `echo $$ >"$1.new" && mv "$1.new" "$1" && shift && exec "$@"`

// agent is a process, as hard to please and as easy to kill as a pod's.
type agent struct {
	path, folder, name string
	args               []string
	metrics, profiles  string // where it serves them, if it does

	mu      sync.Mutex
	command *exec.Cmd
	exited  chan struct{}
	wanted  bool
	// restarts counts the exits that the test did not cause.
	restarts int
}

// start runs the agent until stop or kill. Should it end by itself it is started again, as a kubelet would.
func (a *agent) start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = true
	return a.launch()
}

func (a *agent) launch() error {
	log, err := os.OpenFile(a.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	argv := append([]string{"-c", recordScript, "chaos", filepath.Join(a.folder, a.name+".pid"), a.path}, a.args...)
	command := exec.Command("/bin/sh", argv...)
	command.Dir, command.Stdout, command.Stderr = a.folder, log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", a.name, err)
	}
	exited := make(chan struct{})
	a.command, a.exited = command, exited
	go func() {
		_ = command.Wait() // ProcessState says how it ended
		close(exited)
		time.AfterFunc(time.Second, func() { a.again(command) })
	}()
	return nil
}

// again starts the agent once more if the test did not end it.
func (a *agent) again(ended *exec.Cmd) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wanted && a.command == ended {
		a.restarts++
		if err := a.launch(); err != nil {
			a.wanted = false
		}
	}
}

// kill ends the process as a power cut would, and returns once it has ended.
func (a *agent) kill() error { return a.end(syscall.SIGKILL) }

// crash ends the process as a power cut would, and starts it again.
func (a *agent) crash() error {
	if !a.runs() {
		return fmt.Errorf("%s did not run: %w", a.name, errNoEffect)
	}
	return errors.Join(a.kill(), a.start())
}

// stop ends it as a rollout would.
func (a *agent) stop() error { return a.end(syscall.SIGTERM) }

// become runs another program instead, as a rollout would.
func (a *agent) become(path string) error {
	if a.path == path {
		return nil
	}
	err := a.stop()
	a.path = path
	return errors.Join(err, a.start())
}

func (a *agent) end(signal syscall.Signal) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted = false
	if a.command == nil {
		return nil
	}
	if err := syscall.Kill(-a.command.Process.Pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end %s: %w", a.name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	select {
	case <-a.exited:
	case <-ctx.Done():
		return fmt.Errorf("%s did not end", a.name)
	}
	return nil
}

func (a *agent) runs() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.command == nil {
		return false
	}
	select {
	case <-a.exited:
		return false
	default:
		return true
	}
}

// ends returns how often the process has ended without being asked to.
func (a *agent) ends() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.restarts
}

func (a *agent) send(signal syscall.Signal) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return syscall.Kill(-a.command.Process.Pid, signal)
}

// beside returns an agent for the same cluster, with further arguments, that does not run yet. It serves nothing, since the other one may do so.
func (a *agent) beside(name string, more ...string) *agent {
	alone := []string{"--metrics-bind-address=0", "--pprof-address=0"}
	return &agent{path: a.path, folder: a.folder, name: name, args: slices.Concat(a.args, alone, more)}
}

func (a *agent) log() string { return filepath.Join(a.folder, a.name+".log") }

func (a *agent) tail(n int) string {
	text, err := os.ReadFile(a.log())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// agentOf returns the agent of a member, not yet started.
func agentOf(t *testing.T, m *member, path string) *agent {
	t.Helper()
	a := &agent{path: path, folder: m.folder(), name: "agent", args: []string{
		"--kubeconfig=" + m.localKubeconfig, "--hub-kubeconfig=" + m.hubKubeconfig, "--service-cidrs=" + lab.Joined(m.cluster.ServiceCIDRs),
		"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--log-format=text", "--v=1",
		"--heartbeat-interval=" + heartbeat.String(), "--namespace=tombolo-system",
	}}
	t.Cleanup(func() {
		if err := a.kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("agent of %s ends:\n%s", m.id, a.tail(40))
			text, err := os.ReadFile(a.log())
			if err := errors.Join(err, os.WriteFile(filepath.Join(t.ArtifactDir(), m.id+".log"), text, 0o600)); err != nil {
				t.Log(err)
			}
		}
	})
	return a
}
