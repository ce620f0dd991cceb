// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// who is measured: agents of members in two networks with gateways, and in one network.
const viaGateways, flat = "gateways", "flat"

const gatewayImports, gatewayChurn, gatewayWithdrawal = "Gateways/imports", "Gateways/churn", "Gateways/withdrawal"

// churnChanges is how many changes of endpoints leave the availability as it is, and withdrawals how many services lose their last
// endpoint.
const churnChanges, withdrawals = 1000, 100

// overGateways measures the control plane of imports over gateways, beside that of flat imports of the same services: services per second,
// writes on the hub for changes of endpoints that leave the availability as it is, and the time from the end of the last endpoint
// until the importer has withdrawn the source. There are no gateways: an agent uses those that no probe reaches if it reaches none.
func overGateways(ctx context.Context, b *bench, w *world.World) error {
	services, err := world.CreateServices(ctx, b.log, w.Members[0], b.size)
	if err != nil {
		return err
	}
	for _, m := range w.Members {
		if err := installGateways(ctx, m); err != nil {
			return fmt.Errorf("gateways of %s: %w", m.ID, err)
		}
	}
	for round := range b.rounds {
		for _, who := range []string{flat, viaGateways} {
			b.log("round %d of %d: %s", round+1, b.rounds, who)
			if err := b.overGatewaysOnce(ctx, w, services, who); err != nil {
				return fmt.Errorf("%s: %w", who, err)
			}
		}
	}
	b.Compare(gatewayImports, "services/s", viaGateways, flat, results.AtLeast(0.8))
	b.Limit(gatewayChurn, "hub-writes", viaGateways, results.AtMost(0))
	b.Compare(gatewayWithdrawal, "p50-ms", viaGateways, flat, results.AtMost(1.5))
	b.Compare(gatewayWithdrawal, "p99-ms", viaGateways, flat, results.AtMost(2))
	return setNetworks(ctx, w, flat)
}

func (b *bench) overGatewaysOnce(ctx context.Context, w *world.World, services []*world.TestService, who string) (err error) {
	if err := setNetworks(ctx, w, who); err != nil {
		return err
	}
	for _, m := range w.Members {
		m.Agent = nil // another process may have taken the ports of the last one
	}
	stop, err := w.StartAgents(ctx, b.program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(), w.CleanUp(ctx)) }()
	rate, err := world.ExportAll(ctx, w, services)
	if err != nil {
		return err
	}
	b.Add(gatewayImports, who, "services/s", rate)
	sources, err := world.ReadSlices(ctx, w.Members[0], services[:min(withdrawals, len(services))])
	if err != nil {
		return err
	}
	if err := b.churn(ctx, w, sources, who); err != nil {
		return err
	}
	return b.withdrawals(ctx, w, sources, who)
}

// churn replaces endpoints, and counts the writes on the hub.
func (b *bench) churn(ctx context.Context, w *world.World, sources *world.SourceSlices, who string) error {
	before, err := world.SettledRequests(ctx, w)
	if err != nil {
		return err
	}
	changes := min(churnChanges, 10*b.size)
	for i := range changes {
		if err := sources.Change(ctx, i); err != nil {
			return err
		}
	}
	after, err := world.SettledRequests(ctx, w)
	if err != nil {
		return err
	}
	caused := after.Since(before)
	b.log("%d changes of endpoints caused: %s", changes, caused)
	b.Add(gatewayChurn, who, "hub-writes", float64(caused.Writes(w.Hub.Name)))
	return nil
}

// withdrawals ends all endpoints of one service after the other, and measures the time until the importer's slices have none. At the end the
// endpoints are as before.
func (b *bench) withdrawals(ctx context.Context, w *world.World, sources *world.SourceSlices, who string) error {
	o, stop, err := world.Observe(ctx, w.Members[1])
	defer stop()
	if err != nil {
		return err
	}
	if err := b.measureEach(ctx, gatewayWithdrawal, who, len(sources.Slices), func(i int) (float64, error) {
		key := world.GoneKey(sources.Slices[i].Labels[discoveryv1.LabelServiceName])
		return o.LatencyOf(ctx, key, key, func() error { return setReady(ctx, sources, i, false) })
	}); err != nil {
		return err
	}
	for i := range sources.Slices {
		err = errors.Join(err, setReady(ctx, sources, i, true))
	}
	return err
}

func setReady(ctx context.Context, c *world.SourceSlices, i int, ready bool) error {
	for e := range c.Slices[i].Endpoints {
		c.Slices[i].Endpoints[e].Conditions = discoveryv1.EndpointConditions{Ready: new(ready), Serving: new(ready), Terminating: new(false)}
	}
	return c.Member.Admin.Update(ctx, c.Slices[i])
}

// setNetworks moves the members into networks of their own, or into one.
func setNetworks(ctx context.Context, w *world.World, who string) error {
	for _, m := range w.Members {
		key := client.ObjectKey{Namespace: m.ID.HubNamespace(), Name: hubv1alpha1.MemberName}
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			record := &hubv1alpha1.Member{}
			if err := w.HubClient.Get(ctx, key, record); err != nil {
				return err
			}
			record.Spec.Network, record.Spec.Publish, record.Spec.GatewayCIDRs = "", "", []hubv1alpha1.CIDR{"198.51.100.0/24"}
			if who == viaGateways {
				record.Spec.Network, record.Spec.Publish = "network-"+string(m.ID), hubv1alpha1.PublishAvailability
			}
			return w.HubClient.Update(ctx, record)
		})
		if err != nil {
			return fmt.Errorf("set the network of %s: %w", m.ID, err)
		}
	}
	return nil
}

// installGateways installs what an agent sees of gateways: their manifests, the address of their load balancer, and their pods' slice.
func installGateways(ctx context.Context, m *world.Member) error {
	if err := membership.InstallGateway(ctx, m.Cluster); err != nil {
		return err
	}
	service := &corev1.Service{}
	if err := m.Admin.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService}, service); err != nil {
		return err
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("198.51.100.%d", m.Number)}}
	if err := m.Admin.Status().Update(ctx, service); err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name + "-0", Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(service.Spec.Ports[0].Name), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8443))}},
	}
	for i := range world.GatewayPods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{world.Address(m.Number, world.FirstChange-1-i)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return m.Admin.Create(ctx, slice)
}
