// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

// The services of the benchmark; mostEndpoints are those of the memory figures.
const namespace, perSlice, mostEndpoints = "bench", 100, 100_000

func clusterIPName(i int) string { return fmt.Sprintf("web-%04d", i) }
func headlessName(i int) string  { return fmt.Sprintf("db-%04d", i) }
func absentName(i int) string    { return fmt.Sprintf("nx-%04d", i) }

// fqdn returns the name of a service of the clusterset.
func fqdn(service string) string { return service + "." + namespace + ".svc.clusterset.local." }

// content creates the imports of the questions: so many of each type.
type content struct {
	clusterIPs, headless int
	client               client.Client
	updates              int
}

func newContent(ctx context.Context, cluster *lab.Cluster, clusterIPs, headless int) (*content, error) {
	if err := membership.InstallCRDs(ctx, cluster); err != nil {
		return nil, err
	}
	scheme, err := membership.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := cluster.Client(scheme)
	if err != nil {
		return nil, err
	}
	return &content{clusterIPs: clusterIPs, headless: headless, client: c},
		c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// create creates the imports, and a slice for each headless one.
func (c *content) create(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for i := range c.clusterIPs {
		group.Go(func() error {
			return c.client.Create(ctx, serviceImport(clusterIPName(i), mcsv1beta1.ClusterSetIP, fmt.Sprintf("10.96.%d.%d", i/250, 1+i%250)))
		})
	}
	for i := range c.headless {
		group.Go(func() error { return c.client.Create(ctx, serviceImport(headlessName(i), mcsv1beta1.Headless)) })
		group.Go(func() error { return c.client.Create(ctx, slice(i, 0)) })
	}
	return group.Wait()
}

// createMore adds slices to the headless imports until there are mostEndpoints.
func (c *content) createMore(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for n := c.headless; n < mostEndpoints/perSlice; n++ {
		group.Go(func() error { return c.client.Create(ctx, slice(n%c.headless, n/c.headless)) })
	}
	return group.Wait()
}

// await returns when a server has all endpoints of createMore.
func (c *content) await(ctx context.Context, s *server) error {
	resolver := &dns.Client{Net: "tcp", Timeout: 10 * time.Second}
	for i := range c.headless {
		m := new(dns.Msg)
		m.SetQuestion(fqdn(headlessName(i)), dns.TypeA)
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
			reply, _, err := resolver.ExchangeContext(ctx, m, s.tcp)
			return err == nil && len(reply.Answer) >= mostEndpoints/c.headless-c.headless, err // some are not ready
		})
		if err != nil {
			return fmt.Errorf("%s: endpoints of %s: %w", s.name, headlessName(i), err)
		}
	}
	return nil
}

// startUpdates changes updateRate slices per second until stop, which returns its error.
func (c *content) startUpdates(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		var err error
		for limiter := rate.NewLimiter(updateRate, 1); err == nil && limiter.Wait(ctx) == nil; {
			err = c.update(ctx)
		}
		if ctx.Err() != nil {
			err = nil // interrupted
		}
		ended <- err
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

// update changes the readiness of the first endpoint of a headless import, of the next one each time.
func (c *content) update(ctx context.Context) error {
	s := slice(c.updates%c.headless, 0)
	s.Endpoints[0].Conditions.Ready = new(c.updates/c.headless%2 == 1)
	c.updates++
	patch, err := json.Marshal(map[string]any{"endpoints": s.Endpoints})
	if err != nil {
		return err
	}
	return c.client.Patch(ctx, s, client.RawPatch(types.MergePatchType, patch))
}

func serviceImport(name string, kind mcsv1beta1.ServiceImportType, ips ...string) *mcsv1beta1.ServiceImport {
	return &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: kind, IPs: ips, Ports: []mcsv1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
}

// slice returns the n-th slice of a headless import.
func slice(service, n int) *discoveryv1.EndpointSlice {
	name := headlessName(service)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, n),
			Labels: map[string]string{mcsv1beta1.LabelServiceName: name, mcsv1beta1.LabelSourceCluster: "east"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
	}
	for i := range perSlice {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 1+n, service, 1+i)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return s
}
