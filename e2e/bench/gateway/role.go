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
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/tombolo-mcs/tombolo/pkg/access"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/forward"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/identity"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// A child process is a gateway, or the backend. These variables say which.
const (
	roleVariable   = "BENCH_GATEWAY_ROLE"
	configVariable = "BENCH_GATEWAY_CONFIG"
	importRole     = "import"
	exportRole     = "export"
	backendRole    = "backend"
	// profileVariable is a folder for profiles of the CPU of the gateways.
	profileVariable = "BENCH_GATEWAY_PROFILES"
)

// roleConfig is what a gateway needs.
type roleConfig struct {
	Listen, Forward       string
	Certificates, Trusted certificates
	// Policies is the number of policies that decide about access; nil if no rules are asked.
	Policies *int
}

// serveRole is a child process, until it is killed.
func serveRole(role string) error {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(4 * runtime.GOMAXPROCS(0)) // as cmd/tombolo-gateway
	}
	if folder := os.Getenv(profileVariable); folder != "" {
		stop, err := startProfile(filepath.Join(folder, role))
		if err != nil {
			return err
		}
		defer stop()
	}
	var c roleConfig
	if err := json.Unmarshal([]byte(os.Getenv(configVariable)), &c); err != nil {
		return err
	}
	opened, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	if role == backendRole {
		return serveBackend(opened)
	}
	trust, err := c.trust()
	if err != nil {
		return err
	}
	permissions, err := c.permissions(role)
	if err != nil {
		return err
	}
	listener := opened.(*net.TCPListener)
	buffers, limits := tunnel.NewBuffers(256), func() *forward.Limits { return &forward.Limits{Total: 100_000, Each: 100_000} }
	if role == exportRole {
		e := &forward.Exporter{
			Backends: fixed{netip.MustParseAddrPort(c.Forward)}, Buffers: buffers, Metrics: forward.NewMetrics("export"), Limits: limits(), Connections: limits(),
			Permissions: permissions,
		}
		e.Accept(context.Background(), listener, trust.Server())
		return nil
	}
	metrics := forward.NewMetrics("import")
	i := &forward.Importer{
		Pool: &forward.Pool{
			Addresses: func(clusterset.ClusterID) []string { return []string{c.Forward} }, Config: trust.Client, Buffers: buffers, Metrics: metrics,
		},
		Buffers: buffers, Metrics: metrics, Limits: limits(), Permissions: permissions,
	}
	i.Pool.Want([]clusterset.ClusterID{west})
	open := wire.Open{Protocol: wire.ProtocolTCP, Namespace: "bench", Service: "backend", Port: 80, ClientNamespace: "bench", ServiceAccount: "client"}
	for {
		client, err := listener.AcceptTCP()
		if err != nil {
			return err
		}
		go func() {
			from := open
			from.Client = client.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
			if tunnel.Prepare(client) == nil {
				_ = i.Serve(context.Background(), client, west, from)
			}
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
		Authorities: func(clusterset.ClusterID) *x509.CertPool { return pool },
	}, nil
}

// fixed leads all streams to one backend.
type fixed struct{ backend netip.AddrPort }

// Endpoints returns the backend.
func (f fixed) Endpoints(clusterset.ClusterID, wire.Open) (forward.Endpoints, *wire.Refusal) {
	return forward.Endpoints{Addresses: []netip.AddrPort{f.backend}}, nil
}

// permissions returns who may use the service: all clients, as no policy is about the account of the client, though all are about its
// namespace, which costs most. It returns nil without rules.
func (c roleConfig) permissions(role string) (*forward.Permissions, error) {
	if c.Policies == nil {
		return nil, nil
	}
	direction := policyv1alpha1.DirectionExport
	if role == importRole {
		direction = policyv1alpha1.DirectionImport
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
