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
	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// slicesRead are the listening ports of slices that were read before, by their objects and versions.
type slicesRead map[types.UID]*sliceRead

type sliceRead struct {
	version string
	listen  []portOfOwner
	err     error
}

type portOfOwner struct {
	owner  ports.Owner
	number int32
}

// of returns the listening ports of a slice, and keeps them in next.
func (s slicesRead) of(slice *discoveryv1.EndpointSlice, next slicesRead) *sliceRead {
	result, ok := s[slice.UID]
	if !ok || slice.UID == "" || result.version != slice.ResourceVersion {
		listen, err := caches.ListeningPorts(slice)
		result = &sliceRead{version: slice.ResourceVersion, err: err}
		for owner, number := range listen {
			result.listen = append(result.listen, portOfOwner{owner, number})
		}
	}
	next[slice.UID] = result
	return result
}

// claim is a port of a slice.
type claim struct {
	slice *discoveryv1.EndpointSlice
	*portOfOwner
}

func (c claim) name() string { return c.slice.Namespace + "/" + c.slice.Name }

func (c claim) compare(other claim) int {
	return cmp.Or(c.slice.CreationTimestamp.Compare(other.slice.CreationTimestamp.Time), cmp.Compare(c.slice.Namespace, other.slice.Namespace),
		cmp.Compare(c.slice.Name, other.slice.Name), cmp.Compare(c.owner.Port, other.owner.Port))
}

// listening returns where each listening port leads, from the slices of gateways, and which slices it leaves out, sorted. If
// two claim a port, it leads where the older one says (G2). The third result is what to pass as read the next time.
func listening(all []discoveryv1.EndpointSlice, read slicesRead) (map[int32]ports.Owner, []error, slicesRead) {
	next, first := make(slicesRead, len(all)), make(map[int32]claim, len(all))
	var refused []error
	var late []claim
	for i := range all {
		slice := read.of(&all[i], next)
		if slice.err != nil {
			refused = append(refused, fmt.Errorf("EndpointSlice %s is not as the agent has written it: %w", claim{slice: &all[i]}.name(), slice.err))
		}
		for n := range slice.listen {
			c := claim{&all[i], &slice.listen[n]}
			switch other, taken := first[c.number]; {
			case !taken:
				first[c.number] = c
			case other.compare(c) > 0:
				first[c.number] = c
				late = append(late, other)
			default:
				late = append(late, c)
			}
		}
	}
	result := make(map[int32]ports.Owner, len(first))
	for number, c := range first {
		if number < ports.First || number > ports.Last {
			refused = append(refused, fmt.Errorf("EndpointSlice %s has port %d, which is none of gateways", c.name(), number))
			continue
		}
		result[number] = c.owner
	}
	for _, c := range late {
		if before := first[c.number]; before.owner != c.owner {
			refused = append(refused, fmt.Errorf("EndpointSlice %s has port %d, which EndpointSlice %s had before", c.name(), c.number, before.name()))
		}
	}
	slices.SortFunc(refused, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return result, refused, next
}

// listeners accept the clients of this cluster.
type listeners struct {
	addresses []string // of this gateway's pod
	// serve begins to serve a client. It calls ended when that is over.
	serve func(ctx context.Context, client *net.TCPConn, to ports.Owner, from netip.Addr, ended func())
	// lag is how long a listener accepts clients after no slice has its port any more.
	lag time.Duration
	// running counts the listeners that are open and the clients that are served.
	running sync.WaitGroup

	mu   sync.Mutex
	open map[string]*listener // by host and port
	// answers are the open ports of each address, as openAt returns them. A change of a listener removes them.
	answers map[netip.Addr]*openPorts
}

type listener struct {
	*net.TCPListener
	address netip.Addr
	number  int32 // of the port
	owner   ports.Owner
	// closing closes the listener later; nil while its port is wanted.
	closing *time.Timer
}

// apply opens listeners, so that those that are wanted are open, and closes the others: at once if its port has another owner, and after
// the lag if it has none. The error says which ports cannot be opened.
func (l *listeners) apply(ctx context.Context, wanted map[int32]ports.Owner) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = nil
	kept := map[netip.Addr]map[int32]struct{}{} // the open ports of each address
	for _, host := range l.addresses {
		kept[addressIn(host)] = make(map[int32]struct{}, len(wanted))
	}
	for address, open := range l.open {
		owner, wanted := wanted[open.number]
		own := kept[open.address]
		wanted = wanted && own != nil
		switch {
		case wanted && owner == open.owner:
			open.keep()
			own[open.number] = struct{}{}
		case wanted:
			l.close(address)
		case open.closing == nil:
			open.closing = time.AfterFunc(l.lag, func() { l.expire(address, open) })
		}
	}
	desired := map[string]listener{}
	for _, host := range l.addresses {
		address := addressIn(host)
		if len(kept[address]) == len(wanted) {
			continue
		}
		for number, owner := range wanted {
			if _, ok := kept[address][number]; !ok {
				desired[net.JoinHostPort(host, strconv.Itoa(int(number)))] = listener{address: address, number: number, owner: owner}
			}
		}
	}
	var failed []error
	for _, address := range slices.Sorted(maps.Keys(desired)) {
		var config net.ListenConfig
		opened, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			owner := desired[address].owner
			failed = append(failed, fmt.Errorf("listen for service %s of cluster %s: %w", owner.Service, owner.Cluster, err))
			continue
		}
		from := desired[address]
		from.TCPListener = opened.(*net.TCPListener)
		l.open[address] = &from
		l.running.Go(func() { l.accept(context.WithoutCancel(ctx), &from) }) // its streams outlive the configuration
	}
	return errors.Join(failed...)
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
		client, err := from.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many open files, for example
			_ = pause.Wait(ctx)
			continue
		}
		l.running.Add(1)
		go func() {
			if tunnel.Prepare(client) != nil {
				l.running.Done()
				return
			}
			l.serve(ctx, client, from.owner, client.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(), l.running.Done)
		}()
	}
}

// errTransit is why a gateway refuses a client that is a gateway of its cluster: what one cluster exports is never the import of another
// one (W5).
var errTransit = &wire.Refusal{Code: wire.CodeDenied, Text: "the client is a gateway of this cluster: an export leads to an import"}

// requestOf returns the OPEN frame for a client.
func requestOf(to ports.Owner, from netip.Addr) wire.Open {
	return wire.Open{
		Protocol: wire.ProtocolTCP, Namespace: to.Service.Namespace, Service: to.Service.Name, Port: uint16(to.Port), Hostname: to.Hostname,
		Client: from,
	}
}
