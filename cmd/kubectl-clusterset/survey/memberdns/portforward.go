// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package memberdns

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// dnsPod is a pod of the cluster DNS.
type dnsPod struct {
	config         *rest.Config
	namespace, pod string
	port           int32
}

// String returns the pod's name.
func (f dnsPod) String() string { return "pod " + f.pod }

// Exchange forwards a port to the pod for the duration of one query.
func (f dnsPod) Exchange(ctx context.Context, question *dns.Msg) (*dns.Msg, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	forwarder, ready, err := f.forwarder(ctx)
	if err != nil {
		return nil, fmt.Errorf("reach pod %s: %w", f.pod, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return nil, fmt.Errorf("reach pod %s: %w", f.pod, err)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return nil, fmt.Errorf("reach pod %s: %w", f.pod, err)
	}
	reply, err := Server(net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local)))).Exchange(ctx, question)
	cancel()
	if err := <-ended; err != nil && reply == nil {
		return nil, fmt.Errorf("reach pod %s: %w", f.pod, err)
	}
	return reply, err
}

func (f dnsPod) forwarder(ctx context.Context) (*portforward.PortForwarder, <-chan struct{}, error) {
	set, err := kubernetes.NewForConfig(f.config)
	if err != nil {
		return nil, nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(f.config)
	if err != nil {
		return nil, nil, err
	}
	at := set.CoreV1().RESTClient().Get().Resource(string(corev1.ResourcePods)).Namespace(f.namespace).Name(f.pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", f.port)}, ctx.Done(), ready, io.Discard, io.Discard)
	return forwarder, ready, err
}
