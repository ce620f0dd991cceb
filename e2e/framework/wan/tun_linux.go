// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package wan

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// openIn creates a TUN device in the network namespace of a process. The device stays there, whichever process reads it.
func openIn(pid int, name string) (device *os.File, err error) {
	err = Within(pid, func() (err error) {
		device, err = open(name)
		return err
	})
	return device, err
}

// Within calls do in the network namespace of a process. What do opens stays in that namespace.
func Within(pid int, do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		return err
	}
	defer own.Close()
	other, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return err
	}
	defer other.Close()
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("setns: %w", err)
	}
	err = do()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		runtime.LockOSThread() // once more, so that nothing else runs on this thread
		return errors.Join(err, fmt.Errorf("setns back: %w", back))
	}
	return err
}

func open(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, errors.Join(fmt.Errorf("TUNSETIFF: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}
