// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// stored is a cluster with one Secret.
type stored struct {
	client.Reader
	expires atomic.Value
}

func (s *stored) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetAnnotations(map[string]string{clusterset.AnnotationTokenExpires: s.expires.Load().(string)})
	return nil
}

// TestOlderToken: an older token, as from a restored backup, is detected within an hour.
func TestOlderToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		expiring := func(in time.Duration) string { return time.Now().Add(in).UTC().Format(time.RFC3339) }
		secret := &stored{}
		secret.expires.Store(expiring(72 * time.Hour))
		var expires atomic.Value
		r := &Renewal{
			Member: secret, Lifetime: 72 * time.Hour, Clock: clock.RealClock{}, Log: logr.Discard(),
			SetExpiry: func(at time.Time) { expires.Store(at.UTC().Format(time.RFC3339)) },
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Start(ctx) }()
		synctest.Wait()
		older := expiring(50 * time.Hour)
		secret.expires.Store(older)
		<-time.After(time.Hour) //nolint:forbidigo // the clock of a synctest bubble
		synctest.Wait()
		if got := expires.Load(); got != older {
			t.Errorf("the token is taken to expire at %s, want %s", got, older)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// capped is a hub that grants tokens at most a lifetime, and counts them.
type capped struct {
	client.Client

	granted time.Duration
	issued  atomic.Int32
}

func (h *capped) SubResource(string) client.SubResourceClient { return capping{hub: h} }

type capping struct {
	client.SubResourceClient

	hub *capped
}

func (c capping) Create(_ context.Context, _, into client.Object, _ ...client.SubResourceCreateOption) error {
	request := into.(*authenticationv1.TokenRequest)
	lifetime := min(c.hub.granted, time.Duration(*request.Spec.ExpirationSeconds)*time.Second)
	now := time.Now()
	c.hub.issued.Add(1)
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(lifetime)),
	}).SignedString([]byte("key"))
	request.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(now.Add(lifetime))}
	return err
}

// TestRenewals: a token is renewed after a third of the lifetime that the hub has granted, also after a restart of the agent, whether that is
// the requested lifetime or less.
func TestRenewals(t *testing.T) {
	t.Parallel()
	for granted, want := range map[time.Duration]int32{ // in three days
		365 * 24 * time.Hour: 3,
		72 * time.Hour:       3,
		24 * time.Hour:       9,
		time.Hour:            3 * 72,
	} {
		synctest.Test(t, func(t *testing.T) {
			key := client.ObjectKey{Namespace: "tombolo-system", Name: "tombolo-hub"}
			member := fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}).Build()
			hub := &capped{granted: granted}
			for range 6 { // a process of the agent runs for half a day
				r := &Renewal{
					Secret: key, Account: client.ObjectKey{Namespace: "member-a", Name: "tombolo-agent"}, Member: member,
					ToMember: apply.ToMember(member, member), ToHub: apply.ToHub(hub, "member-a"), Lifetime: 72 * time.Hour,
					Clock: clock.RealClock{}, Log: logr.Discard(), SetExpiry: func(time.Time) {},
				}
				ctx, cancel := context.WithTimeout(t.Context(), 12*time.Hour-time.Second)
				if err := r.Start(ctx); err != nil {
					t.Error(err)
				}
				cancel()
			}
			if got := hub.issued.Load(); got < want || got > want+want/4+1 {
				t.Errorf("the hub grants %s: %d tokens in three days, want %d", granted, got, want)
			}
		})
	}
}
