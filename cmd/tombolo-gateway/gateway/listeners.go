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

	"golang.org/x/time/rate"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// listening returns where each listening port leads, from the mirrored slices of gateways, and which slices it leaves out, sorted. If
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
	// running counts the listeners that are open and the clients that are served.
	running sync.WaitGroup

	mu   sync.Mutex
	open map[string]listener // by host and port
}

type listener struct {
	*net.TCPListener
	owner ports.Owner
}

// apply opens and closes listeners, so that those that are wanted are open. The error says which ports cannot be opened.
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
		if desired[address] != open.owner {
			open.Close()
			delete(l.open, address)
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
		l.open[address] = listener{opened.(*net.TCPListener), desired[address]}
		from := l.open[address]
		l.running.Go(func() { l.accept(context.WithoutCancel(ctx), from) }) // its streams outlive the configuration
	}
	return errors.Join(failed...)
}

func (l *listeners) accept(ctx context.Context, from listener) {
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
		Protocol: wire.ProtocolTCP, Namespace: to.Service.Namespace, Service: to.Service.Name, Port: uint16(to.Port), Client: from,
	}
}
