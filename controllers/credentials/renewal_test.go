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
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
