// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// join says where other members may reach the gateways, and what is missing. spec: G4, W5
func TestCheckGateway(t *testing.T) {
	nodes := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	balanced := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 443}}}}
	balanced.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.51.100.1"}, {Hostname: "lb.example.com"}}
	without := hubv1alpha1.MemberSpec{}
	const noGateway = "note  clusters of other networks are reached through gateways, and this one has none: pass --gateway\n"
	for name, test := range map[string]struct {
		j    joinCommand
		want string
	}{
		"no other network":           {joinCommand{others: []string{""}}, ""},
		"another network":            {joinCommand{others: []string{"cloud"}}, noGateway},
		"only availability":          {joinCommand{joinOptions: joinOptions{networkOptions: networkOptions{publish: "Availability"}}}, noGateway},
		"an address without gateway": {joinCommand{joinOptions: joinOptions{networkOptions: networkOptions{gatewayOptions: gatewayOptions{hosts: []string{"gw"}}}}}, "FAIL  --gateway-address is the address of gateways: pass --gateway too\n"},
		"no address yet": {
			joinCommand{joinOptions: joinOptions{runtimeOptions: runtimeOptions{gateway: true}}},
			"note  the Service of the gateways has no address yet, so this cluster can import and not export: run this again when \"kubectl -n tombolo-system get service tombolo-gateway\" shows one, or pass --gateway-address\n",
		},
		"load balancer": {
			joinCommand{joinOptions: joinOptions{runtimeOptions: runtimeOptions{gateway: true, gatewayService: balanced}}},
			"ok    gateways may be published at 198.51.100.1/32, lb.example.com\n",
		},
		"nodes": {
			joinCommand{own: ranges{nodes: nodes}, joinOptions: joinOptions{runtimeOptions: runtimeOptions{gateway: true, gatewayType: corev1.ServiceTypeNodePort}}},
			"ok    gateways may be published at 192.0.2.1/32\n",
		},
		"too many": {
			joinCommand{
				own:         ranges{nodes: make([]netip.Prefix, maxGatewayRanges+1)},
				joinOptions: joinOptions{runtimeOptions: runtimeOptions{gateway: true, gatewayType: corev1.ServiceTypeNodePort}},
			},
			"FAIL  the gateways have 17 addresses and 0 names, and a member may have 16 of each: pass --gateway-cidrs with the networks that the addresses are in\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			test.j.r, test.j.admitted = &report{out: &out}, &hubv1alpha1.Member{Spec: without}
			check.Must(t, test.j.checkGateway(t.Context()))
			check.Equal(t, "output", test.want, strings.TrimPrefix(out.String(), "  "))
		})
	}
}

// The type of the gateways' Service and the argument with their addresses stay unless a flag sets them.
func TestGatewaySettingsAreKept(t *testing.T) {
	agent := &appsv1.Deployment{}
	agent.Annotations = map[string]string{annotationArguments: `["--gateway-address=gw.example.com"]`}
	agent.Spec.Template.Spec.Containers = []corev1.Container{{Name: agentContainer, Args: []string{"--gateway-address=gw.example.com"}}}
	for name, test := range map[string]struct {
		flags   gatewayOptions
		gateway bool
		want    []string
	}{
		"kept":    {gatewayOptions{}, true, []string{"--gateway-address=gw.example.com"}},
		"changed": {gatewayOptions{gatewayAddresses: []string{"198.51.100.1", "gw"}}, true, []string{"--gateway-address=198.51.100.1,gw"}},
		"removed": {gatewayOptions{}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			j := &joinCommand{hasServiceCIDRs: true}
			j.gatewayOptions, j.gateway = test.flags, test.gateway
			j.running = map[string]*appsv1.Deployment{manifests.AgentDeployment: agent}
			j.gatewayService = &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
			j.setDefaults()
			check.Equal(t, "arguments", test.want, j.agentArgs())
			check.Equal(t, "type", corev1.ServiceTypeNodePort, j.gatewayType)
		})
	}
}
