// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/access"
)

// testDenied: an export of b that is granted to one account denies a client of a that is no pod.
func testDenied(t *testing.T, e *env, k world.Key) {
	e.export(t, "b", k)
	e.answers(t, "a", "b", k)
	grant := grantTo(k, "nobody")
	lab.Must(t, e.Members["b"].Create(t.Context(), grant))
	e.denied(t, k)
	e.Members["b"].Event(t, client.ObjectKeyFromObject(grant), "StreamDenied", access.NotGranted)
}

// testDeniedAgain: if a client is denied again after a minute, the gateway patches its Event.
func testDeniedAgain(t *testing.T, e *env, k world.Key) {
	lab.Must(t, e.Members["a"].DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(k.Namespace), client.GracePeriodSeconds(0)))
	world.Eventually(t, func(context.Context) error {
		e.denied(t, k)
		problems, err := e.misfits()
		if err == nil && slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, "never used: patch events") }) {
			err = errors.New("the Event is not patched")
		}
		return err
	})
}

// denied waits until no client of a reaches a service of b.
func (e *env) denied(t *testing.T, k world.Key) {
	t.Helper()
	address, err := e.listening(t.Context(), "a", k)
	lab.Must(t, err)
	denied(t, address)
}

// misfits returns what does not fit between the rights of the gateways of a and b together and the audit logs.
func (e *env) misfits() ([]string, error) {
	objects, err := manifests.Render("gateway")
	if err != nil {
		return nil, err
	}
	account := world.Key{Namespace: manifests.AgentNamespace, Name: "tombolo-gateway"}
	return audit.Misfits(account, objects, e.Members["a"].Cluster.AuditLog(), e.Members["b"].Cluster.AuditLog())
}

// testRights: gateways use each of the rights that the manifests grant, and none of their requests is refused.
func testRights(t *testing.T, e *env, stops ...func()) {
	for _, stop := range stops {
		stop()
	}
	world.Eventually(t, func(context.Context) error { // a watch is logged when it has ended
		problems, err := e.misfits()
		if err == nil && len(problems) > 0 {
			err = errors.New(strings.Join(problems, "\n"))
		}
		return err
	})
}
