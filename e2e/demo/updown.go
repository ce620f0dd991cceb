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

// endPatience is how long a demo may take to clean up.
const endPatience = time.Minute

// up starts a demo that goes on when this process has ended, and tells its story until everything runs.
func up(ctx context.Context) error {
	h, err := newHome()
	if err != nil {
		return err
	}
	lock, err := h.claim()
	if errors.Is(err, errRuns) {
		return alreadyUp(h)
	}
	if err != nil {
		return err
	}
	if err := h.clear(); err != nil {
		return errors.Join(err, lock.Close())
	}
	told, server, err := startServer(h, lock)
	if err := errors.Join(err, lock.Close()); err != nil { // the server holds it now
		return err
	}
	ended := context.AfterFunc(ctx, func() { _ = server.Process.Signal(syscall.SIGTERM) }) // fails only if it has ended
	_, err = io.Copy(os.Stdout, told)
	s, readErr := h.read()
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
	fmt.Print(s.Guide)
	return nil
}

func alreadyUp(h home) error {
	s, err := h.read()
	if err != nil {
		return err
	}
	if s.Guide == "" {
		fmt.Println("The demo is about to start or to end. Try again in a few seconds.")
		return nil
	}
	fmt.Println("The demo runs already.")
	fmt.Print(s.Guide)
	return nil
}

// startServer starts a process of its own session, which takes over the lock. What it has to tell can be read until it is
// ready, or has failed.
func startServer(h home, lock *os.File) (*os.File, *exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	log, err := os.Create(h.path("log"))
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	told, tells, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer tells.Close()
	server := exec.Command(self, serveCommand, string(styleOf(os.Stdout)))
	server.Stdout, server.Stderr = log, log
	server.ExtraFiles = []*os.File{lock, tells}
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = server.Start()
	return told, server, err
}

// down ends the demo that up started, if there is one, and returns when all of it has gone.
func down(ctx context.Context) error {
	h, err := newHome()
	if err != nil {
		return err
	}
	var signalled int
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, endPatience, true, func(context.Context) (bool, error) {
		lock, err := h.claim()
		if err == nil {
			return true, errors.Join(h.clear(), lock.Close())
		}
		if !errors.Is(err, errRuns) {
			return false, err
		}
		s, err := h.read()
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
		return fmt.Errorf("ending the demo, whose log is %s: %w", h.path("log"), err)
	case signalled != 0:
		fmt.Println("The demo has ended. All is stopped and removed.")
	}
	return nil
}
