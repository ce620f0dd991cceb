// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway runs a gateway: it watches the objects from which a gateway gets its configuration, and forwards connections.
package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/forward"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/identity"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
)

// gateway is a running gateway. Its configuration is replaced as a whole, by one goroutine.
type gateway struct {
	options  Options
	cache    client.Reader
	importer *forward.Importer
	exporter *forward.Exporter
	clients  listeners
	rules    *accessRules
	pods     *identities
	refusals *rate.Limiter

	leaf    atomic.Pointer[tls.Certificate]
	remotes atomic.Pointer[map[clusterset.ClusterID]remote]
	// problem is why the gateway is not ready; nil if it is.
	problem atomic.Pointer[error]
	changed chan struct{}
	logged  string // what was left out of the configuration last
}

// retryAfter is the time after which a port that could not be opened is tried again.
const retryAfter = 5 * time.Second

func newGateway(ctx context.Context, options Options, cache client.Reader, recorder events.EventRecorder) *gateway {
	buffers := tunnel.NewBuffers(options.LargeBuffers)
	g := &gateway{
		options: options, cache: cache, pods: newIdentities(cache, clock.RealClock{}),
		rules:    newAccessRules(ctx, cache, options.Log, newDenials(recorder, clock.RealClock{})),
		refusals: rate.NewLimiter(1, 10), changed: make(chan struct{}, 1),
	}
	g.remotes.Store(&map[clusterset.ClusterID]remote{})
	g.setProblem(errors.New("the gateway has not read its configuration yet"))
	limits := func(perStream int) *forward.Limits {
		return &forward.Limits{Total: perStream * options.MaxStreams, Each: perStream * options.MaxStreamsEach}
	}
	metrics := forward.NewMetrics("import")
	pool := &forward.Pool{
		Addresses: func(id clusterset.ClusterID) []string { return slices.Clone((*g.remotes.Load())[id].addresses) },
		Permit:    func(id clusterset.ClusterID, ip netip.Addr) error { return (*g.remotes.Load())[id].permit(ip) },
		Config:    func(id clusterset.ClusterID) *tls.Config { return g.trust().Client(id) },
		Buffers:   buffers, Metrics: metrics,
	}
	log := accessLog(options.AccessLog) //nolint:contextcheck // a line of the access log needs none
	g.importer = &forward.Importer{Pool: pool, Permissions: g.rules.importing, Buffers: buffers, Metrics: metrics, Limits: limits(1), Access: log}
	g.exporter = &forward.Exporter{
		Backends:    backends{cache, func(id clusterset.ClusterID) bool { return (*g.remotes.Load())[id].authorities != nil }},
		Permissions: g.rules.exporting, Buffers: buffers, Metrics: forward.NewMetrics("export"), Limits: limits(1), Connections: limits(2), Access: log,
	}
	g.clients.addresses, g.clients.lag, g.clients.open = options.PodIPs, proxyLag, map[string]*listener{}
	g.clients.serve = func(ctx context.Context, client *net.TCPConn, to ports.Owner, from netip.Addr) {
		request := requestOf(to, from)
		request.ClientNamespace, request.ServiceAccount = g.pods.of(ctx, from)
		err := g.importer.Serve(ctx, client, to.Cluster, request)
		if err != nil && g.refusals.Allow() {
			options.Log.Info("a client was reset", "service", to.Service.String(), "cluster", to.Cluster, "hostname", to.Hostname, "port", to.Port, "client", from.String(), "reason", err.Error())
		}
	}
	return g
}

// trust returns whom the gateway trusts now. It is called only after the certificate was read.
func (g *gateway) trust() identity.Trust {
	return identity.Trust{
		Self: identity.NameOf(g.leaf.Load()), Leaf: g.leaf.Load, Clock: clock.RealClock{},
		Authorities: func(id clusterset.ClusterID) *x509.CertPool { return (*g.remotes.Load())[id].authorities },
	}
}

// run serves until ctx ends, and then drains.
func (g *gateway) run(ctx context.Context) error {
	var config net.ListenConfig
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
	g.notify()
	var again <-chan time.Time
	for accepting := false; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
			continue
		case <-again:
		case <-g.changed:
		}
		if again = nil; g.reconfigure(ctx) != nil {
			again = time.After(retryAfter)
		}
		if !accepting && g.leaf.Load() != nil {
			accepting = true
			server := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return g.trust().Server(), nil }}
			go g.exporter.Accept(logr.NewContext(context.WithoutCancel(ctx), g.options.Log), peers, server)
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
	var mirrored discoveryv1.EndpointSliceList
	if err := g.cache.List(ctx, &mirrored, client.MatchingLabels{clusterset.LabelGateway: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list EndpointSlices: %w", err)
	}
	wanted, refused := listening(mirrored.Items)
	problem = g.clients.apply(ctx, wanted)
	g.importer.Pool.Want(clustersOf(wanted))
	return errors.Join(leafErr, remotesErr, errors.Join(refused...)), problem
}

// readRemotes reads whom the gateway trusts.
func (g *gateway) readRemotes(ctx context.Context) error {
	var remotes gatewayv1alpha1.RemoteGatewayList
	if err := g.cache.List(ctx, &remotes, client.InNamespace(g.options.Namespace)); err != nil {
		return fmt.Errorf("list RemoteGateways: %w", err)
	}
	return g.trustOnly(remotes.Items)
}

// trustOnly replaces the remote gateways, and closes the connections of those that are no longer trusted.
func (g *gateway) trustOnly(remotes []gatewayv1alpha1.RemoteGateway) error {
	after, err := remotesOf(remotes)
	before := g.remotes.Swap(&after)
	for _, id := range ended(*before, after) {
		g.importer.Pool.CloseWhere(func(other clusterset.ClusterID) bool { return other == id })
		g.exporter.CloseWhere(func(other clusterset.ClusterID) bool { return other == id })
	}
	return err
}

func clustersOf(wanted map[int32]ports.Owner) []clusterset.ClusterID {
	var result []clusterset.ClusterID
	for _, owner := range wanted {
		result = append(result, owner.Cluster)
	}
	slices.Sort(result)
	return slices.Compact(result)
}

// readLeaf reads the certificate of this cluster's gateways.
func (g *gateway) readLeaf(ctx context.Context) error {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: g.options.Namespace, Name: clusterset.GatewayCertificateSecret}
	if err := g.cache.Get(ctx, key, &secret); err != nil {
		return fmt.Errorf("the certificate of this cluster's gateways, which the agent creates: %w", err)
	}
	leaf, err := identity.DecodeLeaf(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("the certificate in Secret %s: %w: delete it, so that the agent creates it again", key, err)
	}
	g.leaf.Store(leaf)
	return nil
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
