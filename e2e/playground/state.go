// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

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
