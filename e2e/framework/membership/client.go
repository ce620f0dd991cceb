// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// Scheme returns a scheme with every kind that the hub and the members have: those of the agent, and those of the hub.
func Scheme() (*runtime.Scheme, error) {
	scheme, err := agent.Scheme()
	return scheme, errors.Join(err, hubv1alpha1.AddToScheme(scheme))
}

// Client returns a client with the rights of a cluster's administrator and the kinds of Scheme.
func Client(t testing.TB, cluster *lab.Cluster) client.WithWatch {
	t.Helper()
	scheme, err := Scheme()
	lab.Must(t, err)
	c, err := cluster.Client(scheme)
	lab.Must(t, err)
	return c
}
