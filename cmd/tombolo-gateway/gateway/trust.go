// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// trust returns whom the gateway trusts now. It is called only after the certificate was read.
func (g *gateway) trust() identity.Trust {
	return identity.Trust{
		Self: identity.NameOf(g.leaf.Load()), Leaf: g.leaf.Load, Clock: clock.RealClock{},
		Authorities: func(id clusterset.ClusterID) *x509.CertPool { return (*g.remotes.Load())[id].authorities },
		Verified:    g.verified,
	}
}

// server returns the configuration for connections of other gateways. Each verification is by whom the gateway trusts then.
func (g *gateway) server() *tls.Config {
	config := g.trust().Server()
	config.VerifyConnection = func(state tls.ConnectionState) error { return g.trust().VerifyClient(state) }
	return config
}

// readRemotes reads whom the gateway trusts.
func (g *gateway) readRemotes(ctx context.Context) error {
	var remotes gatewayv1alpha1.RemoteGatewayList
	if err := g.cache.List(ctx, &remotes, client.InNamespace(g.options.Namespace)); err != nil {
		return fmt.Errorf("list RemoteGateways: %w", err)
	}
	return g.trustOnly(remotes.Items)
}

// trustOnly replaces the remote gateways, and closes the connections of gateways that are no longer trusted.
func (g *gateway) trustOnly(remotes []gatewayv1alpha1.RemoteGateway) error {
	before := *g.remotes.Load()
	after, err := remotesOf(remotes, before)
	g.remotes.Store(&after)
	if lessTrusted(before, after) {
		g.importer.Pool.CloseUntrusted()
		g.exporter.CloseUntrusted()
	}
	return err
}

// readLeaf reads the certificate of this cluster's gateways.
func (g *gateway) readLeaf(ctx context.Context) error {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: g.options.Namespace, Name: clusterset.GatewayCertificateSecret}
	if err := g.cache.Get(ctx, key, &secret); err != nil {
		return fmt.Errorf("the certificate of this cluster's gateways, which the agent creates: %w", err)
	}
	leaf, err := identity.DecodeLeaf(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("the certificate in Secret %s: %w: delete it, so that the agent creates it again", key, err)
	}
	g.leaf.Store(leaf)
	return nil
}
