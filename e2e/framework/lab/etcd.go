// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
)

// advertised is an address that etcd insists on and a single member never dials.
const advertised = "http://127.0.0.1:1"

// dataFolder is relative to the cluster's folder: see watchdogScript.
const dataFolder = "etcd"

// etcd listens on Unix sockets only, so it takes no ports.
func (c *Cluster) etcd() *Process {
	client, peer := c.socket("client"), c.socket("peer")
	ready := func(ctx context.Context) error {
		return getOK(ctx, etcdTransport(client), "http://etcd/readyz", "")
	}
	return c.process("etcd", ready, c.binaries.etcd,
		"--name=lab",
		"--data-dir="+dataFolder,
		"--listen-client-urls=unix://"+client,
		"--advertise-client-urls="+advertised,
		"--listen-peer-urls=unix://"+peer,
		"--initial-advertise-peer-urls="+advertised,
		"--initial-cluster=lab="+advertised,
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
}

// socket returns the path of a Unix socket. It lies in the lab's folder, not the cluster's, to be short.
func (c *Cluster) socket(purpose string) string {
	return filepath.Join(c.labFolder, strconv.Itoa(c.index)+"."+purpose)
}

func etcdTransport(socket string) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}
}
