// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

// What the names of the benchmark lead to.
const (
	namespace        = "bench"
	perSlice         = 100
	crowdedEndpoints = 100_000
)

// size is how many services there are of each type.
type size struct{ clusterIPs, headless int }

// full is what is measured.
var full = size{clusterIPs: 1000, headless: 50}

func clusterIPName(i int) string { return fmt.Sprintf("web-%04d", i) }
func headlessName(i int) string  { return fmt.Sprintf("db-%04d", i) }
func absentName(i int) string    { return fmt.Sprintf("nx-%04d", i) }

// fqdn returns the name of a service of the clusterset.
func fqdn(service string) string { return service + "." + namespace + ".svc.clusterset.local." }

// content writes what the benchmark asks for.
type content struct {
	size
	client client.Client
}

func newContent(ctx context.Context, cluster *lab.Cluster, n size) (*content, error) {
	if err := membership.InstallCRDs(ctx, cluster); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, mcsv1beta1.Install} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := cluster.Client(scheme)
	if err != nil {
		return nil, err
	}
	err = c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	return &content{n, c}, nil
}

// fill creates the services, and the slices of the headless ones.
func (c *content) fill(ctx context.Context) error {
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

// crowd adds slices to the headless services until there are so many endpoints.
func (c *content) crowd(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10)
	for n := c.headless; n < crowdedEndpoints/perSlice; n++ {
		group.Go(func() error { return c.client.Create(ctx, slice(n%c.headless, n/c.headless)) })
	}
	return group.Wait()
}

// flip changes whether the first endpoint of a headless service is ready.
func (c *content) flip(ctx context.Context, n int) error {
	s := slice(n%c.headless, 0)
	s.Endpoints[0].Conditions.Ready = ptr.To(n/c.headless%2 == 1)
	return c.client.Patch(ctx, s, client.RawPatch("application/merge-patch+json", mustJSON(map[string]any{"endpoints": s.Endpoints})))
}

func serviceImport(name string, kind mcsv1beta1.ServiceImportType, ips ...string) *mcsv1beta1.ServiceImport {
	return &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: kind, IPs: ips, Ports: []mcsv1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
}

// slice returns the n-th of a headless service's slices.
func slice(service, n int) *discoveryv1.EndpointSlice {
	name := headlessName(service)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("%s-%d", name, n),
			Labels: map[string]string{mcsv1beta1.LabelServiceName: name, mcsv1beta1.LabelSourceCluster: "east"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](8080)}},
	}
	for i := range perSlice {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", 1+n, service, 1+i)}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	return s
}
