// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// portAttempts bounds the search for a port that no other process takes before CoreDNS does.
const portAttempts = 5

// StartDNS runs CoreDNS beside a cluster's control plane, with a Corefile for a free port of 127.0.0.1, and returns its address as
// soon as ready returns nil for it.
func StartDNS(
	ctx context.Context, cluster *lab.Cluster, program string, corefile func(port int) string, ready func(ctx context.Context, address string) error,
) (string, error) {
	address, file := "", filepath.Join(filepath.Dir(cluster.Kubeconfig()), "Corefile")
	p := cluster.Program(program, func(ctx context.Context) error { return ready(ctx, address) }, "-conf", file)
	for range portAttempts {
		port, err := lab.FreePort()
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(file, []byte(corefile(port)), 0o600); err != nil {
			return "", err
		}
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if err := p.Start(ctx); err == nil || ctx.Err() != nil || lab.IsPortFree(port) {
			return address, err
		}
	}
	return "", errors.New("no port for CoreDNS: others take each that is found free")
}

// Corefile returns that of the DNS's pods as it is on this machine: with another port, the cluster's kubeconfig, and metrics at an
// address.
func Corefile(ofPods string, port int, kubeconfig, metrics string) string {
	return strings.NewReplacer(
		":1053", ":"+strconv.Itoa(port), "\n    clusterset\n", "\n    bind 127.0.0.1\n    clusterset {\n        kubeconfig "+kubeconfig+"\n    }\n",
		"health :8080", "health 127.0.0.1:0", "ready :8181", "ready 127.0.0.1:0", "prometheus :9153", "prometheus "+metrics,
	).Replace(ofPods)
}
