// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/pires/go-proxyproto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// reads answers a connection with what its PROXY protocol header says, or with its first line if it has none.
func reads(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	header, err := proxyproto.Read(reader)
	if err != nil {
		line, _ := reader.ReadString('\n')
		fmt.Fprintf(conn, "without: %s", line)
		return
	}
	tlvs, _ := header.TLVs()
	values := map[proxyproto.PP2Type]string{}
	for _, v := range tlvs {
		values[v.Type] = string(v.Value)
	}
	source, destination, _ := header.TCPAddrs()
	fmt.Fprintf(conn, "%s of %s: %s/%s to port %d\n", source.IP, values[0xE0], values[0xE1], values[0xE2], destination.Port)
}

// testProxied: a backend of b knows the client of a by the header that the annotation asks for, and gets none without the annotation.
//
// spec: G14
func testProxied(t *testing.T, e *env, namespace string) {
	a, b := e.Members["a"], e.Members["b"]
	k := world.Key{Namespace: namespace, Name: "proxied"}
	port := lab.ServeTCP(t, net.JoinHostPort(e.host, "0"), reads).Port
	e.backendPod(t, "b", namespace, port)
	service := world.Service(k, corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt(port)})
	b.ExportService(t, service, world.Slice(service, "v4", e.host))
	pod := e.clientPod(t, "a", world.Key{Namespace: namespace, Name: "proxied-client"}, "frontend")
	answers := func(want string) {
		t.Helper()
		world.Eventually(t, func(ctx context.Context) error {
			address, err := e.listening(ctx, "a", k)
			if err != nil {
				return err
			}
			got, err := ask(address)
			if err == nil && got != want {
				err = fmt.Errorf("the answer is %q, want %q", got, want)
			}
			return err
		})
	}
	answers("without: hello")
	export, proxied := world.Export(k), fmt.Sprintf("%s of a: %s/frontend to port 80", clientHost, namespace)
	for _, test := range []struct {
		annotation string
		status     metav1.ConditionStatus
		reason     string
		answer     string
	}{
		{"http", metav1.ConditionTrue, conditions.ReasonHeaderSent, proxied},
		{"81", metav1.ConditionFalse, conditions.ReasonPortsUnknown, "without: hello"},
		{"81,80", metav1.ConditionFalse, conditions.ReasonPortsUnknown, proxied},
	} {
		world.Update(t, b, k, export, func() { export.Annotations = map[string]string{clusterset.AnnotationProxyProtocol: test.annotation} })
		b.Condition(t, k, conditions.TypeProxyProtocol, test.status, test.reason)
		answers(test.answer)
	}
	world.Update(t, b, k, export, func() { export.Annotations = nil })
	answers("without: hello")
	lab.Must(t, a.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	lab.Must(t, b.Delete(t.Context(), export))
}
