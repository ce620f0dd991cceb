// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RestartControllers starts the controllers, anew where they run, and returns when they work: one that has not begun to ends where
// the API server is away in that moment.
func (c *Cluster) RestartControllers(ctx context.Context) error {
	if err := c.ControllerManager.Stop(ctx); err != nil {
		return fmt.Errorf("restarting the controllers of cluster %s: %w", c.Name, err)
	}
	return c.startControllers(ctx)
}

// startControllers returns when the controllers work, which is when the objects that they create exist.
func (c *Cluster) startControllers(ctx context.Context) error {
	cl, err := c.Client(nil)
	if err != nil {
		return err
	}
	made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}}
	for range startAttempts {
		if err := client.IgnoreNotFound(cl.Delete(ctx, made)); err != nil {
			return fmt.Errorf("starting the controllers of cluster %s: %w", c.Name, err)
		}
		if err = c.ControllerManager.Start(ctx); !errors.Is(err, errExited) {
			return err
		}
	}
	return err
}

// controllerManager runs the controllers under the service accounts that they have in a real cluster, so policies that
// name these can be tested. It is ready when the default service account of namespace default exists, which one of the
// controllers makes.
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
