// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// startGateway starts a gateway of the member, at an address of this machine, and returns when it serves.
func (m *member) startGateway(ctx context.Context, host string, port int) error {
	path, err := findProgram("tombolo-gateway")
	if err != nil {
		return err
	}
	probes, err := lab.FreePort()
	if err != nil {
		return err
	}
	// Kubernetes would write this slice for the pod of a gateway.
	ready := discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService + "-1",
			Labels: map[string]string{discoveryv1.LabelServiceName: clusterset.GatewayService},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{host}, Conditions: ready}},
	}
	if err := m.create(ctx, slice); err != nil {
		return err
	}
	isReady := func(ctx context.Context) error {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(probes)))
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	return m.Program(path, isReady, "--kubeconfig="+m.Kubeconfig(), "--bind-address="+net.JoinHostPort(host, strconv.Itoa(port)),
		"--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:"+strconv.Itoa(probes)).Start(ctx)
}

// serveHello answers each connection to an address of this machine with a line, until ctx ends, and returns the port.
func serveHello(ctx context.Context, host, line string) (int32, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return 0, err
	}
	context.AfterFunc(ctx, func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, line+"\n")
			conn.Close()
		}
	}()
	return int32(listener.Addr().(*net.TCPAddr).Port), nil
}

// acrossNetworks: cluster-c is in another network, and a client of cluster-a reaches its service through gateways.
func (d *demo) acrossNetworks(ctx context.Context) error {
	d.printf("\n6. cluster-c is in another network, and its pods may have the same addresses: gateways\n")
	if d.host == "" {
		d.linef("This machine has no address besides loopback, and EndpointSlices may not contain that: left out.")
		return nil
	}
	const hello = "hello from a pod of cluster-c"
	port, err := serveHello(ctx, d.host, hello)
	if err != nil {
		return err
	}
	far := workload{name: "far", ports: []corev1.ServicePort{servicePort("hello", 80, port)}, pods: []pod{{ipv4: d.host}}}
	service := far.service()
	service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	if err := d.c.create(ctx, service, far.slice("ipv4", func(p pod) string { return p.ipv4 })); err != nil {
		return err
	}
	container := corev1.Container{Name: "far", Image: "far", Ports: []corev1.ContainerPort{{ContainerPort: port}}}
	if err := d.c.createPod(ctx, "far", d.host, corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{container}}); err != nil {
		return err
	}
	if err := d.a.createPod(ctx, "client", clientHost, corev1.PodSpec{Containers: []corev1.Container{{Name: "client", Image: "client"}}}); err != nil {
		return err
	}
	d.step = time.Now()
	if err := d.c.create(ctx, serviceExport("far")); err != nil {
		return err
	}
	address, err := d.listensFor(ctx)
	if err != nil {
		return err
	}
	d.afterf("cluster-a has ServiceImport far; kube-proxy would send its connections to cluster-a's gateway, at %s", address)
	if err := d.await(ctx, hello, func(ctx context.Context) error { return answers(ctx, address, hello) }); err != nil {
		return err
	}
	d.afterf("a connection there is answered through both gateways, by mutual TLS: %q", hello)
	records := &hubv1alpha1.PublishedEndpointsList{}
	if err := d.hubClient.List(ctx, records, client.InNamespace(clusterset.ClusterID(d.c.Name).HubNamespace())); err != nil {
		return err
	}
	if len(records.Items) > 0 {
		return fmt.Errorf("%w: cluster-c has published addresses: %v", errWrong, records.Items[0].Spec)
	}
	d.linef("The hub has no address of a pod of cluster-c.")
	return nil
}

// clientHost is the address from which the demo connects. That of the machine is the gateway's, which is no client.
const clientHost = "127.0.0.2"

// createPod creates a pod that runs and has an address of this machine: a gateway waits for the pod of a client, and connects to pods only.
func (m *member) createPod(ctx context.Context, name, host string, spec corev1.PodSpec) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	spec.ServiceAccountName, spec.AutomountServiceAccountToken = name, new(false)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	if err := m.create(ctx, account, pod); err != nil {
		return err
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, host, []corev1.PodIP{{IP: host}}
	return m.client.Status().Update(ctx, pod)
}

// listensFor returns where cluster-a's gateway listens for far.
func (d *demo) listensFor(ctx context.Context) (address string, err error) {
	err = d.await(ctx, "an endpoint of cluster-a's gateway in the slices of far", func(ctx context.Context) error {
		list := &discoveryv1.EndpointSliceList{}
		if err := d.a.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterset.LabelGateway: "true"}); err != nil {
			return err
		}
		for _, slice := range list.Items {
			if len(slice.Endpoints) > 0 && len(slice.Ports) > 0 {
				address = net.JoinHostPort(slice.Endpoints[0].Addresses[0], strconv.Itoa(int(*slice.Ports[0].Port)))
				return nil
			}
		}
		return errors.New("none")
	})
	return address, err
}

// answers returns nil if a connection from clientHost is answered by a line.
func answers(ctx context.Context, address, line string) error {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientHost)}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if got := strings.TrimSpace(answer); err == nil && got != line {
		err = errors.New(got)
	}
	return err
}

// installGateway prepares a member for gateways: its agent gets the rights of a released one, because only it may write the slices of
// gateways. It returns the arguments of the agent.
func (m *member) installGateway(ctx context.Context, address string) ([]string, error) {
	config, err := membership.InstallAgent(ctx, m.Cluster)
	if err != nil {
		return nil, err
	}
	if err := membership.InstallGateway(ctx, m.Cluster); err != nil {
		return nil, err
	}
	kubeconfig := m.folder() + "/agent.kubeconfig"
	return []string{"--kubeconfig=" + kubeconfig, "--namespace=" + manifests.AgentNamespace, "--gateway-address=" + address}, lab.WriteKubeconfig(kubeconfig, config)
}

// startWithGateway is start for a member with a gateway.
func (m *member) startWithGateway(ctx context.Context, hub client.Client, plugin, host string) error {
	port, err := lab.FreePort()
	if err != nil {
		return err
	}
	args, err := m.installGateway(ctx, net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return errors.Join(m.start(ctx, hub, plugin, args...), m.startGateway(ctx, host, port))
}
