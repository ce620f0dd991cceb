// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
)

func init() { plugin.Register(name, setup) }

// setup reads the plugin's stanza, and starts and stops the plugin with its server.
func setup(c *caddy.Controller) error {
	o, err := parse(c)
	if err != nil {
		return plugin.Error(name, err)
	}
	config, err := o.api.config()
	if err != nil {
		return plugin.Error(name, c.Errf("no way to the API server (name one by kubeconfig or endpoint, or run in a cluster): %v", err))
	}
	reader, err := newClients(config)
	if err != nil {
		return plugin.Error(name, c.Err(err.Error()))
	}
	server := dnsserver.GetConfig(c)
	cs, work := assemble(o, reader, localAddresses(server.ListenHosts))
	c.OnStartup(func() error {
		work.start(o.startupTimeout)
		return nil
	})
	c.OnShutdown(func() error {
		work.stop()
		return nil
	})
	server.AddPlugin(func(next plugin.Handler) plugin.Handler {
		cs.Next = next
		return cs
	})
	return nil
}

// assemble builds the plugin, which does not run yet.
func assemble(o options, reader clients, local zone.Addresses) (*Clusterset, *work) {
	g := gauges{zones: strings.Join(o.zones, ",")}
	t := newTable(o.kinds...)
	cs := &Clusterset{Fall: o.fall}
	for _, z := range o.zones {
		cs.zones = append(cs.zones, zone.New(z, o.ttl, local))
	}
	cs.publisher = newPublisher(t, cs.zones, o.empty, g)
	absent := make(chan struct{})
	w := &watcher{
		clients: reader, gauges: g, feeds: map[kind]*feed{}, failed: map[kind]string{},
		absent: sync.OnceFunc(func() {
			cs.crdAbsent.Store(true)
			close(absent)
		}),
	}
	for _, k := range o.kinds {
		w.feeds[k] = &feed{table: t, kind: k, names: zone.NewNames(o.zones), namespaces: o.namespaces, gauges: g}
	}
	g.start(o.kinds)
	return cs, &work{watcher: w, publisher: cs.publisher, absent: absent}
}

// work is what runs in the background.
type work struct {
	watcher   *watcher
	publisher *publisher
	absent    <-chan struct{} // closed if the API server does not serve ServiceImports

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// start starts to follow the API server, and waits for the first publication: not longer than the timeout, and not if the API server
// does not serve ServiceImports, because CoreDNS serves other zones too.
func (w *work) start(timeout time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.running.Go(func() { w.watcher.run(ctx) })
	w.running.Go(func() { w.publisher.run(ctx) })
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-w.publisher.done:
	case <-w.absent:
	case <-timer.C:
		log.Warningf("starting before all objects have been read: %s answers SERVFAIL until they are", w.publisher.gauges.zones)
	}
}

// stop stops everything that start has started, and waits for it.
func (w *work) stop() {
	if w.cancel != nil {
		w.cancel()
	}
	w.running.Wait()
}

// localAddresses returns the addresses of this server: those it is bound to, or else those of its interfaces. It returns loopback
// addresses only if there are no others, because other machines cannot use them.
func localAddresses(hosts []string) zone.Addresses {
	var bound zone.Addresses
	for _, host := range hosts {
		if a, err := netip.ParseAddr(host); err == nil && !a.IsUnspecified() {
			bound.Add(a.WithZone("").Unmap())
		}
	}
	if bound.Size() > 0 {
		bound.Sort()
		return bound
	}
	found, err := net.InterfaceAddrs()
	if err != nil {
		log.Warningf("the name server has no address in the zone: %v", err)
	}
	var global, loopback zone.Addresses
	for _, f := range found {
		prefix, err := netip.ParsePrefix(f.String())
		switch a := prefix.Addr().Unmap(); {
		case err != nil, a.IsLinkLocalUnicast():
		case a.IsLoopback():
			loopback.Add(a)
		default:
			global.Add(a)
		}
	}
	if global.Size() == 0 {
		global = loopback
	}
	global.Sort()
	return global
}
