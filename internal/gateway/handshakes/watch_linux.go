// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package handshakes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch waits for what the peers send, without a goroutine for each. Go's poller waits for the epoll descriptor.
type watch struct {
	file   *os.File // the epoll descriptor
	raw    syscall.RawConn
	events [256]unix.EpollEvent

	mu    sync.Mutex
	last  int32
	peers map[int32]*peer
}

func newWatch() (*watch, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll descriptor: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that Go's poller takes it
		unix.Close(fd)
		return nil, fmt.Errorf("set an epoll descriptor to non-blocking: %w", err)
	}
	w := &watch{file: os.NewFile(uintptr(fd), "epoll"), peers: map[int32]*peer{}}
	if w.raw, err = w.file.SyscallConn(); err != nil {
		w.file.Close()
		return nil, fmt.Errorf("use an epoll descriptor: %w", err)
	}
	return w, nil
}

func (w *watch) close() { w.file.Close() }

// add watches a connection until it is removed.
func (w *watch) add(c *peer) error {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("watch a connection: %w", err)
	}
	w.mu.Lock()
	for used := true; used; _, used = w.peers[w.last] {
		w.last++
	}
	c.raw, c.id = raw, w.last
	w.peers[c.id] = c
	w.mu.Unlock()
	if err := w.control(c, unix.EPOLL_CTL_ADD); err != nil {
		w.remove(c)
		return fmt.Errorf("watch a connection: %w", err)
	}
	return nil
}

// remove stops to watch a connection. The kernel removes those that are closed.
func (w *watch) remove(c *peer) {
	w.mu.Lock()
	known := w.peers[c.id] == c
	if known {
		delete(w.peers, c.id)
	}
	w.mu.Unlock()
	if known {
		_ = w.control(c, unix.EPOLL_CTL_DEL)
	}
}

func (w *watch) control(c *peer, operation int) error {
	var failed error
	err := w.raw.Control(func(epoll uintptr) {
		failed = c.raw.Control(func(fd uintptr) {
			event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: c.id}
			failed = unix.EpollCtl(int(epoll), operation, int(fd), &event)
		})
	})
	return errors.Join(err, failed)
}

// wait returns the connections whose peers have sent something, or are gone. The error is os.ErrDeadlineExceeded after a time.
func (w *watch) wait(until time.Time) ([]*peer, error) {
	if err := w.file.SetReadDeadline(until); err != nil {
		return nil, fmt.Errorf("wait for connections: %w", err)
	}
	var n int
	var failed error
	err := w.raw.Read(func(epoll uintptr) bool {
		n, failed = unix.EpollWait(int(epoll), w.events[:], 0)
		return n != 0 && !errors.Is(failed, unix.EINTR)
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var result []*peer
	for _, event := range w.events[:n] {
		if c, ok := w.peers[event.Fd]; ok {
			c.gone = event.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
			result = append(result, c)
		}
	}
	return result, nil
}

// The header of a TLS record, and the longest one (RFC 8446, section 5.1).
const (
	recordHeader  = 5
	longestRecord = recordHeader + 16<<10
)

// progress returns how far the peer is, without reading what it has sent: left if it is gone. What is no TLS record is complete: TLS
// refuses it.
func (c *peer) progress() stage {
	if c.gone {
		return left
	}
	var (
		header   [recordHeader]byte
		n, ready int
		failed   error
	)
	err := c.raw.Control(func(fd uintptr) {
		if n, _, failed = unix.Recvfrom(int(fd), header[:], unix.MSG_PEEK|unix.MSG_DONTWAIT); failed == nil {
			ready, failed = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		}
	})
	switch {
	case errors.Is(failed, unix.EAGAIN) || errors.Is(failed, unix.EINTR):
		return silent
	case err != nil || failed != nil || n == 0:
		return left
	}
	return stageOf(header[:n], ready)
}

// stageOf returns how far a peer is of whose bytes the first ones and the number are known.
func stageOf(first []byte, number int) stage {
	const handshake = 22 // RFC 8446, section 5.1
	switch {
	case first[0] != handshake:
		return complete
	case len(first) < recordHeader:
		return partial
	}
	length := recordHeader + int(binary.BigEndian.Uint16(first[3:]))
	if number < min(length, longestRecord) {
		return partial
	}
	return complete
}
