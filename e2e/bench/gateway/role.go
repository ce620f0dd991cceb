// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/gateway/balance"
	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/forward"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A child process is a gateway, the backend, or many clients. These variables say which.
const (
	roleVariable   = "BENCH_GATEWAY_ROLE"
	configVariable = "BENCH_GATEWAY_CONFIG"
	gatewayRole    = "gateway"
	backendRole    = "backend"
	crowdRole      = "crowd"
	// profileVariable is a folder for profiles of the CPU of the gateways.
	profileVariable = "BENCH_GATEWAY_PROFILES"
)

// The services of the benchmark. The exporting gateway denies clients of the second one.
const (
	allowedService = "backend"
	deniedService  = "denied"
)

// roleConfig is what a child process needs. A program of an earlier commit ignores fields that it does not know.
type roleConfig struct {
	Name string // of the files of the profiles
	// Listen is the address of the backend.
	Listen string `json:",omitempty"`
	// Crowd is what the clients do.
	Crowd *crowd `json:",omitempty"`

	// A gateway exports, imports, or does both.
	Export                *exportConfig `json:",omitempty"`
	Import                *importConfig `json:",omitempty"`
	Certificates, Trusted certificates
	// Policies is the number of policies that decide about access; nil if no rules are asked.
	Policies *int `json:",omitempty"`
	// Streams is the largest number of streams in each direction. With HasMemory, their memory is limited too, as in cmd/tombolo-gateway.
	Streams   int
	HasMemory bool `json:",omitempty"`
}

type exportConfig struct {
	Listen  string // for the gateways of the other cluster
	Backend string
	Denies  bool // the clients of deniedService
}

type importConfig struct {
	Listen string // for clients of allowedService
	Denied string // for clients of deniedService; empty for none
	// Cluster is the other cluster, and Gateways are the addresses of its gateways.
	Cluster  clusterset.ClusterID
	Gateways []string
}

// serveRole is a child process, until it is killed.
func serveRole(role string) error {
	if os.Getenv("GOMAXPROCS") == "" && role != crowdRole {
		runtime.GOMAXPROCS(4 * runtime.GOMAXPROCS(0)) // as cmd/tombolo-gateway
	}
	var c roleConfig
	if err := json.Unmarshal([]byte(os.Getenv(configVariable)), &c); err != nil {
		return err
	}
	if folder := os.Getenv(profileVariable); folder != "" && role == gatewayRole {
		stop, err := startProfile(filepath.Join(folder, c.Name))
		if err != nil {
			return err
		}
		defer stop()
	}
	switch role {
	case crowdRole:
		return c.Crowd.run()
	case backendRole:
		listener, err := net.Listen("tcp", c.Listen)
		if err != nil {
			return err
		}
		return serveBackend(listener)
	}
	return c.serveGateway(context.Background())
}

// serveGateway is the data path of cmd/tombolo-gateway.
func (c roleConfig) serveGateway(ctx context.Context) error {
	trust, err := c.trust()
	if err != nil {
		return err
	}
	buffers, memory := tunnel.NewBuffers(256), budget.New(0)
	if c.HasMemory {
		forStreams, forBuffers := budget.SetLimit()
		buffers, memory = tunnel.NewBuffers(int(forBuffers/tunnel.LargeSize)), budget.New(forStreams)
	}
	limits := func(perStream, bytes int) *budget.Limits {
		return &budget.Limits{Total: perStream * c.Streams, Each: perStream * c.Streams, Memory: memory, Bytes: bytes}
	}
	ended := make(chan error)
	if c.Export != nil {
		permissions, err := c.permissions(policyv1alpha1.DirectionExport)
		if err != nil {
			return err
		}
		e := &forward.Exporter{
			Backends: fixed{netip.MustParseAddrPort(c.Export.Backend)}, Buffers: buffers, Metrics: forward.NewMetrics("export"),
			Limits: limits(1, budget.Stream-budget.Connection), Connections: limits(2, budget.Connection),
			Permissions: permissions,
		}
		listener, err := net.Listen("tcp", c.Export.Listen)
		if err != nil {
			return err
		}
		go func() { ended <- e.Accept(ctx, listener.(*net.TCPListener), trust.Server()) }()
	}
	if c.Import != nil {
		permissions, err := c.permissions(policyv1alpha1.DirectionImport)
		if err != nil {
			return err
		}
		metrics := forward.NewMetrics("import")
		i := &forward.Importer{
			Pool: &forward.Pool{
				Addresses: func(clusterset.ClusterID) []string { return slices.Clone(c.Import.Gateways) }, Config: trust.Client, Buffers: buffers, Metrics: metrics, Memory: memory,
			},
			Buffers: buffers, Metrics: metrics, Limits: limits(1, budget.Stream), Permissions: permissions,
		}
		i.Pool.Want([]clusterset.ClusterID{c.Import.Cluster}) //nolint:contextcheck // connections outlive whoever wants them
		for service, address := range map[string]string{allowedService: c.Import.Listen, deniedService: c.Import.Denied} {
			if address == "" {
				continue
			}
			listener, err := loop.Listen(ctx, address)
			if err != nil {
				return err
			}
			go func() { ended <- c.Import.serve(ctx, i, listener, service) }()
		}
	}
	return <-ended
}

// serve forwards the clients of a service.
func (c importConfig) serve(ctx context.Context, i *forward.Importer, listener *loop.Listener, service string) error {
	open := wire.Open{Protocol: wire.ProtocolTCP, Namespace: "bench", Service: service, Port: 80, ClientNamespace: "bench", ServiceAccount: "client"}
	for {
		client, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			from := open
			from.Client = client.Peer.Addr()
			i.Serve(ctx, client, c.Cluster, from, func(error) {})
		}()
	}
}

// startProfile writes a profile of the CPU to a file until the process gets SIGTERM, and then one of the memory.
func startProfile(path string) (stop func(), err error) {
	file, err := os.Create(path + ".cpu.pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	stop = func() {
		pprof.StopCPUProfile()
		file.Close()
		runtime.GC()
		if memory, err := os.Create(path + ".heap.pprof"); err == nil {
			_ = pprof.WriteHeapProfile(memory)
			memory.Close()
		}
	}
	go func() {
		<-ended
		stop()
		os.Exit(0)
	}()
	return stop, nil
}

func (c roleConfig) trust() (identity.Trust, error) {
	own, err := os.ReadFile(c.Certificates.Leaf)
	if err != nil {
		return identity.Trust{}, err
	}
	leaf, err := identity.DecodeLeaf(own, own)
	if err != nil {
		return identity.Trust{}, err
	}
	bundle, err := os.ReadFile(c.Trusted.Bundle)
	if err != nil {
		return identity.Trust{}, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return identity.Trust{}, errors.New("no certificate in " + c.Trusted.Bundle)
	}
	return identity.Trust{
		Self: identity.NameOf(leaf), Leaf: func() *tls.Certificate { return leaf }, Clock: clock.RealClock{},
		Authorities: func(clusterset.ClusterID) *x509.CertPool { return pool }, Verified: identity.NewVerified(),
	}, nil
}

// fixed leads all streams to one backend.
type fixed struct{ backend netip.AddrPort }

// Endpoints returns the backend.
func (f fixed) Endpoints(clusterset.ClusterID, wire.Open) (balance.Endpoints, *wire.Refusal) {
	return balance.Endpoints{Addresses: []netip.AddrPort{f.backend}}, nil
}

// permissions returns who may use the service: all clients, as no policy is about the account of the client, though all are about its
// namespace, which costs most. It returns nil without rules.
func (c roleConfig) permissions(direction policyv1alpha1.Direction) (*forward.Permissions, error) {
	if c.Export != nil && c.Export.Denies && direction == policyv1alpha1.DirectionExport {
		return &forward.Permissions{Denied: func(_ clusterset.ClusterID, request wire.Open) *wire.Refusal {
			if request.Service == deniedService {
				return &wire.Refusal{Code: wire.CodeDenied, Text: "by the benchmark"}
			}
			return nil
		}}, nil
	}
	if c.Policies == nil {
		return nil, nil
	}
	objects := access.Objects{Namespaces: map[string]labels.Set{"bench": nil}}
	for i := range *c.Policies {
		objects.Policies = append(objects.Policies, policyv1alpha1.ClusterServiceAccessPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("policy-", i)},
			Spec: policyv1alpha1.ClusterServiceAccessPolicySpec{
				Tier: policyv1alpha1.TierAdmin, Direction: direction, Action: policyv1alpha1.ActionDeny,
				Peers: []policyv1alpha1.Peer{{
					Namespaces: []policyv1alpha1.NamespaceName{"bench"}, ServiceAccounts: []policyv1alpha1.ObjectName{policyv1alpha1.ObjectName(fmt.Sprint("account-", i))},
				}},
			},
		})
	}
	rules, err := access.New(direction, objects)
	if err != nil {
		return nil, err
	}
	return &forward.Permissions{Denied: func(id clusterset.ClusterID, request wire.Open) *wire.Refusal {
		service := access.Service{Key: clusterset.ServiceKey{Namespace: request.Namespace, Name: request.Service}}
		client := access.Client{Cluster: id, Namespace: request.ClientNamespace, ServiceAccount: request.ServiceAccount}
		if verdict := rules.Decide(service, client); !verdict.Allowed {
			return &wire.Refusal{Code: wire.CodeDenied, Text: verdict.Rule}
		}
		return nil
	}}, nil
}
