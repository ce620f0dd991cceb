// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	// portsHost is the address of the gateway whose listening ports are measured.
	portsHost = "127.0.1.1"
	// changes is the number of changes that are measured.
	changes = 20
)

// portsCluster is an API server with EndpointSlices, each of which has one listening port.
type portsCluster struct {
	lab    *lab.Lab
	client client.Client
	slices int
}

func (c *portsCluster) close() error {
	if c == nil {
		return nil
	}
	return c.lab.Close()
}

// portsRow measures the CPU of a gateway, the program with its API server, for a change of one of many listening ports.
func portsRow(ctx context.Context, b *bench, who pairKind, _ string) error {
	if b.cluster == nil {
		// Each listening port is a file, and each change needs another port.
		n := min(b.ports, b.files-1000, ports.Last-ports.First-changes)
		fmt.Printf("          an API server with %d listening ports\n", n)
		var err error
		if b.cluster, err = newPortsCluster(ctx, n); err != nil {
			return err
		}
	}
	program := filepath.Join(b.programs, "tombolo-gateway")
	if who == before {
		program = filepath.Join(b.before, "tombolo-gateway")
	}
	peers, err := freeAddress(side{})
	if err != nil {
		return err
	}
	gateway := &pair{sites: &sites{}}
	command := side{}.command(ctx, program, "--kubeconfig="+b.cluster.lab.Cluster("a").Kubeconfig(), "--bind-address="+peers,
		"--metrics-bind-address=0", "--health-probe-bind-address=0")
	err = gateway.start(command, "POD_NAMESPACE="+manifests.AgentNamespace, "POD_NAME=gateway", "POD_UID=1", "POD_IPS="+portsHost,
		"GOMAXPROCS="+os.Getenv("GOMAXPROCS"))
	if err != nil {
		return err
	}
	defer gateway.stop()
	if err := b.cluster.change(ctx, 0); err != nil {
		return err
	}
	if err := gateway.withOutput(b.cluster.await(ctx, 2*time.Minute, 0)); err != nil {
		return err
	}
	select { // the end of the start
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.duration):
	}
	before, err := gateway.cpu()
	if err != nil {
		return err
	}
	for i := range changes {
		if err := b.cluster.change(ctx, i+1); err != nil {
			return err
		}
		if err := gateway.withOutput(b.cluster.await(ctx, 20*time.Second, i+1)); err != nil {
			return err
		}
	}
	after, err := gateway.cpu()
	if err != nil {
		return err
	}
	b.Add("Ports", string(who), "cpu-ms/change", (after-before)*1e3/changes)
	b.Add("Ports", string(who), "ports", float64(b.cluster.slices))
	return nil
}

func newPortsCluster(ctx context.Context, n int) (c *portsCluster, err error) {
	l, err := lab.New(ctx, lab.Options{Clusters: []lab.ClusterOptions{lab.Member("a")}})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	gatewayKinds, err := manifests.Render("crd/gateway")
	if err != nil {
		return nil, err
	}
	err = errors.Join(membership.InstallCRDs(ctx, l.Cluster("a")), membership.Apply(ctx, l.Cluster("a"), gatewayKinds...))
	if err != nil {
		return nil, err
	}
	scheme, err := membership.Scheme()
	if err != nil {
		return nil, err
	}
	c = &portsCluster{lab: l, slices: n}
	if c.client, err = l.Cluster("a").Client(scheme); err != nil {
		return nil, err
	}
	for _, name := range []string{manifests.AgentNamespace, "bench"} {
		if err := c.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return nil, err
		}
	}
	authority, err := identity.NewAuthority("a", time.Now())
	if err != nil {
		return nil, err
	}
	certificate, key, err := authority.Issue(identity.Name{ClusterSet: "bench", Cluster: "a"}, time.Now())
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayCertificateSecret},
		Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}
	if err := c.client.Create(ctx, secret); err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error { return c.client.Create(ctx, portsSlice(i, i)) })
	}
	return c, group.Wait()
}

// portsSlice returns the slice of a service with a listening port.
func portsSlice(i, port int) *discoveryv1.EndpointSlice {
	name := fmt.Sprint("service-", i)
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "bench", Name: name,
			Labels: map[string]string{
				discoveryv1.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: name, mcsv1beta1.LabelSourceCluster: "b",
				clusterset.LabelGateway: "true",
			},
			Annotations: map[string]string{clusterset.AnnotationGatewayPorts: clusterset.FormatListen(map[int32]int32{80: int32(ports.First + port)})},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
}

// portAfter returns the listening port of the last service after a number of changes. A gateway accepts at the former ones for a time.
func (c *portsCluster) portAfter(change int) int { return c.slices - 1 + change }

func (c *portsCluster) change(ctx context.Context, number int) error {
	return c.client.Update(ctx, portsSlice(c.slices-1, c.portAfter(number))) // whatever its version
}

// await returns when the gateway listens at the port of a change.
func (c *portsCluster) await(ctx context.Context, timeout time.Duration, change int) error {
	address := net.JoinHostPort(portsHost, strconv.Itoa(ports.First+c.portAfter(change)))
	return lab.Await(ctx, 5*time.Millisecond, timeout, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}
