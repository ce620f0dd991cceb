// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/manifests"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// certificatesAreRenewed: under load and with an open stream, the gateways of both clusters get new certificates, and then those of one
// cluster certificates of a new authority. No request fails and the stream continues. Connections that are made when the old authority has
// ended work as well. The stored times of the authorities are changed, because the overlap takes days.
func certificatesAreRenewed(s *scene) {
	a, b := s.in("a"), s.in("b")
	requests := s.loadAcross()
	open := b.keepOpen("web")
	for _, p := range s.members() {
		p.renewCertificate()
	}
	added, err := identity.NewAuthority("a", time.Now())
	lab.Must(s, err)
	a.changeAuthorities(func(all identity.Rotation) identity.Rotation { return append(all, identity.Stage{Authority: added}) })
	b.awaitAuthorities("a", 2)
	newest := func(age time.Duration) func(identity.Rotation) identity.Rotation {
		return func(all identity.Rotation) identity.Rotation {
			all[len(all)-1].Published = time.Now().Add(-age)
			return all
		}
	}
	a.changeAuthorities(newest(25 * time.Hour))
	if leaf := a.renewCertificate(); leaf.CheckSignatureFrom(added.Certificate) != nil {
		s.Errorf("the new authority has not signed the new certificate, which is of %s", leaf.Issuer)
	}
	total := requests.endClean()
	s.Logf("%d requests", total.Requests)
	open.endUnbroken("a")
	a.changeAuthorities(newest(25*time.Hour + identity.LeafLifetime))
	b.awaitAuthorities("a", 1)
	b.awaitAnyAnswer("tcp", s.name("web"), 80)
	b.expectAnswers("tcp", s.name("web"), 80, "a")
}

// renewCertificate deletes the certificate of the gateways, waits until all of them have the next one, and returns it.
func (p *place) renewCertificate() *x509.Certificate {
	p.Helper()
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = manifests.AgentNamespace, clusterset.GatewayCertificateSecret
	lab.Must(p, p.client.Delete(p.Context(), secret))
	p.reconcileGateways()
	var leaf *x509.Certificate
	p.eventually("a certificate of the gateways of cluster "+p.cluster.Name, func(ctx context.Context) error {
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		decoded, err := identity.DecodeLeaf(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if err == nil {
			leaf = decoded.Leaf
		}
		return err
	})
	metric := "tombolo_gateway_certificate_expiry_timestamp_seconds " + strconv.FormatFloat(float64(leaf.NotAfter.Unix()), 'g', -1, 64)
	for _, pod := range p.podsOf(manifests.AgentNamespace, manifests.GatewayDeployment) {
		p.eventually("the new certificate in "+pod.Name+" of cluster "+p.cluster.Name, func(ctx context.Context) error {
			var out bytes.Buffer
			err := p.exec(ctx, clientPod, nil, &out, "wget", "-qO-", "http://"+net.JoinHostPort(pod.Status.PodIP, "8080")+"/metrics")
			if err == nil && !strings.Contains(out.String(), metric) {
				err = fmt.Errorf("no %s", metric)
			}
			return err
		})
	}
	return leaf
}

// changeAuthorities changes the authorities that sign the certificates of the gateways.
func (p *place) changeAuthorities(change func(identity.Rotation) identity.Rotation) {
	p.Helper()
	p.eventually("the authorities of cluster "+p.cluster.Name, func(ctx context.Context) error {
		var secret corev1.Secret
		if err := p.client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayAuthoritySecret}, &secret); err != nil {
			return err
		}
		all, err := identity.DecodeRotation(secret.Data[clusterset.GatewayAuthorityKey])
		if err != nil {
			return err
		}
		if secret.Data[clusterset.GatewayAuthorityKey], err = identity.EncodeRotation(change(all)); err != nil {
			return err
		}
		return p.client.Update(ctx, &secret)
	})
	p.reconcileGateways()
}

// reconcileGateways has the agent reconcile the Secrets of the gateways, which it does not watch: it does so by itself when they are due.
func (p *place) reconcileGateways() {
	p.Helper()
	_, err := p.Kubectl(p.Context(), "", "--context", p.cluster.Name, "-n", manifests.AgentNamespace, "annotate", "--overwrite",
		"service", clusterset.GatewayService, "e2e.tombolo-mcs.io/reconciled-at="+strconv.FormatInt(time.Now().UnixNano(), 10))
	lab.Must(p, err)
}

// awaitAuthorities waits until the gateways of this cluster accept so many authorities of another.
func (p *place) awaitAuthorities(of string, count int) {
	p.Helper()
	p.eventually(fmt.Sprintf("%d authorities of cluster %s in cluster %s", count, of, p.cluster.Name), func(ctx context.Context) error {
		var remote gatewayv1alpha1.RemoteGateway
		if err := p.client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: of}, &remote); err != nil {
			return err
		}
		all, err := identity.DecodeBundle(remote.Spec.Bundle)
		if err == nil && len(all) != count {
			err = fmt.Errorf("there are %d", len(all))
		}
		return err
	})
}
