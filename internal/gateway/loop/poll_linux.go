// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// poller is epoll, edge-triggered: one registration of a socket is sufficient, whatever its handler waits for.
type poller struct {
	epoll, event int
	events       [128]unix.EpollEvent
	n, at        int
	number       int32 // of the socket that was added last
}

func (p *poller) open() (err error) {
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if p.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return errors.Join(err, unix.Close(p.epoll))
	}
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, p.event, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(p.event)})
}

func (p *poller) wake() {
	_, _ = unix.Write(p.event, binary.NativeEndian.AppendUint64(nil, 1)) // it fails only if 2^64 wake-ups have not been seen
}

// wait waits for events, or for a number of milliseconds; without end if that is negative.
func (p *poller) wait(_ map[int32]*Socket, timeout int) {
	n, err := unix.EpollWait(p.epoll, p.events[:], 0)
	if err == nil && n == 0 {
		n, err = unix.EpollWait(p.epoll, p.events[:], timeout)
	}
	if err != nil { // EINTR
		n = 0
	}
	p.n, p.at = n, 0
}

// next returns the socket of the next event; nil if there is none.
func (p *poller) next(sockets map[int32]*Socket) *Socket {
	for p.at < p.n {
		e := p.events[p.at]
		p.at++
		s := sockets[e.Fd]
		if s == nil || s.number != e.Pad {
			continue // it wakes only, or the socket was closed by an event before
		}
		s.Readable = s.Readable || e.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
		s.Writable = s.Writable || e.Events&unix.EPOLLOUT != 0
		s.Ended = s.Ended || e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP) != 0
		s.HungUp = s.HungUp || e.Events&unix.EPOLLHUP != 0
		s.Failed = s.Failed || e.Events&unix.EPOLLERR != 0
		return s
	}
	return nil
}

func (p *poller) add(s *Socket) error {
	p.number++
	s.number = p.number
	events := uint32(unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET)
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, s.FD, &unix.EpollEvent{Events: events, Fd: int32(s.FD), Pad: s.number})
}

// open returns a socket.
func open(family int) (int, error) {
	return unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
}

func accept(fd int) (int, unix.Sockaddr, error) {
	return unix.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
}

// optionIdle is the time after which the kernel begins to probe a connection.
const optionIdle = unix.TCP_KEEPIDLE

func (p *poller) remove(s *Socket) { _ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, s.FD, nil) }

// isLost reports whether the peer of a connection is lost, as isLost says. TCP_USER_TIMEOUT would close the connection of a peer that does not
// read.
func (s *Socket) isLost(after time.Duration) bool {
	info, err := unix.GetsockoptTCPInfo(s.FD, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return false
	}
	return isLost(time.Duration(info.Last_ack_recv)*time.Millisecond, after, int(info.Retransmits), int(info.Probes))
}
