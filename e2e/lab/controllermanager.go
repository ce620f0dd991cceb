// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"strings"
)

// controllerManager runs the controllers under the service accounts that they have in a real cluster, so policies that
// name these can be tested. It is ready when the default service account of namespace default exists, which one of the
// controllers makes; after a restart that shows no more than that the process has started.
func (c *Cluster) controllerManager(kubeconfig string) *Process {
	ready := func(ctx context.Context) error {
		url := c.address() + "/api/v1/namespaces/default/serviceaccounts/default"
		return getOK(ctx, c.credentials.transport(), url, c.credentials.adminToken)
	}
	return c.process("kube-controller-manager", ready, c.binaries.controllerManager,
		"--kubeconfig="+kubeconfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.credentials.serviceAccountKeyFile,
		"--root-ca-file="+c.credentials.certificateFile,
		"--controllers="+strings.Join(c.options.Controllers, ","),
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--profiling=false",
	)
}
