// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials renews this member's token for the hub. Long before it expires, it requests a new token for the member's own
// ServiceAccount and writes it into the Secret from which the agents read it. It is the only writer of that Secret after the
// cluster has joined.
package credentials

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/golang-jwt/jwt/v5"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Renewal renews the member's token.
type Renewal struct {
	// Secret has the token, in the member cluster. Account is the token's ServiceAccount, on the hub.
	Secret, Account client.ObjectKey
	// Member reads the member cluster without a cache, because the agent may not watch Secrets.
	Member client.Reader
	// ToMember and ToHub write.
	ToMember, ToHub apply.Writer
	// Lifetime is the requested lifetime of a token. A token is renewed after a third of it, so that the hub may be unreachable for
	// the rest.
	Lifetime time.Duration
	Clock    clock.Clock
	Log      logr.Logger
	// SetExpiry is called with the time at which the token expires.
	SetExpiry func(time.Time)
}

// NeedLeaderElection returns true: one replica renews the token for all.
func (r *Renewal) NeedLeaderElection() bool { return true }

// retryBackoff returns the delays between failed renewals. They may be long, because the token is valid for days.
func retryBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 16, Cap: 5 * time.Minute}
}

// recheckInterval is the longest time between reads of the Secret. A restored backup of the member may contain an older token that
// expires before the next renewal, and the agent may not watch Secrets.
const recheckInterval = time.Hour

// Start renews the token until ctx ends.
func (r *Renewal) Start(ctx context.Context) error {
	backoff := retryBackoff()
	logged := ""
	for {
		pause, err := r.renew(ctx)
		if err != nil && ctx.Err() == nil {
			pause = backoff.Step()
			if logged != err.Error() {
				r.Log.Error(err, "the token for the hub is not renewed; trying again")
			}
			logged = err.Error()
		} else {
			backoff, logged = retryBackoff(), ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.Clock.After(min(pause, recheckInterval)):
		}
	}
}

// renew renews the token if that is due, and returns the time until the next renewal.
func (r *Renewal) renew(ctx context.Context) (time.Duration, error) {
	secret := &corev1.Secret{}
	if err := r.Member.Get(ctx, r.Secret, secret); err != nil {
		return 0, fmt.Errorf("get Secret %s: %w", r.Secret, err)
	}
	if expires, err := time.Parse(time.RFC3339, secret.Annotations[clusterset.AnnotationTokenExpires]); err == nil {
		r.SetExpiry(expires)
		if pause := expires.Add(-r.lifetimeOf(secret.Data[clusterset.HubSecretToken]) * 2 / 3).Sub(r.Clock.Now()); pause > 0 {
			return pause, nil
		}
	}
	token, err := r.ToHub.IssueToken(ctx, r.Account, r.Lifetime)
	if err != nil {
		return 0, err
	}
	if err := r.ToMember.UpdateSecret(ctx, withToken(secret, token)); err != nil {
		return 0, err
	}
	expires := token.ExpirationTimestamp.Time
	r.SetExpiry(expires)
	r.Log.Info("renewed the token for the hub", "expires", expires)
	left := expires.Sub(r.Clock.Now())
	if left <= 0 {
		return 0, errors.New("the hub's new token has expired already: compare the clocks of the two clusters")
	}
	return left / 3, nil // the hub may grant less than Lifetime
}

// lifetimeOf returns the lifetime by which it is decided when a token is renewed: the one that the hub has granted, if that is less than the
// requested one. A token that cannot be read counts as one of the requested lifetime.
func (r *Renewal) lifetimeOf(token []byte) time.Duration {
	claims := &jwt.RegisteredClaims{}
	_, _, err := jwt.NewParser().ParseUnverified(strings.TrimSpace(string(token)), claims) // the hub verifies it
	if err != nil || claims.IssuedAt == nil || claims.ExpiresAt == nil || !claims.ExpiresAt.After(claims.IssuedAt.Time) {
		return r.Lifetime
	}
	return min(r.Lifetime, claims.ExpiresAt.Sub(claims.IssuedAt.Time))
}

// withToken returns the Secret with another token and its expiry.
func withToken(secret *corev1.Secret, token authenticationv1.TokenRequestStatus) *corev1.Secret {
	result := secret.DeepCopy()
	if result.Data == nil {
		result.Data = map[string][]byte{}
	}
	if result.Annotations == nil {
		result.Annotations = map[string]string{}
	}
	result.Data[clusterset.HubSecretToken] = []byte(token.Token)
	result.Annotations[clusterset.AnnotationTokenExpires] = token.ExpirationTimestamp.UTC().Format(time.RFC3339)
	return result
}
