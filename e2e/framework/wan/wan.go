// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

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
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
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

// Attach gives the network namespace of a process an interface with an address of the network, such as 198.19.0.1/24. It ends with the
// process that has called Attach.
func (a *Area) Attach(ctx context.Context, pid int, name string, address netip.Prefix) error {
	device, err := openIn(pid, name)
	if err != nil {
		return fmt.Errorf("wide area network: interface %s for process %d: %w", name, pid, err)
	}
	in := []string{"--target", strconv.Itoa(pid), "--net", "ip"}
	for _, command := range [][]string{
		{"address", "add", address.String(), "dev", name}, {"link", "set", name, "mtu", strconv.Itoa(mtu), "txqueuelen", "10000", "up"},
	} {
		if out, err := exec.CommandContext(ctx, "nsenter", append(in[:len(in):len(in)], command...)...).CombinedOutput(); err != nil {
			return errors.Join(fmt.Errorf("wide area network: ip %v: %w: %s", command, err, out), device.Close())
		}
	}
	h := &host{device, make(chan packet, maxQueue), make(chan struct{})}
	a.mu.Lock()
	if a.hosts == nil {
		a.hosts = map[netip.Addr]*host{}
	}
	a.hosts[address.Addr()] = h
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
		errs = append(errs, h.device.Close())
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
	if len(data) < 20 || data[0]>>4 != 4 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hosts[netip.AddrFrom4([4]byte(data[16:20]))]
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
			time.Sleep(time.Until(p.due)) // which is soon
			_, _ = h.device.Write(p.data) // a device may be down, and then a packet is lost
		}
	}
}

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
