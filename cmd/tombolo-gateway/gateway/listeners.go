// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// listeners accept the clients of this cluster.
type listeners struct {
	addresses []string // of this gateway's pod
	// serve begins to serve a client. It calls ended when that is over.
	serve func(ctx context.Context, client loop.Accepted, to ports.Owner, ended func())
	// lag is how long a listener accepts clients after no slice has its port any more.
	lag time.Duration
	// running counts the listeners that are open and the clients that are served.
	running sync.WaitGroup

	mu   sync.Mutex
	open map[string]*listener // by host and port
	// pending are the changes that could not be applied yet.
	pending map[int32]ports.Owner
	// answers are the open ports of each address, as openAt returns them. A change of a listener removes them.
	answers map[netip.Addr]*openPorts
}

type listener struct {
	*loop.Listener
	address netip.Addr
	number  int32 // of the port
	owner   ports.Owner
	// closing closes the listener later; nil while its port is wanted.
	closing *time.Timer
}

// apply opens and closes listeners for the ports that lead elsewhere than before. A listener whose port has another owner is closed at once,
// and one whose port has none (the zero Owner) after the lag. The error says which ports cannot be opened: the next call tries them again.
func (l *listeners) apply(ctx context.Context, changes map[int32]ports.Owner) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open, l.pending = map[string]*listener{}, map[int32]ports.Owner{}
	}
	maps.Copy(l.pending, changes)
	if len(l.pending) > 0 {
		l.answers = nil
	}
	var failed []error
	for _, number := range slices.Sorted(maps.Keys(l.pending)) {
		var errs []error
		for _, host := range l.addresses {
			errs = append(errs, l.lead(ctx, host, number, l.pending[number]))
		}
		err := errors.Join(errs...)
		if err == nil {
			delete(l.pending, number)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// lead opens or closes the listener of a port at one address. The caller holds the lock.
func (l *listeners) lead(ctx context.Context, host string, number int32, owner ports.Owner) error {
	address := net.JoinHostPort(host, strconv.Itoa(int(number)))
	switch open := l.open[address]; {
	case owner == ports.Owner{}:
		if open != nil && open.closing == nil {
			open.closing = time.AfterFunc(l.lag, func() { l.expire(address, open) })
		}
		return nil
	case open != nil && open.owner == owner:
		open.keep()
		return nil
	case open != nil:
		l.close(address)
	}
	opened, err := loop.Listen(ctx, address)
	if err != nil {
		return fmt.Errorf("listen for service %s of cluster %s: %w", owner.Service, owner.Cluster, err)
	}
	from := &listener{Listener: opened, address: addressIn(host), number: number, owner: owner}
	l.open[address] = from
	l.running.Go(func() { l.accept(context.WithoutCancel(ctx), from) }) // its streams outlive the configuration
	return nil
}

// addressIn returns the address of a host; the zero value if it is not valid: then no listener can be opened there.
func addressIn(host string) netip.Addr {
	address, _ := netip.ParseAddr(host)
	return address.Unmap()
}

// keep undoes the decision to close the listener later.
func (l *listener) keep() {
	if l.closing != nil {
		l.closing.Stop()
		l.closing = nil
	}
}

// expire closes a listener unless its port is wanted again.
func (l *listeners) expire(address string, released *listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address] == released && released.closing != nil {
		l.close(address)
	}
}

// close closes a listener now. The caller holds the lock.
func (l *listeners) close(address string) {
	l.answers = nil
	l.open[address].keep()
	l.open[address].Close()
	delete(l.open, address)
}

// closeAll closes all listeners now.
func (l *listeners) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for address := range l.open {
		l.close(address)
	}
}

func (l *listeners) accept(ctx context.Context, from *listener) {
	pause := rate.NewLimiter(10, 1)
	for {
		client, err := from.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, for example
			_ = pause.Wait(ctx)
			continue
		}
		l.running.Add(1)
		go l.serve(ctx, client, from.owner, l.running.Done)
	}
}

// errTransit is why a gateway refuses a client that is a gateway of its cluster: what one cluster exports is never the import of another
// one (W5).
var errTransit = &wire.Refusal{Code: wire.CodeDenied, Text: "the client is a gateway of this cluster: an export leads to an import"}

// requestOf returns the OPEN frame for a client.
func requestOf(to ports.Owner, from netip.AddrPort) wire.Open {
	return wire.Open{
		Protocol: wire.ProtocolTCP, Namespace: to.Service.Namespace, Service: to.Service.Name, Port: uint16(to.Port), Hostname: to.Hostname,
		Client: from.Addr(), ClientPort: from.Port(),
	}
}
