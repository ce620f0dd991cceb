// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/wan"
)

// roundTrip is the time that a packet takes to the far side and back.
const roundTrip = 50 * time.Millisecond

// side is one of the two sites, with a network of its own; the zero value is this machine.
type side struct {
	holder  *exec.Cmd // the process whose network namespace it is
	address string    // of its programs, for the other side
}

// sites are two sites with a wide area network between them. The zero value has all on this machine, without a delay.
type sites struct {
	near, far side
	area      *wan.Area
}

// newSites returns sites that are half a round trip apart. Root.
func newSites(ctx context.Context) (s *sites, err error) {
	s = &sites{area: &wan.Area{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	s.area.SetDelay(roundTrip / 2)
	for i, part := range []*side{&s.near, &s.far} {
		part.holder, part.address = exec.CommandContext(ctx, "sleep", "infinity"), fmt.Sprintf("198.19.0.%d", i+1)
		part.holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		if err := part.holder.Start(); err != nil {
			return nil, fmt.Errorf("a network namespace, which needs root: %w", err)
		}
		if out, err := part.command(ctx, "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip link set lo up: %w: %s", err, out)
		}
		if err := s.area.Attach(ctx, part.holder.Process.Pid, "wan", netip.MustParsePrefix(part.address+"/24")); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *sites) close() {
	_ = s.area.Close()
	for _, part := range []side{s.near, s.far} {
		if part.holder != nil && part.holder.Process != nil {
			_ = part.holder.Process.Kill()
			_ = part.holder.Wait()
		}
	}
}

func (s side) host() string {
	if s.address == "" {
		return "127.0.0.1"
	}
	return s.address
}

func (s side) command(ctx context.Context, argv ...string) *exec.Cmd {
	if s.holder != nil {
		argv = append([]string{"nsenter", "--target", strconv.Itoa(s.holder.Process.Pid), "--net"}, argv...)
	}
	return exec.CommandContext(ctx, argv[0], argv[1:]...)
}

// within runs connect in the network of the side: a socket belongs to the network in which it was created.
func (s side) within(connect func() error) error {
	if s.holder == nil {
		return connect()
	}
	return wan.Within(s.holder.Process.Pid, connect)
}

// farRow measures over a path with a delay: the first byte of a new connection, and how much one stream carries.
func farRow(ctx context.Context, b *bench, kind pairKind, folder string) error {
	if os.Geteuid() != 0 {
		fmt.Println("          row far needs root, and is left out")
		return nil
	}
	s, err := newSites(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	backend, err := b.startBackend(ctx, s.far)
	if err != nil {
		return err
	}
	defer backend.stop()
	p, err := b.startPair(ctx, folder, kind, backend.client, s, pairOptions{})
	if err != nil {
		return err
	}
	defer p.stop()
	var took []time.Duration
	for range 20 {
		one, err := p.request(ctx)
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	b.latencies("FirstByte/rtt=50ms", p, took)
	return b.bulk(ctx, p, "Bulk/rtt=50ms", 1)
}
