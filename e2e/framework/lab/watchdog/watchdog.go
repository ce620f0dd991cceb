// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchdog makes the folder of a lab, and removes the folder with its processes when the process that started the lab ends.
package watchdog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// endedSuffix is appended to the name of the folder of a lab that is being removed.
const endedSuffix = ".ended"

// folderMade is what the watchdog says when the folder exists.
const folderMade = "made"

// watchdogScript waits for the end of its standard input, a pipe whose other end only the process that started the lab
// holds. The kernel closes it however that process ends: return, panic, test timeout, Ctrl-C, kill -9.
//
// It makes the folder itself, so there is no moment in which the folder exists without a watchdog.
//
// The rename comes first. A process of the lab records its number in the folder before it becomes the real program (see
// recordScript), and that fails once the folder has gone: no process can slip through between being listed and killed.
// And no program may be configured to make folders under an absolute path: in the moment before it is killed it would make the
// old path again. Its working directory moves along.
//
// SIGKILL works on frozen processes too.
const watchdogScript = `
trap '' HUP INT TERM PIPE
mkdir -m 700 "$1" 2>&1 || exit 1
echo ` + folderMade + `
while read -r _; do :; done
mv "$1" "$1` + endedSuffix + `" || exit 1
for file in "$1` + endedSuffix + `"/*/*.pid; do
	[ -f "$file" ] && read -r pid <"$file" && kill -9 "-$pid" 2>/dev/null
done
tries=0
for dir in /sys/fs/cgroup/"${1##*/}" /sys/fs/cgroup/*/"${1##*/}"; do
	[ ! -d "$dir" ] || find "$dir" -depth -type d -exec rmdir {} +
done
until rm -rf "$1` + endedSuffix + `" 2>/dev/null || [ $tries -ge 10 ]; do
	tries=$((tries + 1))
	sleep 1
done
`

// Watchdog is a shell, in a session of its own, that makes a folder for a lab and removes both.
type Watchdog struct {
	folder string
	pipe   io.Closer
	cmd    *exec.Cmd
}

// Start returns when the folder exists, which must be a new one.
func Start(folder string) (*Watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "lab-watchdog", folder)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("lab: starting the watchdog: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("lab: starting the watchdog: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("lab: starting the watchdog: %w", err)
	}
	reply, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || reply != folderMade+"\n" {
		return nil, fmt.Errorf("lab: the watchdog cannot make %s: %s: %w", folder, strings.TrimSpace(reply), errors.Join(err, cmd.Wait()))
	}
	return &Watchdog{folder: folder, pipe: pipe, cmd: cmd}, nil
}

// Release lets the watchdog do its work and returns when the folder has gone.
func (w *Watchdog) Release() error {
	if err := w.pipe.Close(); err != nil {
		return fmt.Errorf("lab: releasing the watchdog: %w", err)
	}
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("lab: removing %s: %w", w.folder, err)
	}
	if _, err := os.Stat(w.folder + endedSuffix); !os.IsNotExist(err) {
		return fmt.Errorf("lab: %s could not be removed", w.folder+endedSuffix)
	}
	return nil
}
