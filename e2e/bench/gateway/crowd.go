// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

const (
	// maxSilent is the number of silent connections that are open at a time; then the oldest is closed.
	maxSilent = 8000
	// crowdStart is the time after which a crowd has its full effect.
	crowdStart = time.Second
)

// crowd is a process that opens connections at a steady rate.
type crowd struct {
	To        netip.AddrPort
	PerSecond int
	// Silent connections send nothing. The others send a message, and end when they get an answer or a reset.
	Silent bool
}

// startCrowd starts a process, and returns when it has its full effect. stop ends it, and returns how many connections a second it has opened.
func (b *bench) startCrowd(ctx context.Context, c crowd) (stop func() (float64, error), err error) {
	config, err := json.Marshal(roleConfig{Crowd: &c})
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, b.self)
	command.Env = append(os.Environ(), roleVariable+"="+crowdRole, configVariable+"="+string(config))
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	var rate float64
	if _, err = fmt.Fscanln(output, &rate); err == nil {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(crowdStart):
		}
	}
	stop = func() (float64, error) {
		err := command.Process.Signal(syscall.SIGTERM)
		if _, scanErr := fmt.Fscanln(output, &rate); scanErr != nil {
			err = errors.Join(err, fmt.Errorf("the clients beside: %w", scanErr))
		}
		return rate, errors.Join(err, command.Wait())
	}
	if err != nil {
		_, stopErr := stop()
		return nil, errors.Join(err, stopErr)
	}
	return stop, nil
}

// run writes 0 and opens connections until the process gets SIGTERM, and then writes how many a second.
func (c *crowd) run() error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	open := c.request
	if c.Silent {
		open = (&silent{}).open
	}
	fmt.Println(0)
	ticker := time.NewTicker(time.Millisecond)
	began, count := time.Now(), 0
	for {
		select {
		case <-ended:
			fmt.Println(float64(count) / time.Since(began).Seconds())
			return nil
		case <-ticker.C:
		}
		for due := int(time.Since(began).Seconds() * float64(c.PerSecond)); count < due && len(ended) == 0; count++ {
			if err := open(c.To); err != nil {
				return err
			}
		}
	}
}

// request opens a connection in the background, and awaits its end.
func (c *crowd) request(to netip.AddrPort) error {
	go func() {
		conn, err := net.DialTimeout("tcp", to.String(), 5*time.Second)
		if err != nil {
			return
		}
		defer conn.Close()
		message := make([]byte, messageSize)
		message[0] = modeEcho
		if _, err := conn.Write(message); err == nil {
			_, _ = io.ReadFull(conn, message)
		}
	}()
	return nil
}

// silent are connections without goroutines, as there are many: from the oldest at next to the newest before it.
type silent struct {
	sockets [maxSilent]int
	next    int
}

// open opens a connection, and closes the oldest if there are too many.
func (s *silent) open(to netip.AddrPort) error {
	if old := s.sockets[s.next]; old != 0 {
		_ = syscall.Close(old)
		s.sockets[s.next] = 0
	}
	fd, err := connectTo(to)
	if err != nil {
		return err
	}
	s.sockets[s.next] = fd
	s.next = (s.next + 1) % maxSilent
	return nil
}

// connectTo begins to connect, and returns the socket. Its port can be used again at once after it was closed.
func connectTo(to netip.AddrPort) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	err = syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	}
	if err != nil && !errors.Is(err, syscall.EINPROGRESS) {
		return 0, errors.Join(err, syscall.Close(fd))
	}
	return fd, nil
}
