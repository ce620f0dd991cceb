// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package background keeps a lab running after the command that started it has ended: Up, Down and Running are for commands
// that people type, Serve is for the process that Up starts.
package background

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

// ErrNotUp says that nothing runs.
var ErrNotUp = errors.New("none is running")

// Lab is one that may run in the background. There is one of each name for each user.
type Lab struct {
	what string
	home home
}

// New returns the user's lab of that name, a word such as "demo" that messages use too.
func New(name string) (*Lab, error) {
	h, err := newHome(name)
	return &Lab{what: name, home: h}, err
}

// Up starts this program with args in a process of its own, which goes on when this one has ended, and copies what it tells
// until everything runs. The program must call Serve then.
func (l *Lab) Up(ctx context.Context, out io.Writer, args ...string) error {
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
		_ = server.Wait() // it has told what went wrong
		return errors.New("see above. Nothing is left running")
	}
	_, err = io.WriteString(out, s.Guide)
	return err
}

func (l *Lab) alreadyUp(out io.Writer) error {
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
func (l *Lab) startServer(lock *os.File, args []string) (*os.File, *exec.Cmd, error) {
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

// Down ends what Up started, if it runs, and returns when all of it has gone.
func (l *Lab) Down(ctx context.Context, out io.Writer) error {
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

// Running returns what the lab that Up left running says of itself, or ErrNotUp.
func (l *Lab) Running() (State, error) {
	switch lock, err := l.home.claim(); {
	case err == nil:
		return State{}, errors.Join(ErrNotUp, lock.Close())
	case !errors.Is(err, errRuns):
		return State{}, err
	}
	s, err := l.home.read()
	if err == nil && s.Guide == "" {
		err = ErrNotUp
	}
	return s, err
}

// Server is the process that Up starts. Close ends what it says of itself.
type Server struct {
	lab   *Lab
	lock  *os.File
	tells *os.File
}

// Serve takes over what Up has handed over.
func (l *Lab) Serve() (*Server, error) {
	syscall.CloseOnExec(lockFile) // the programs of the lab must not hold it
	syscall.CloseOnExec(tellFile)
	s := &Server{lab: l, lock: os.NewFile(lockFile, "lock"), tells: os.NewFile(tellFile, "pipe")}
	return s, l.home.write(State{PID: os.Getpid()})
}

// Write tells something to who has called Up, until Ready.
func (s *Server) Write(text []byte) (int, error) { return s.tells.Write(text) }

// Ready says that everything runs, and lets Up return.
func (s *Server) Ready(state State) error {
	state.PID = os.Getpid()
	return errors.Join(s.lab.home.write(state), s.tells.Close())
}

// Close says that nothing runs any more.
func (s *Server) Close() error { return errors.Join(s.lab.home.clear(), s.lock.Close()) }
