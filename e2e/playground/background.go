// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// endPatience is how long a lab may take to clean up.
const endPatience = time.Minute

// Files that Up hands over.
const (
	lockFile = 3
	tellFile = 4
)

// errNotUp says that nothing runs.
var errNotUp = errors.New("none is running: start one with make demo-up or make lab-up")

// instance is one that may run in the background. There is one of each name for each user.
type instance struct {
	what string
	home home
}

// newInstance returns the user's lab of that name, a word such as "demo" that messages use too.
func newInstance(name string) (*instance, error) {
	h, err := newHome(name)
	return &instance{what: name, home: h}, err
}

// up starts this program with args in a process of its own, which continues when this one has ended, and copies its output
// until everything runs. The program must call Serve then.
func (l *instance) up(ctx context.Context, out io.Writer, args ...string) error {
	lock, err := l.home.claim()
	if errors.Is(err, errRuns) {
		return l.alreadyUp(out)
	}
	if err != nil {
		return err
	}
	if err := l.home.clear(); err != nil {
		return errors.Join(err, lock.Close())
	}
	told, server, err := l.startServer(lock, args)
	if err := errors.Join(err, lock.Close()); err != nil { // the server holds it now
		return err
	}
	ended := context.AfterFunc(ctx, func() { _ = server.Process.Signal(syscall.SIGTERM) }) // fails only if it has ended
	_, err = io.Copy(out, told)
	s, readErr := l.home.read()
	switch {
	case ctx.Err() != nil || !ended():
		_ = server.Wait() // it cleans up
		return context.Cause(ctx)
	case err != nil || readErr != nil:
		return errors.Join(err, readErr)
	case s.Guide == "":
		_ = server.Wait() // its output has the reason
		return errors.New("see above. Nothing is left running")
	}
	_, err = io.WriteString(out, s.Guide)
	return err
}

func (l *instance) alreadyUp(out io.Writer) error {
	s, err := l.home.read()
	if err != nil {
		return err
	}
	if s.Guide == "" {
		_, err = fmt.Fprintf(out, "The %s is about to start or to end. Try again in a few seconds.\n", l.what)
		return err
	}
	_, err = fmt.Fprintf(out, "The %s runs already.\n%s", l.what, s.Guide)
	return err
}

// startServer starts a process of its own session, which takes over the lock. What it has to tell can be read until it is
// ready, or has failed.
func (l *instance) startServer(lock *os.File, args []string) (*os.File, *exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	log, err := os.Create(l.home.path("log"))
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	told, tells, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer tells.Close()
	server := exec.Command(self, args...)
	server.Stdout, server.Stderr = log, log
	server.ExtraFiles = []*os.File{lock, tells}
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = server.Start()
	return told, server, err
}

// down ends what Up started, if it runs, and returns when all of it has gone.
func (l *instance) down(ctx context.Context, out io.Writer) error {
	var signalled int
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, endPatience, true, func(context.Context) (bool, error) {
		lock, err := l.home.claim()
		if err == nil {
			return true, errors.Join(l.home.clear(), lock.Close())
		}
		if !errors.Is(err, errRuns) {
			return false, err
		}
		s, err := l.home.read()
		if err != nil || s.PID == 0 || s.PID == signalled {
			return false, err
		}
		signalled = s.PID
		return false, syscall.Kill(s.PID, syscall.SIGTERM) // the lock says that it lives
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("ending the %s, whose log is %s: %w", l.what, l.home.path("log"), err)
	case signalled != 0:
		_, err = fmt.Fprintf(out, "The %s has ended. All is stopped and removed.\n", l.what)
	}
	return err
}

// running returns what the lab that Up left running says of itself, or errNotUp.
func (l *instance) running() (state, error) {
	switch lock, err := l.home.claim(); {
	case err == nil:
		return state{}, errors.Join(errNotUp, lock.Close())
	case !errors.Is(err, errRuns):
		return state{}, err
	}
	s, err := l.home.read()
	if err == nil && s.Guide == "" {
		err = errNotUp
	}
	return s, err
}

// server is the process that Up starts. Close ends what it says of itself.
type server struct {
	lab   *instance
	lock  *os.File
	tells *os.File
}

// serve takes over what Up has handed over.
func (l *instance) serve() (*server, error) {
	syscall.CloseOnExec(lockFile) // the programs of the lab must not hold it
	syscall.CloseOnExec(tellFile)
	s := &server{lab: l, lock: os.NewFile(lockFile, "lock"), tells: os.NewFile(tellFile, "pipe")}
	return s, l.home.write(state{PID: os.Getpid()})
}

// Write prints to the caller of Up, until Ready.
func (s *server) Write(text []byte) (int, error) { return s.tells.Write(text) }

// ready says that everything runs, and lets Up return.
func (s *server) ready(state state) error {
	state.PID = os.Getpid()
	return errors.Join(s.lab.home.write(state), s.tells.Close())
}

// Close says that nothing runs any more.
func (s *server) Close() error { return errors.Join(s.lab.home.clear(), s.lock.Close()) }
