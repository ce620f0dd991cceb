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

// gatewayPods is how many gateways a member has. A mirrored slice lists all of them for a source with several endpoints.
const gatewayPods = 2

// overGateways measures the control plane of imports over gateways, beside that of flat imports of the same services: services per second,
// writes on the hub for changes of endpoints that leave the availability as it is, and the time from the end of the last endpoint
// until the importer has withdrawn the source. There are no gateways: an agent uses those that no probe reaches if it reaches none.
func overGateways(ctx context.Context, b *bench, w *world) error {
	services, err := b.createServices(ctx, w.members[0], b.size)
	if err != nil {
		return err
	}
	for _, m := range w.members {
		if err := m.installGateways(ctx); err != nil {
			return fmt.Errorf("gateways of %s: %w", m.id, err)
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
	return w.setNetworks(ctx, flat)
}

func (b *bench) overGatewaysOnce(ctx context.Context, w *world, services []*testService, who string) (err error) {
	if err := w.setNetworks(ctx, who); err != nil {
		return err
	}
	for _, m := range w.members {
		m.agent = nil // another process may have taken the ports of the last one
	}
	stop, err := b.startAgents(ctx, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(), w.cleanUp(ctx)) }()
	rate, err := exportAll(ctx, w, services)
	if err != nil {
		return err
	}
	b.Add(gatewayImports, who, "services/s", rate)
	sources, err := readSlices(ctx, w.members[0], services[:min(withdrawals, len(services))])
	if err != nil {
		return err
	}
	if err := b.churn(ctx, w, sources, who); err != nil {
		return err
	}
	return b.withdrawals(ctx, w, sources, who)
}

// churn replaces endpoints, and counts the writes on the hub.
func (b *bench) churn(ctx context.Context, w *world, sources *sourceSlices, who string) error {
	before, err := settledRequests(ctx, w)
	if err != nil {
		return err
	}
	changes := min(churnChanges, 10*b.size)
	for i := range changes {
		if err := sources.change(ctx, i); err != nil {
			return err
		}
	}
	after, err := settledRequests(ctx, w)
	if err != nil {
		return err
	}
	caused := after.since(before)
	b.log("%d changes of endpoints caused: %s", changes, caused)
	b.Add(gatewayChurn, who, "hub-writes", float64(caused.writes(w.hub.Name)))
	return nil
}

// withdrawals ends all endpoints of one service after the other, and measures the time until the importer's slices have none. At the end the
// endpoints are as before.
func (b *bench) withdrawals(ctx context.Context, w *world, sources *sourceSlices, who string) error {
	o, stop, err := observe(ctx, w.members[1])
	defer stop()
	if err != nil {
		return err
	}
	if err := b.measureEach(ctx, gatewayWithdrawal, who, len(sources.slices), func(i int) (float64, error) {
		key := goneKey(sources.slices[i].Labels[discoveryv1.LabelServiceName])
		return o.latencyOf(ctx, key, key, func() error { return sources.setReady(ctx, i, false) })
	}); err != nil {
		return err
	}
	for i := range sources.slices {
		err = errors.Join(err, sources.setReady(ctx, i, true))
	}
	return err
}

func (c *sourceSlices) setReady(ctx context.Context, i int, ready bool) error {
	for e := range c.slices[i].Endpoints {
		c.slices[i].Endpoints[e].Conditions = discoveryv1.EndpointConditions{Ready: new(ready), Serving: new(ready), Terminating: new(false)}
	}
	return c.m.admin.Update(ctx, c.slices[i])
}

// setNetworks moves the members into networks of their own, or into one.
func (w *world) setNetworks(ctx context.Context, who string) error {
	for _, m := range w.members {
		key := client.ObjectKey{Namespace: m.id.HubNamespace(), Name: hubv1alpha1.MemberName}
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			record := &hubv1alpha1.Member{}
			if err := w.hubClient.Get(ctx, key, record); err != nil {
				return err
			}
			record.Spec.Network, record.Spec.Publish, record.Spec.GatewayCIDRs = "", "", []hubv1alpha1.CIDR{"198.51.100.0/24"}
			if who == viaGateways {
				record.Spec.Network, record.Spec.Publish = "network-"+string(m.id), hubv1alpha1.PublishAvailability
			}
			return w.hubClient.Update(ctx, record)
		})
		if err != nil {
			return fmt.Errorf("set the network of %s: %w", m.id, err)
		}
	}
	return nil
}

// installGateways installs what an agent sees of gateways: their manifests, the address of their load balancer, and their pods' slice.
func (m *member) installGateways(ctx context.Context) error {
	if err := membership.InstallGateway(ctx, m.cluster); err != nil {
		return err
	}
	service := &corev1.Service{}
	if err := m.admin.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService}, service); err != nil {
		return err
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: fmt.Sprintf("198.51.100.%d", m.number)}}
	if err := m.admin.Status().Update(ctx, service); err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name + "-0", Labels: map[string]string{discoveryv1.LabelServiceName: service.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(service.Spec.Ports[0].Name), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8443))}},
	}
	for i := range gatewayPods {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address(m.number, firstChange-1-i)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return m.admin.Create(ctx, slice)
}
