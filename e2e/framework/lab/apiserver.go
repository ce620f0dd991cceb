// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
)

// auditPolicy records one line per request.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
`

// auditLog is relative to the cluster's folder: see watchdogScript.
const auditLog = "audit.log"

// AuditLog returns the path of the audit log: one JSON object per line and request. It exists if the options ask for it, and
// disappears with the lab.
func (c *Cluster) AuditLog() string {
	return filepath.Join(c.folder, auditLog)
}

// apiServer authenticates by static tokens and tokens of service accounts, and authorizes by RBAC and, where there is a
// node, by the authorizer of nodes.
func (c *Cluster) apiServer() *Process {
	address := c.address()
	ready := func(ctx context.Context) error {
		for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} { // /readyz does not wait for the namespace
			if err := getOK(ctx, c.credentials.transport(), address+path, c.credentials.adminToken); err != nil {
				return err
			}
		}
		return nil
	}
	cidrs := make([]string, 0, 2)
	for _, cidr := range c.ServiceCIDRs {
		cidrs = append(cidrs, cidr.String())
	}
	argv := []string{
		c.binaries.apiServer,
		"--cert-dir=.",
		"--tls-cert-file=" + c.credentials.certificateFile,
		"--tls-private-key-file=" + c.credentials.keyFile,
		"--token-auth-file=" + c.credentials.tokenFile,
		"--authorization-mode=" + c.authorizers(),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.credentials.serviceAccountKeyFile,
		"--service-account-signing-key-file=" + c.credentials.serviceAccountKeyFile,
		"--service-cluster-ip-range=" + strings.Join(cidrs, ","),
		"--etcd-servers=unix://" + c.socket("client"),
		"--allow-privileged=true",
		"--profiling=false",
		"--shutdown-watch-termination-grace-period=1s", // else a stop takes a minute while anyone watches
	}
	argv = append(argv, c.listenArgs()...)
	if c.options.Audit {
		argv = append(argv, "--audit-policy-file="+c.credentials.auditPolicyFile, "--audit-log-path="+auditLog)
	}
	return c.process("kube-apiserver", ready, append(argv, c.options.APIServerArgs...)...)
}

// listenArgs returns the arguments that say where the API server is. On the loopback interface it does not keep up the
// endpoints of Service default/kubernetes: Kubernetes refuses loopback addresses there.
func (c *Cluster) listenArgs() []string {
	primary6 := c.ServiceCIDRs[0].Addr().Is6() // the advertised address must be of the primary family
	if c.machine != nil {
		advertise := c.machine.addresses[0]
		if primary6 {
			advertise = c.machine.addresses[1]
		}
		return []string{
			"--bind-address=::",
			"--secure-port=" + machinePort,
			"--advertise-address=" + advertise.String(),
			"--kubelet-preferred-address-types=InternalIP", // else it looks for the node's name in DNS
		}
	}
	advertise := "127.0.0.1"
	if primary6 {
		advertise = "::1"
	}
	return []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(c.port.number),
		"--advertise-address=" + advertise,
		"--endpoint-reconciler-type=none",
	}
}

func (c *Cluster) authorizers() string {
	if c.Node != nil {
		return "Node,RBAC"
	}
	return "RBAC"
}
