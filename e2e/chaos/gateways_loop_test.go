// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// loop is exported by both clusters. In each, its endpoint is a gateway of that cluster, at the port that leads to loop of the other one.
const loop = "loop"

// maxLooped is the number of connections to these ports that clients may cause, with those that have just ended.
const maxLooped = 8

// leadInCircles leads both clusters to each other, connects clients one after the other, and returns an error if one becomes many.
func leadInCircles(ctx context.Context, n *networks) error {
	listening := map[string]int32{}
	for _, id := range []string{"a", "b"} {
		service := framework.Service(n.key(loop), framework.Port("lines", 80))
		if err := errors.Join(n.Members[id].Create(ctx, service), n.Members[id].Create(ctx, framework.Export(n.key(loop)))); err != nil {
			return err
		}
	}
	gateways := map[string]string{"a": host(1), "b": host(3)}
	for id, gateway := range gateways {
		port, err := n.listeningFor(ctx, id, gateway)
		if err != nil {
			return err
		}
		listening[id] = port
		service := &corev1.Service{}
		if err := n.Members[id].Get(ctx, n.key(loop), service); err != nil {
			return err
		}
		slice := framework.Slice(service, "by-hand", gateway)
		slice.Ports[0].Port = &port
		if err := n.Members[id].Create(ctx, slice); err != nil {
			return err
		}
	}
	for range 10 { // with the fault, the gateways wait a few times for pods with the addresses of gateways, and then no longer
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(gateways["a"], fmt.Sprint(listening["a"])))
		if err != nil && !errors.Is(err, syscall.ECONNRESET) { // the gateway may reset it at once
			return err
		}
		if conn != nil {
			_, _ = fmt.Fprintln(conn, loop)
		}
		pause(ctx, time.Second)
		if conn != nil {
			conn.Close()
		}
		if got, err := connectionsTo(ctx, listening); err != nil || got > maxLooped {
			return errors.Join(err, fmt.Errorf("clients that end after a second have led to %d connections: streams lead in circles", got))
		}
	}
	return nil
}

// listeningFor returns the port at which a gateway of a cluster listens for loop of the other one.
func (n *networks) listeningFor(ctx context.Context, id, gateway string) (port int32, err error) {
	err = soon(ctx, func(ctx context.Context) error {
		slices, err := n.Members[id].Mirrored(ctx, n.key(loop))
		if err != nil {
			return err
		}
		for _, slice := range slices {
			if listen, err := clusterset.ParseListen(slice.Annotations[clusterset.AnnotationGatewayPorts]); err == nil && listen[80] != 0 {
				port = listen[80]
				conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(gateway, fmt.Sprint(port)))
				if err == nil {
					conn.Close()
				}
				return err
			}
		}
		return fmt.Errorf("%s has no listening port for %s: %v", id, loop, slices)
	})
	return port, err
}

// connectionsTo returns how many connections to the listening ports are established.
func connectionsTo(ctx context.Context, ports map[string]int32) (int, error) {
	var filter []string
	for _, port := range ports {
		filter = append(filter, fmt.Sprintf("sport = :%d", port))
	}
	out, err := exec.CommandContext(ctx, "ss", "-Htn", "state", "established", "( "+strings.Join(filter, " or ")+" )").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("ss: %w: %s", err, out)
	}
	return strings.Count(string(out), "\n"), nil
}

// breakCircles deletes the services and their exports.
func breakCircles(ctx context.Context, n *networks) (err error) {
	for _, id := range []string{"a", "b"} {
		m, k := n.Members[id], n.key(loop)
		err = errors.Join(err, m.Delete(ctx, framework.Export(k)), m.Delete(ctx, framework.Service(k)),
			m.DeleteAllOf(ctx, &discoveryv1.EndpointSlice{}, client.InNamespace(k.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: loop}))
	}
	return errors.Join(err, n.vanished(ctx, loop))
}
