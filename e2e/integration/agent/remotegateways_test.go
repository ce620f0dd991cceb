// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/manifests"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func inAgents(name string) key { return key{Namespace: manifests.AgentNamespace, Name: name} }

func publishedKey(id string) key {
	return key{Namespace: clusterset.ClusterID(id).HubNamespace(), Name: hubv1alpha1.GatewayName}
}

// knows waits until the gateways of a member know those of another at these hosts; without hosts, until they do not know them.
func (m *member) knows(t *testing.T, id string, hosts ...string) *gatewayv1alpha1.RemoteGateway {
	t.Helper()
	remote := &gatewayv1alpha1.RemoteGateway{}
	world.Eventually(t, func(ctx context.Context) error {
		*remote = gatewayv1alpha1.RemoteGateway{}
		err := m.Get(ctx, inAgents(id), remote)
		if len(hosts) == 0 {
			return world.Absent(err)
		}
		var found []string
		for _, address := range remote.Spec.Addresses {
			found = append(found, address.Host)
		}
		if err == nil && strings.Join(found, " ") != strings.Join(hosts, " ") {
			err = fmt.Errorf("%s knows the gateways of %s at %v, want %v", m.ID, id, found, hosts)
		}
		return err
	})
	return remote
}

// rotation returns the authorities of a member.
func (m *member) rotation(ctx context.Context) (identity.Rotation, error) {
	secret := &corev1.Secret{}
	if err := m.Get(ctx, inAgents(clusterset.GatewayAuthoritySecret), secret); err != nil {
		return nil, err
	}
	return identity.DecodeRotation(secret.Data[clusterset.GatewayAuthorityKey])
}

// issue replaces the certificate of a member's gateways by one that was issued some time ago.
func (m *member) issue(t *testing.T, ago time.Duration) {
	t.Helper()
	rotation, err := m.rotation(t.Context())
	lab.Must(t, err)
	certificate, key, err := rotation[0].Issue(identity.Name{ClusterSet: "lab", Cluster: clusterset.ClusterID(m.ID)}, time.Now().Add(-ago))
	lab.Must(t, err)
	secret := &corev1.Secret{}
	world.Update(t, m, inAgents(clusterset.GatewayCertificateSecret), secret, func() {
		secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey] = certificate, key
	})
}

// renewed waits until the certificate of a member's gateways is new, and returns its name and its authority.
func (m *member) renewed(t *testing.T) (uri string, by identity.Authority) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		secret := &corev1.Secret{}
		rotation, err := m.rotation(ctx)
		if err := errors.Join(err, m.Get(ctx, inAgents(clusterset.GatewayCertificateSecret), secret)); err != nil {
			return err
		}
		leaf, err := identity.DecodeLeaf(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			return err
		}
		if !time.Now().Before(identity.RenewAt(leaf.Leaf)) {
			return fmt.Errorf("the certificate of %s is one of %s", m.ID, leaf.Leaf.NotBefore)
		}
		uri, by = leaf.Leaf.URIs[0].String(), rotation[0].Authority
		return leaf.Leaf.CheckSignatureFrom(by.Certificate)
	})
	return uri, by
}

// gatewayVersions returns the versions of what a member's agent has written for gateways, here and on the hub.
func (e *env) gatewayVersions(t *testing.T, m *member) map[string]string {
	t.Helper()
	result := map[string]string{}
	for _, name := range []string{clusterset.GatewayAuthoritySecret, clusterset.GatewayCertificateSecret} {
		result[name] = world.Read(t, m, inAgents(name), &corev1.Secret{}).ResourceVersion
	}
	result["hub"] = world.Read(t, e.HubClient, publishedKey(m.ID), &hubv1alpha1.PublishedGateway{}).ResourceVersion
	return result
}

// isPublished waits until the hub has stored the authority of a member, and the member has stored when.
func (e *env) isPublished(t *testing.T, m *member) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		rotation, err := m.rotation(ctx)
		published := &hubv1alpha1.PublishedGateway{}
		if err := errors.Join(err, e.HubClient.Get(ctx, publishedKey(m.ID), published)); err != nil {
			return err
		}
		if published.Spec.Bundle != identity.EncodeBundle(rotation.Authorities()) || rotation[0].Published.IsZero() {
			return fmt.Errorf("the authority of %s is published since %s, in %s", m.ID, rotation[0].Published, published.Spec.Bundle)
		}
		return nil
	})
}

// Two members with gateways know each other's, until the hub's administrator says otherwise.
//
// spec: G4, G5
//
//nolint:tparallel // each test begins where the one before it ends
func TestRemoteGateways(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
	a, b := w.members["a"], w.members["b"]
	stop := a.Start(t, inAgentNamespace)
	restart := func() {
		stop()
		stop = a.Start(t, inAgentNamespace) // for longer than one of the tests below
	}
	b.Start(t, inAgentNamespace)
	w.installGateway(t, "a", "10.1.9.1")
	w.installGateway(t, "b", "10.2.9.1")
	uri, _ := a.renewed(t)
	lab.Equal(t, "whom the certificate is for", "spiffe://lab/cluster/a/gateway", uri)
	w.isPublished(t, a)
	remote := b.knows(t, "a", "198.51.100.1")
	_, authority := a.renewed(t)
	if remote.Spec.Bundle != identity.EncodeBundle([]identity.Authority{authority}) || remote.Spec.Addresses[0].Port != 443 || !slices.Equal(remote.Spec.Versions, wire.Versions()) {
		t.Errorf("b knows of a: %+v", remote.Spec)
	}
	a.knows(t, "b", "198.51.100.1")

	t.Run("a restart changes nothing", func(t *testing.T) {
		before := w.gatewayVersions(t, a)
		restart()
		b.balance(t, "198.51.100.2")
		a.knows(t, "b", "198.51.100.2") // so the new agent has reconciled
		lab.Equal(t, "versions before and after", before, w.gatewayVersions(t, a))
	})
	t.Run("what is deleted by hand comes back", func(t *testing.T) {
		lab.Must(t, a.Delete(t.Context(), a.knows(t, "b", "198.51.100.2")))
		a.knows(t, "b", "198.51.100.2")
		lab.Must(t, w.HubClient.Delete(t.Context(), &hubv1alpha1.PublishedGateway{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: "gateway"}}))
		b.knows(t, "a", "198.51.100.1")
	})
	t.Run("an old certificate is renewed", func(t *testing.T) {
		a.issue(t, 25*time.Hour)
		a.balance(t, "198.51.100.3")
		a.renewed(t)
		b.knows(t, "a", "198.51.100.3")
	})
	t.Run("only the agent labels slices", func(t *testing.T) {
		service := world.Service(key{Namespace: "default", Name: "mine"}, world.Port("http", 80))
		forged := world.Slice(service, "v4", "10.1.0.1")
		forged.Labels[clusterset.LabelGateway] = "true"
		world.Eventually(t, func(ctx context.Context) error {
			err := a.Create(ctx, forged.DeepCopy(), client.DryRunAll)
			const want = "only the agent of Tombolo writes EndpointSlices with the label tombolo-mcs.io/gateway: remove the label"
			if err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("the answer is %w", errors.Join(err, errors.New("not refused")))
			}
			return nil
		})
	})
	t.Run("suspended", func(t *testing.T) {
		w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Suspended = true })
		a.knows(t, "b")
		w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Suspended = false })
		a.knows(t, "b", "198.51.100.2")
	})
	t.Run("not allowed", func(t *testing.T) {
		w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.GatewayCIDRs[0] = "203.0.113.0/24" })
		a.knows(t, "b")
		a.Event(t, gatewayKey, "GatewayRefused", "The gateways of cluster b are not used: record member-b/gateway on the hub is refused: 198.51.100.2 is not in the gatewayCIDRs of the Member")
		b.balance(t, "198.51.100.4")
		b.Event(t, gatewayKey, "GatewayNotPublished", "198.51.100.4 is neither in the gatewayCIDRs nor one of the gatewayNames of the Member of cluster b")
		b.balance(t, "203.0.113.1")
		a.knows(t, "b", "203.0.113.1")
	})
	t.Run("the hub is down", func(t *testing.T) {
		lab.Must(t, w.Hub.APIServer.Stop(t.Context()))
		restart()
		a.Gauge(t, "tombolo_hub_connected", 0)
		a.issue(t, 25*time.Hour)
		a.balance(t, "198.51.100.5")
		a.renewed(t) // so the new agent has reconciled
		a.knows(t, "b", "203.0.113.1")
		lab.Must(t, w.Hub.APIServer.Start(t.Context()))
		b.knows(t, "a", "198.51.100.5")
	})
	t.Run("an unreadable authority is left alone", func(t *testing.T) {
		secret := &corev1.Secret{}
		var text []byte
		world.Update(t, a, inAgents(clusterset.GatewayAuthoritySecret), secret, func() {
			text = secret.Data[clusterset.GatewayAuthorityKey]
			secret.Data[clusterset.GatewayAuthorityKey] = []byte("garbage")
		})
		version := secret.ResourceVersion
		a.balance(t, "198.51.100.6")
		world.Eventually(t, func(context.Context) error {
			const want = "Secret tombolo-system/tombolo-gateway-authority: the authorities are not readable"
			if !strings.Contains(a.Output.Tail(200), want) {
				return fmt.Errorf("the agent does not log %q", want)
			}
			return nil
		})
		w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Suspended = true })
		a.knows(t, "b") // this does not wait for the authority
		lab.Must(t, a.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
		if secret.ResourceVersion != version {
			t.Errorf("the Secret has changed: %s", secret.Data[clusterset.GatewayAuthorityKey])
		}
		world.Update(t, a, client.ObjectKeyFromObject(secret), secret, func() { secret.Data[clusterset.GatewayAuthorityKey] = text })
		b.knows(t, "a", "198.51.100.6")
		w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Suspended = false })
		a.knows(t, "b", "203.0.113.1")
	})
	t.Run("without gateways", func(t *testing.T) {
		lab.Must(t, a.Delete(t.Context(), a.balance(t, "198.51.100.7")))
		a.knows(t, "b")
		b.knows(t, "a")
		world.Eventually(t, func(ctx context.Context) error {
			return world.Absent(w.HubClient.Get(ctx, publishedKey("a"), &hubv1alpha1.PublishedGateway{}))
		})
	})
}
