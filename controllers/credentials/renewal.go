// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials keeps this member's token for the hub fresh: long before it expires, it has the hub issue another
// to the member's own ServiceAccount and puts it into the Secret from which the agents read it. It is the only writer of
// that Secret once the cluster has joined.
package credentials

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Renewal renews the member's token.
type Renewal struct {
	// Secret is where the token lies, in the member cluster, and Account for whom it is, on the hub.
	Secret, Account client.ObjectKey
	// Member reads the member cluster past any cache: the agent may not watch Secrets.
	Member client.Reader
	// ToMember and ToHub write.
	ToMember, ToHub apply.Writer
	// Lifetime is how long a token is to be good. It is renewed when a third of it is over, so that the hub may be away for
	// the other two.
	Lifetime time.Duration
	Clock    clock.Clock
	Log      logr.Logger
	// Expires is told until when the token is good.
	Expires func(time.Time)
}

// NeedLeaderElection returns true: one replica renews for all.
func (r *Renewal) NeedLeaderElection() bool { return true }

// patience is what a failed renewal waits for, at first and at most. There are days until it matters.
func patience() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 16, Cap: 5 * time.Minute}
}

// recheck is how often the Secret is read at least. A restored backup of the member brings an older token back, which may expire
// before the renewal of the one that it replaces is due, and the agent may not watch Secrets.
const recheck = time.Hour

// Start renews until ctx ends.
func (r *Renewal) Start(ctx context.Context) error {
	backoff := patience()
	said := ""
	for {
		pause, err := r.renew(ctx)
		if err != nil && ctx.Err() == nil {
			pause = backoff.Step()
			if said != err.Error() {
				r.Log.Error(err, "the token for the hub is not renewed; trying again")
			}
			said = err.Error()
		} else {
			backoff, said = patience(), ""
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.Clock.After(min(pause, recheck)):
		}
	}
}

// renew renews the token if that is due and returns in what time it is due next.
func (r *Renewal) renew(ctx context.Context) (time.Duration, error) {
	secret := &corev1.Secret{}
	if err := r.Member.Get(ctx, r.Secret, secret); err != nil {
		return 0, fmt.Errorf("get Secret %s: %w", r.Secret, err)
	}
	if expires, err := time.Parse(time.RFC3339, secret.Annotations[clusterset.AnnotationTokenExpires]); err == nil {
		r.Expires(expires)
		if pause := expires.Add(-r.Lifetime * 2 / 3).Sub(r.Clock.Now()); pause > 0 {
			return pause, nil
		}
	}
	token, err := r.ToHub.IssueToken(ctx, r.Account, r.Lifetime)
	if err != nil {
		return 0, err
	}
	if err := r.ToMember.KeepSecret(ctx, withToken(secret, token)); err != nil {
		return 0, err
	}
	expires := token.ExpirationTimestamp.Time
	r.Expires(expires)
	r.Log.Info("renewed the token for the hub", "expires", expires)
	left := expires.Sub(r.Clock.Now())
	if left <= 0 {
		return 0, errors.New("the hub's new token has expired already: compare the clocks of the two clusters")
	}
	return left / 3, nil // a hub may grant less than was asked for
}

// withToken returns the Secret with another token, and says how long that is good.
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
