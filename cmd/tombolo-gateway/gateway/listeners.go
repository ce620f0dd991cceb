// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
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
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// listening returns where each listening port leads, from the slices of gateways, and which slices it leaves out, sorted. If
// two claim a port, it leads where the older one says (G2).
func listening(all []discoveryv1.EndpointSlice) (map[int32]ports.Owner, []error) {
	result, claims := map[int32]ports.Owner{}, map[int32]string{}
	var refused []error
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b discoveryv1.EndpointSlice) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range sorted {
		slice := &sorted[i]
		name := slice.Namespace + "/" + slice.Name
		listen, err := caches.ListeningPorts(slice)
		if err != nil {
			refused = append(refused, fmt.Errorf("EndpointSlice %s is not as the agent has written it: %w", name, err))
			continue
		}
		for _, owner := range slices.SortedFunc(maps.Keys(listen), func(a, b ports.Owner) int { return cmp.Compare(a.Port, b.Port) }) {
			number := listen[owner]
			switch other, taken := result[number]; {
			case number < ports.First || number > ports.Last:
				refused = append(refused, fmt.Errorf("EndpointSlice %s has port %d, which is none of gateways", name, number))
			case taken && other != owner:
				refused = append(refused, fmt.Errorf("EndpointSlice %s has port %d, which EndpointSlice %s had before", name, number, claims[number]))
			default:
				result[number], claims[number] = owner, name
			}
		}
	}
	return result, refused
}

// listeners accept the clients of this cluster.
type listeners struct {
	addresses []string // of this gateway's pod
	serve     func(ctx context.Context, client *net.TCPConn, to ports.Owner, from netip.Addr)
	// lag is how long a listener accepts clients after no slice has its port any more.
	lag time.Duration
	// running counts the listeners that are open and the clients that are served.
	running sync.WaitGroup

	mu   sync.Mutex
	open map[string]*listener // by host and port
}

type listener struct {
	*net.TCPListener
	owner ports.Owner
	// closing closes the listener later; nil while its port is wanted.
	closing *time.Timer
}

// apply opens listeners, so that those that are wanted are open, and closes the others: at once if its port has another owner, and after
// the lag if it has none. The error says which ports cannot be opened.
func (l *listeners) apply(ctx context.Context, wanted map[int32]ports.Owner) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	desired := map[string]ports.Owner{}
	for number, owner := range wanted {
		for _, address := range l.addresses {
			desired[net.JoinHostPort(address, strconv.Itoa(int(number)))] = owner
		}
	}
	for address, open := range l.open {
		owner, wanted := desired[address]
		switch {
		case wanted && owner == open.owner:
			open.keep()
		case wanted:
			l.close(address)
		case open.closing == nil:
			open.closing = time.AfterFunc(l.lag, func() { l.expire(address, open) })
		}
	}
	var failed []error
	for _, address := range slices.Sorted(maps.Keys(desired)) {
		if _, ok := l.open[address]; ok {
			continue
		}
		var config net.ListenConfig
		opened, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			failed = append(failed, fmt.Errorf("listen for service %s of cluster %s: %w", desired[address].Service, desired[address].Cluster, err))
			continue
		}
		l.open[address] = &listener{TCPListener: opened.(*net.TCPListener), owner: desired[address]}
		from := l.open[address]
		l.running.Go(func() { l.accept(context.WithoutCancel(ctx), from) }) // its streams outlive the configuration
	}
	return errors.Join(failed...)
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
		client, err := from.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, for example
			_ = pause.Wait(ctx)
			continue
		}
		l.running.Go(func() {
			if tunnel.Prepare(client) == nil {
				l.serve(ctx, client, from.owner, client.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap())
			}
		})
	}
}

// requestOf returns the OPEN frame for a client.
func requestOf(to ports.Owner, from netip.Addr) wire.Open {
	return wire.Open{
		Protocol: wire.ProtocolTCP, Namespace: to.Service.Namespace, Service: to.Service.Name, Port: uint16(to.Port), Hostname: to.Hostname,
		Client: from,
	}
}
