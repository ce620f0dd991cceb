// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway runs a gateway: it watches the objects from which a gateway gets its configuration, and forwards connections.
package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/forward"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// gateway is a running gateway. One goroutine applies its configuration.
type gateway struct {
	options  Options
	cache    client.Reader
	importer *forward.Importer
	exporter *forward.Exporter
	claims   *claims
	clients  listeners
	rules    *accessRules
	pods     *identities
	near     neighbours
	refusals *rate.Limiter
	unknown  *prometheus.CounterVec // clients, by the cluster that they use

	leaf    atomic.Pointer[tls.Certificate]
	remotes atomic.Pointer[map[clusterset.ClusterID]remote]
	// verified are the certificates of other gateways that were verified.
	verified *identity.Verified
	// problem is why the gateway is not ready; nil if it is.
	problem atomic.Pointer[error]
	changed chan struct{}
	synced  []toolscache.DoneChecker // the handlers of events: the gateway is not ready before they have got all objects
	logged  string                   // what was left out of the configuration last
}

// retryAfter is the time after which a port that could not be opened is tried again.
const retryAfter = 5 * time.Second

func newGateway(ctx context.Context, options Options, cache client.Reader, recorder events.EventRecorder) *gateway {
	buffers := tunnel.NewBuffers(options.LargeBuffers)
	g := &gateway{
		options: options, cache: cache, pods: newIdentities(cache, clock.RealClock{}),
		rules:    newAccessRules(ctx, cache, options.Log, newDenials(recorder, clock.RealClock{})),
		near:     neighbours{cache: cache, namespace: options.Namespace, podIPs: options.PodIPs},
		refusals: rate.NewLimiter(1, 10), unknown: newUnknownClients(), changed: make(chan struct{}, 1), verified: identity.NewVerified(),
	}
	g.claims = newClaims(g.notify)
	g.remotes.Store(&map[clusterset.ClusterID]remote{})
	g.setProblem(errors.New("the gateway has not read its configuration yet"))
	memory := budget.New(options.StreamMemory)
	limits := func(perStream, bytes int) *budget.Limits {
		return &budget.Limits{Total: perStream * options.MaxStreams, Each: perStream * options.MaxStreamsEach, Memory: memory, Bytes: bytes}
	}
	metrics := forward.NewMetrics("import")
	pool := &forward.Pool{
		Addresses: func(id clusterset.ClusterID) []string { return slices.Clone((*g.remotes.Load())[id].addresses) },
		Permit:    func(id clusterset.ClusterID, ip netip.Addr) error { return (*g.remotes.Load())[id].permit(ip) },
		Config:    func(id clusterset.ClusterID) *tls.Config { return g.trust().Client(id) },
		Buffers:   buffers, Metrics: metrics, Memory: memory,
	}
	log := accessLog(options.AccessLog) //nolint:contextcheck // a line of the access log needs none
	g.importer = &forward.Importer{Pool: pool, Permissions: g.rules.importing, Identify: g.pods.of, Buffers: buffers, Metrics: metrics, Limits: limits(1, budget.Stream), Access: log}
	g.rules.identify = g.pods.now
	g.exporter = &forward.Exporter{
		Backends:    backends{cache, g.backendRules, g.rules.exports},
		Permissions: g.rules.exporting, Buffers: buffers, Metrics: forward.NewMetrics("export"), Access: log,
		Limits: limits(1, budget.Stream-budget.Connection), Connections: limits(2, budget.Connection),
	}
	g.exporter.Refused = g.logRefusedStream
	g.clients.addresses, g.clients.lag = options.PodIPs, proxyLag
	g.clients.serve = func(ctx context.Context, client loop.Accepted, to ports.Owner, ended func()) {
		from := client.Peer.Addr()
		request := requestOf(to, client.Peer)
		if g.near.refusesClient(ctx, from) {
			g.importer.Refuse(client, to.Cluster, request, errTransit)
			g.logRefused(to, from, errTransit)
			ended()
			return
		}
		g.identify(ctx, to.Cluster, &request)
		if request.ClientNamespace == "" {
			g.unknown.WithLabelValues(string(to.Cluster)).Inc()
		}
		g.importer.Serve(ctx, client, to.Cluster, request, func(err error) {
			g.logRefused(to, from, err)
			ended()
		})
	}
	return g
}

// logRefused logs why a client was reset, if it was, but not each of many.
func (g *gateway) logRefused(to ports.Owner, from netip.Addr, err error) {
	if err != nil && g.refusals.Allow() {
		g.options.Log.Info("a client was reset", "service", to.Service.String(), "cluster", to.Cluster, "hostname", to.Hostname, "port", to.Port, "client", from.String(), "reason", err.Error())
	}
}

// logRefusedStream logs why a stream of another cluster was refused, but not each of many. What a rule denies has a line of its own, and a
// client that is not identified yet is tried again.
func (g *gateway) logRefusedStream(from clusterset.ClusterID, request wire.Open, refusal *wire.Refusal) {
	if refusal.Code != wire.CodeDenied && refusal.Code != wire.CodeUnidentified && g.refusals.Allow() {
		g.options.Log.Info("a stream was refused", "service", request.Namespace+"/"+request.Service, "cluster", from, "hostname", request.Hostname,
			"port", request.Port, "client", request.Client.String(), "code", refusal.Code.String(), "reason", refusal.Text)
	}
}

// backendRules returns those for the exports of a namespace that a cluster uses. Its ranges are in the object of that cluster.
func (g *gateway) backendRules(ctx context.Context, cluster clusterset.ClusterID, namespace string) export.BackendRules {
	return g.near.backendRules(ctx, namespace, (*g.remotes.Load())[cluster].own)
}

// run serves until ctx ends, and then drains.
func (g *gateway) run(ctx context.Context) error {
	config := net.ListenConfig{KeepAlive: -1} // their event loop sets it later
	opened, err := config.Listen(ctx, "tcp", g.options.Listen)
	if err != nil {
		return fmt.Errorf("listen for gateways of other clusters: %w", err)
	}
	peers := opened.(*net.TCPListener)
	defer peers.Close()
	outlasting, end := context.WithCancel(context.WithoutCancel(ctx)) // rules also change while the gateway drains
	defer end()
	g.rules.load(ctx)
	go g.rules.run(outlasting)
	toolscache.WaitFor(ctx, "", g.synced...)
	g.notify()
	var again <-chan time.Time
	failed := make(chan error, 1)
	for accepting := false; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			continue
		case err := <-failed:
			return fmt.Errorf("accept gateways of other clusters: %w", err)
		case <-again:
		case <-g.changed:
		}
		if again = nil; g.reconfigure(ctx) != nil {
			again = time.After(retryAfter)
		}
		if !accepting && g.leaf.Load() != nil {
			accepting = true
			go func() {
				if err := g.exporter.Accept(logr.NewContext(context.WithoutCancel(ctx), g.options.Log), peers, g.server()); err != nil {
					failed <- err
				}
			}()
		}
	}
	return g.drain(outlasting, peers)
}

// notify says that an object of the configuration has changed.
func (g *gateway) notify() {
	select {
	case g.changed <- struct{}{}:
	default: // a change is pending
	}
}

// reconfigure reads the configuration and applies it. It returns why the gateway is not ready; nil if it is. What is not valid is left
// out and logged: one wrong object must not stop the gateway.
func (g *gateway) reconfigure(ctx context.Context) error {
	leftOut, problem := g.configure(ctx)
	if text := fmt.Sprint(leftOut); leftOut != nil && text != g.logged {
		g.options.Log.Error(leftOut, "a part of the configuration is left out")
	}
	g.logged = fmt.Sprint(leftOut)
	if problem != nil {
		g.options.Log.Error(problem, "the gateway is not ready")
	}
	g.setProblem(problem)
	return problem
}

func (g *gateway) configure(ctx context.Context) (leftOut, problem error) {
	leafErr := g.readLeaf(ctx)
	if g.leaf.Load() == nil {
		return nil, leafErr
	}
	remotesErr := g.readRemotes(ctx)
	changes, clusters, leftOutSlices := g.claims.take()
	problem = g.clients.apply(ctx, changes)
	g.importer.Pool.Want(clusters)
	return errors.Join(leafErr, remotesErr, errors.Join(leftOutSlices...)), problem
}

func (g *gateway) setProblem(err error) { g.problem.Store(&err) }

// ready is the readiness check.
func (g *gateway) ready(*http.Request) error { return *g.problem.Load() }

// proxyLag is the time for which a gateway accepts clients after the slices no longer list it, or a port: each kube-proxy reads them by
// itself.
const proxyLag = 5 * time.Second

// drain continues to accept connections until no slice leads here and no kube-proxy sends clients here, at most for half of the time that is left, and
// then waits for the streams (G8).
func (g *gateway) drain(ctx context.Context, peers *net.TCPListener) error {
	g.setProblem(errors.New("the gateway shuts down"))
	ctx, cancel := context.WithTimeout(ctx, g.options.DrainTimeout)
	defer cancel()
	half, stop := context.WithTimeout(ctx, g.options.DrainTimeout/2)
	defer stop()
	for g.isListed(half) {
		select {
		case <-half.Done():
		case <-g.changed:
			g.refreshTrust(ctx)
		}
	}
	go func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-g.changed:
				g.refreshTrust(ctx)
			}
		}
	}()
	select {
	case <-half.Done():
	case <-time.After(min(proxyLag, g.options.DrainTimeout/4)):
	}
	peers.Close()
	g.clients.closeAll()
	served := make(chan struct{})
	go func() {
		g.clients.running.Wait()
		close(served)
	}()
	g.exporter.Shutdown(ctx)
	select {
	case <-served:
	case <-ctx.Done():
	}
	g.importer.Pool.Close()
	return nil
}

// refreshTrust reads whom the gateway trusts while it drains: members can be suspended meanwhile.
func (g *gateway) refreshTrust(ctx context.Context) {
	if err := g.readRemotes(ctx); err != nil {
		g.options.Log.Error(err, "a part of the configuration is left out")
	}
}

// isListed reports whether an endpoint of a slice is this gateway, or unknown; false after ctx.
func (g *gateway) isListed(ctx context.Context) bool {
	var mirrored discoveryv1.EndpointSliceList
	if ctx.Err() != nil || g.cache.List(ctx, &mirrored, client.MatchingLabels{clusterset.LabelGateway: "true"}, client.UnsafeDisableDeepCopy) != nil {
		return false
	}
	return slices.ContainsFunc(mirrored.Items, func(slice discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(slice.Endpoints, func(endpoint discoveryv1.Endpoint) bool {
			return len(endpoint.Addresses) > 0 && slices.Contains(g.options.PodIPs, endpoint.Addresses[0])
		})
	})
}

// reachable returns which of the clusters in use the gateway reaches, and why not.
func (g *gateway) reachable() map[clusterset.ClusterID]error { return g.importer.Pool.Reachable() }
