// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// readyInterval is the time between two checks of a process that starts.
	readyInterval = 50 * time.Millisecond
	// startTimeout is how long a process may take to be ready: on a machine that is busy with other labs, or with a thousand clients.
	startTimeout = 5 * time.Minute
	// stopGrace is how long a process may take to end after SIGTERM. An etcd whose client stays connected takes longer,
	// and loses nothing by being killed.
	stopGrace = 2 * time.Second
	// logTailLines is how much of a log an error shows.
	logTailLines = 20
)

// recordScript becomes the program "$@" under the same process number, which it has written to a file before. It fails,
// and the program never runs, if the lab's folder has gone: see watchdogScript.
const recordScript = `echo $$ >"$1.new" && mv "$1.new" "$1" && shift && exec "$@"`

var errExited = errors.New("the process ended")

// Process is one program of a cluster. Its methods may be called concurrently.
type Process struct {
	name    string // as in "kube-apiserver of cluster hub"
	argv    []string
	env     []string // beyond what launch sets
	machine *machine // that it runs on; nil: on the host
	folder  string   // working directory and HOME
	pidFile string
	logFile string
	ready   func(context.Context) error

	mu  sync.Mutex
	run *run
}

// run is one life of a process.
type run struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed after the end
	err    error         // how it ended; valid once exited is closed
}

// Start starts the process and returns when it is ready. If it ends before, or is not ready after five minutes
// or when ctx ends, it is killed, and the error has the end of its log. It is an error if the process runs already.
func (p *Process) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return fmt.Errorf("starting %s: it runs already", p.name)
	}
	r, err := p.launch()
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.run = r
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.awaitReady(ctx, r); err != nil {
		p.end(r, syscall.SIGKILL)
		return fmt.Errorf("starting %s: %w\nIts log %s ends:\n%s", p.name, err, p.logFile, p.LogTail())
	}
	return nil
}

// Stop ends the process as an administrator would, with SIGTERM, and with SIGKILL if it has not ended after 2 seconds or
// when ctx ends. A frozen process is thawed. Nothing happens if it does not run.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil
	}
	if err := p.signal(syscall.SIGTERM, syscall.SIGCONT); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	select {
	case <-p.run.exited:
	case <-ctx.Done():
		p.end(p.run, syscall.SIGKILL)
	}
	return nil
}

// Kill ends the process with SIGKILL, like a crash. Nothing happens if it does not run.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		p.end(p.run, syscall.SIGKILL)
	}
}

// Restart is Stop and Start.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Running says whether the process exists, be it ready, frozen or neither.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

// PID returns the number of the process, and 0 if it does not run.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0
	}
	return p.run.cmd.Process.Pid
}

// LogFile returns the path of the log, which all lives of the process append to.
func (p *Process) LogFile() string { return p.logFile }

func (p *Process) String() string { return p.name }

func (p *Process) running() bool {
	if p.run == nil {
		return false
	}
	select {
	case <-p.run.exited:
		return false
	default:
		return true
	}
}

// launch starts the program in a process group of its own, so that Ctrl-C at a terminal reaches the test and not the
// lab, with an environment of its own: etcd would read the ETCD_ variables of ours.
func (p *Process) launch() (*run, error) {
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	argv := p.argv
	if p.machine != nil {
		argv = p.machine.enter(argv...)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", recordScript, "lab", p.pidFile}, argv...)...)
	cmd.Dir = p.folder
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.folder, "TMPDIR=" + p.folder}, p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &run{cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(r.exited)
		r.err = cmd.Wait()
		_ = os.Remove(p.pidFile) // absent if the lab's folder has gone
	}()
	return r, nil
}

// awaitReady returns nil once the process is ready, else why it is not: errExited if it ended.
func (p *Process) awaitReady(ctx context.Context, r *run) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, readyInterval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-r.exited:
			return false, fmt.Errorf("%w: %v", errExited, r.err)
		default:
			last = p.ready(ctx)
			return last == nil, nil
		}
	})
	if err == nil || errors.Is(err, errExited) {
		return err
	}
	return fmt.Errorf("it is not ready (%v): %w", last, err)
}

// signal sends signals to a running process.
func (p *Process) signal(signals ...syscall.Signal) error {
	if !p.running() {
		return fmt.Errorf("sending a signal to %s: it does not run", p.name)
	}
	for _, s := range signals {
		if err := syscall.Kill(-p.run.cmd.Process.Pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("sending %v to %s: %w", s, p.name, err)
		}
	}
	return nil
}

// end sends a deadly signal and waits for the end.
func (p *Process) end(r *run, s syscall.Signal) {
	_ = syscall.Kill(-r.cmd.Process.Pid, s) // fails only if it ended already
	<-r.exited
}

// logTailBytes is more than enough for logTailLines.
const logTailBytes = 64 << 10

// LogTail returns the last 20 lines of the log, or why it cannot be read.
func (p *Process) LogTail() string {
	f, err := os.Open(p.logFile)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > logTailBytes {
		if _, err := f.Seek(-logTailBytes, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-logTailLines):], []byte("\n")))
}
