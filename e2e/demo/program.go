// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a program may take to end after SIGTERM.
const stopGrace = 3 * time.Second

// recordScript becomes the program "$@" under the same process number, which it has written to a file before: a lab's
// watchdog ends every process whose number it finds in the folder of a cluster, however the demo itself ends.
const recordScript = `echo $$ >"$1.new" && mv "$1.new" "$1" && shift && exec "$@"`

// program is a process beside a cluster's control plane.
type program struct {
	name string // as in "coredns of cluster-a"
	log  string
	cmd  *exec.Cmd
	// exited is closed when the process has ended.
	exited chan struct{}
}

// startProgram starts a process that records itself in, and logs to, the folder of a cluster.
func startProgram(folder, path string, args ...string) (*program, error) {
	name := filepath.Base(path)
	p := &program{
		name: name + " of " + filepath.Base(folder), log: filepath.Join(folder, name+".log"),
		exited: make(chan struct{}),
	}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	argv := append([]string{"-c", recordScript, "demo", filepath.Join(folder, name+".pid"), path}, args...)
	p.cmd = exec.Command("/bin/sh", argv...)
	p.cmd.Dir = folder
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for the demo, which stops things in order
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	go func() {
		_ = p.cmd.Wait() // ProcessState says how it ended
		close(p.exited)
	}()
	return p, nil
}

// ended returns an error if the process has ended.
func (p *program) ended() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s has ended by itself: %s", p.name, p.cmd.ProcessState)
	default:
		return nil
	}
}

// stop ends the process: with SIGTERM, and with SIGKILL if that takes too long.
func (p *program) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) // fails only if it has ended
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // the same
		<-p.exited
	}
}

// findProgram returns the path of a program in bin/ of this repository.
func findProgram(name string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	var searched []string
	for parent := ""; folder != parent; folder = filepath.Dir(folder) {
		parent = filepath.Dir(folder)
		path := filepath.Join(folder, "bin", name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
		searched = append(searched, filepath.Dir(path))
	}
	return "", fmt.Errorf("%s is not in %s: run \"make demo\"", name, strings.Join(searched, ", "))
}
