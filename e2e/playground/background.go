// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// endWaitLimit is how long a lab may take to clean up.
const endWaitLimit = time.Minute

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
// until everything runs. The program must call serve then.
func (l *instance) up(ctx context.Context, out io.Writer, args ...string) error {
	s, err := l.running()
	switch {
	case err == nil:
		_, err = fmt.Fprintf(out, "The %s runs already.\n%s", l.what, s.Guide)
		return err
	case !errors.Is(err, errNotUp):
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(l.home.path("log"))
	if err != nil {
		return err
	}
	defer log.Close()
	serverLog, err := os.Open(log.Name())
	if err != nil {
		return err
	}
	defer serverLog.Close()
	server := exec.Command(self, args...)
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := server.Start(); err != nil {
		return err
	}
	return l.awaitReady(ctx, out, serverLog, server)
}

// awaitReady copies the log of a server until everything runs, and prints what there is to try.
func (l *instance) awaitReady(ctx context.Context, out io.Writer, serverLog io.Reader, server *exec.Cmd) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Wait() // its output has the reason
	}()
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			_ = server.Process.Signal(syscall.SIGTERM) // fails only if it has ended
			<-ended                                    // it cleans up
			return context.Cause(ctx)
		case <-ended:
			_, err := io.Copy(out, serverLog)
			return errors.Join(err, errors.New("see above. Nothing is left running"))
		case <-ticks.C:
		}
		s, err := l.home.read()
		if _, copyErr := io.Copy(out, serverLog); err != nil || copyErr != nil {
			return errors.Join(err, copyErr)
		}
		if s.PID == server.Process.Pid && s.Guide != "" {
			_, err := io.WriteString(out, s.Guide)
			return err
		}
	}
}

// down ends what up started, if it runs, and returns when all of it has gone.
func (l *instance) down(ctx context.Context, out io.Writer) error {
	var signalled int
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, endWaitLimit, true, func(context.Context) (bool, error) {
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

// running returns what the lab that up left running says of itself, or errNotUp.
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

// serve starts clusters and keeps them until ctx ends. It holds the instance's lock for as long.
func (l *instance) serve(ctx context.Context, start start) (err error) {
	lock, err := l.home.claim()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.home.clear(), lock.Close()) }()
	if err := l.home.write(state{PID: os.Getpid()}); err != nil {
		return err
	}
	s, stop, err := start(ctx, os.Stdout)
	if err == nil {
		s.PID = os.Getpid()
		err = l.home.write(s)
	}
	if err == nil {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return stop(err)
}

// home is the folder that says whether a lab was left running.
type home string

// state is what a lab that runs says of itself.
type state struct {
	// PID is set by this package.
	PID int
	// Guide says what to try. It is empty until everything runs.
	Guide string
	// Variables are for a shell, by their names.
	Variables map[string]string
}

// errRuns says that a lab of this name runs already.
var errRuns = errors.New("it runs already")

// newHome returns the user's one of that name, made if need be.
func newHome(name string) (home, error) {
	folder, err := os.UserCacheDir()
	if err != nil {
		folder = filepath.Join(os.TempDir(), "user-"+strconv.Itoa(os.Getuid()))
	}
	folder = filepath.Join(folder, "tombolo-"+name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("a folder for its state: %w", err)
	}
	return home(folder), nil
}

// claim returns the lock that a lab holds for as long as it runs, or errRuns. The kernel frees it with the process, so no
// state that an ended one left is accepted.
func (h home) claim() (*os.File, error) {
	lock, err := os.OpenFile(h.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return lock, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errRuns
	}
	return nil, errors.Join(err, lock.Close())
}

// read returns the state; none while a lab is about to start. It means something only while one runs.
func (h home) read() (state, error) {
	var s state
	content, err := os.ReadFile(h.path("state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	err = json.Unmarshal(content, &s)
	return s, err
}

// write replaces the state at once, so that no reader gets half of it.
func (h home) write(s state) error {
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return lab.ReplaceFile(h.path("state.json"), content)
}

// clear removes the state.
func (h home) clear() error {
	err := os.Remove(h.path("state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (h home) path(name string) string { return filepath.Join(string(h), name) }
