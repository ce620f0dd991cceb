// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wan is a wide area network between network namespaces of this machine, whose delay and loss can be set and which can be cut. Its
// hosts are TUN devices, and this process forwards their packets, because kernels may lack netem. Root.
package wan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mtu is that of the devices, and maxQueue the number of packets that a host has under way.
	mtu      = 1500
	maxQueue = 1 << 16
)

// Area is a network. The zero value has no hosts, no delay and no loss.
type Area struct {
	delay atomic.Int64 // a time.Duration, one way
	loss  atomic.Uint64
	cut   atomic.Bool

	mu    sync.Mutex
	hosts map[netip.Addr]*host
}

type host struct {
	device *os.File
	queue  chan packet
	closed chan struct{} // when the device is
}

type packet struct {
	data []byte
	due  time.Time
}

// SetDelay sets how long a packet takes from one host to another.
func (a *Area) SetDelay(delay time.Duration) { a.delay.Store(int64(delay)) }

// SetLoss sets the share of packets that are lost, in thousandths.
func (a *Area) SetLoss(perMille uint64) { a.loss.Store(perMille) }

// Cut loses all packets, or none.
func (a *Area) Cut(cut bool) { a.cut.Store(cut) }

// Attach gives the network namespace of a process an interface with addresses of the network, such as 198.19.0.1/24. It ends with the
// process that has called Attach.
func (a *Area) Attach(ctx context.Context, pid int, name string, addresses ...netip.Prefix) error {
	device, err := openIn(pid, name)
	if err != nil {
		return fmt.Errorf("wide area network: interface %s for process %d: %w", name, pid, err)
	}
	in := []string{"--target", strconv.Itoa(pid), "--net", "ip"}
	commands := [][]string{{"link", "set", name, "mtu", strconv.Itoa(mtu), "txqueuelen", "10000", "up"}}
	for _, address := range addresses {
		commands = append(commands, []string{"address", "add", address.String(), "dev", name})
	}
	for _, command := range commands {
		if out, err := exec.CommandContext(ctx, "nsenter", append(in[:len(in):len(in)], command...)...).CombinedOutput(); err != nil {
			return errors.Join(fmt.Errorf("wide area network: ip %v: %w: %s", command, err, out), device.Close())
		}
	}
	h := &host{device, make(chan packet, maxQueue), make(chan struct{})}
	a.mu.Lock()
	if a.hosts == nil {
		a.hosts = map[netip.Addr]*host{}
	}
	for _, address := range addresses {
		a.hosts[address.Addr()] = h
	}
	a.mu.Unlock()
	go a.receive(h)
	go h.send()
	return nil
}

// Close removes all interfaces.
func (a *Area) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for address, h := range a.hosts {
		if err := h.device.Close(); !errors.Is(err, os.ErrClosed) { // it has another address, too
			errs = append(errs, err)
		}
		delete(a.hosts, address)
	}
	return errors.Join(errs...)
}

// receive takes the packets that a host sends, until its device is closed.
func (a *Area) receive(from *host) {
	defer close(from.closed)
	for {
		data := make([]byte, mtu)
		n, err := from.device.Read(data)
		if err != nil {
			return
		}
		if to := a.hostOf(data[:n]); to != nil && !a.cut.Load() && rand.Uint64N(1000) >= a.loss.Load() {
			to.enqueue(packet{data[:n], time.Now().Add(time.Duration(a.delay.Load()))})
		}
	}
}

func (a *Area) hostOf(data []byte) *host {
	var to netip.Addr
	switch {
	case len(data) >= 20 && data[0]>>4 == 4:
		to = netip.AddrFrom4([4]byte(data[16:20]))
	case len(data) >= 40 && data[0]>>4 == 6:
		to = netip.AddrFrom16([16]byte(data[24:40]))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hosts[to]
}

// enqueue loses the packet if too many are under way.
func (h *host) enqueue(p packet) {
	select {
	case h.queue <- p:
	default:
	}
}

// send delivers packets when they are due, until the device is closed.
func (h *host) send() {
	for {
		select {
		case <-h.closed:
			return
		case p := <-h.queue:
			select {
			case <-h.closed:
				return
			case <-time.After(time.Until(p.due)):
			}
			_, _ = h.device.Write(p.data) // a device may be down, and then a packet is lost
		}
	}
}
