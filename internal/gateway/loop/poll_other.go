// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package loop

import (
	"time"

	"golang.org/x/sys/unix"
)

// poller is poll(2), level-triggered, for development: gateways run on Linux.
type poller struct {
	pipe  [2]int
	polls []unix.PollFd
	at    int
}

func (p *poller) open() error {
	err := unix.Pipe(p.pipe[:])
	for _, fd := range p.pipe {
		if err == nil {
			err = unix.SetNonblock(fd, true)
		}
	}
	return err
}

func (p *poller) wake() { _, _ = unix.Write(p.pipe[1], []byte{0}) }

func (p *poller) wait(sockets map[int32]*Socket, timeout int) {
	p.polls = append(p.polls[:0], unix.PollFd{Fd: int32(p.pipe[0]), Events: unix.POLLIN})
	for fd, s := range sockets {
		var events int16
		if !s.Readable && !s.Ended {
			events |= unix.POLLIN
		}
		if !s.Writable {
			events |= unix.POLLOUT
		}
		p.polls = append(p.polls, unix.PollFd{Fd: fd, Events: events})
	}
	_, _ = unix.Poll(p.polls, timeout)
	_, _ = unix.Read(p.pipe[0], make([]byte, 512))
	p.at = 1
}

func (p *poller) next(sockets map[int32]*Socket) *Socket {
	for p.at < len(p.polls) {
		e := p.polls[p.at]
		p.at++
		s := sockets[e.Fd]
		if s == nil || e.Revents == 0 || s.number != 0 {
			continue
		}
		s.Readable = s.Readable || e.Revents&(unix.POLLIN|unix.POLLHUP) != 0
		s.Writable = s.Writable || e.Revents&unix.POLLOUT != 0
		s.HungUp = s.HungUp || e.Revents&unix.POLLHUP != 0
		s.Ended = s.Ended || s.HungUp
		s.Failed = s.Failed || e.Revents&unix.POLLERR != 0
		return s
	}
	return nil
}

// open returns a socket.
func open(family int) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	return prepared(fd, err)
}

func accept(fd int) (int, unix.Sockaddr, error) {
	fd, from, err := unix.Accept(fd)
	fd, err = prepared(fd, err)
	return fd, from, err
}

func prepared(fd int, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	return fd, unix.SetNonblock(fd, true)
}

// optionIdle is the time after which the kernel begins to probe a connection.
const optionIdle = unix.TCP_KEEPALIVE

func (p *poller) add(*Socket) error { return nil }
func (p *poller) remove(*Socket)    {}

// isLost returns false: it is not known here.
func (s *Socket) isLost(time.Duration) bool { return false }
