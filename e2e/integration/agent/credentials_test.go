// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestTokenRenewal: an agent renews its token for the hub where it lies when a third of its life is over, not before, and
// the new one is good.
func TestTokenRenewal(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a := w.members["a"]
	const expires = "tombolo-mcs.io/token-expires"
	k := key{Namespace: "tombolo-system", Name: "tombolo-hub"}
	old := time.Now().Add(47 * time.Hour).UTC().Format(time.RFC3339)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name, Annotations: map[string]string{expires: old}},
		Data:       map[string][]byte{"token": []byte("old"), "kubeconfig": []byte("as it is")},
	}
	lab.Must(t, a.Create(t.Context(), secret))
	renewing := func(o *agent.Options) { o.HubSecret, o.TokenLifetime = k, 72*time.Hour }

	stop := a.Start(t, renewing)
	world.Eventually(t, func(ctx context.Context) error {
		if err := a.Get(ctx, k, secret); err != nil {
			return err
		}
		if string(secret.Data["token"]) == "old" {
			return errors.New("the token is not renewed")
		}
		return nil
	})
	until, err := time.Parse(time.RFC3339, secret.Annotations[expires])
	lab.Must(t, err)
	if left := time.Until(until); left < 71*time.Hour || left > 73*time.Hour {
		t.Errorf("the new token is good for %s", left)
	}
	if string(secret.Data["kubeconfig"]) != "as it is" {
		t.Errorf("the rest of the Secret has changed: %q", secret.Data["kubeconfig"])
	}
	fresh := rest.AnonymousClientConfig(a.Hub)
	fresh.BearerToken = string(secret.Data["token"])
	hub, err := client.New(fresh, client.Options{Scheme: w.HubClient.Scheme()})
	lab.Must(t, err)
	world.Eventually(t, func(ctx context.Context) error { // the token speaks for the member
		return hub.List(ctx, &hubv1alpha1.MemberList{})
	})

	// Nothing is renewed that is fresh: neither now, nor when an agent starts.
	stop()
	a.Start(t, renewing)
	a.Gauge(t, "tombolo_hub_token_expiry_timestamp_seconds", float64(until.Unix()))
	after := &corev1.Secret{}
	lab.Must(t, a.Get(t.Context(), k, after))
	if after.ResourceVersion != secret.ResourceVersion {
		t.Error("a fresh token was renewed")
	}
}
