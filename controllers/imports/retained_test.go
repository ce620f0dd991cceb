// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestRetained: addresses are retained for an hour, also across a restart of the agent, and at most 1,000 of them, the last ones.
//
// spec: I5
func TestRetained(t *testing.T) {
	t.Parallel()
	c, passed := fake.NewClientBuilder().Build(), testingclock.NewFakeClock(time.Unix(1_000_000, 0))
	start := func() *Retained {
		return &Retained{Namespace: "tombolo-system", Live: c, Writer: apply.ToMember(c, c), Clock: passed}
	}
	retained := func(r *Retained, key clusterset.ServiceKey) []string {
		t.Helper()
		got, err := r.of(t.Context(), key)
		check.Must(t, err)
		return got
	}
	r, dual := start(), []string{"10.96.0.7", "fd00::7"}
	check.Equal(t, "before", []string(nil), retained(r, webKey()))
	check.Must(t, r.retain(t.Context(), webKey(), dual))
	check.Equal(t, "retained", dual, retained(r, webKey()))
	passed.Step(retention - time.Second)
	check.Equal(t, "after a restart", dual, retained(start(), webKey()))
	passed.Step(time.Second)
	check.Equal(t, "after an hour", []string(nil), retained(r, webKey()))

	key := func(i int) clusterset.ServiceKey {
		return clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprint("web-", i)}
	}
	for i := range maxRetained + 1 {
		passed.Step(time.Millisecond)
		r.add(key(i), dual[:1])
	}
	check.Equal(t, "entries", maxRetained, len(r.entries))
	check.Equal(t, "the oldest", []string(nil), retained(r, key(0)))
	check.Equal(t, "the last", dual[:1], retained(r, key(maxRetained)))
}

// TestRetainedByAnother: entries that are not as an agent writes them are ignored, and the addresses that an import had when it was read last
// are known when its namespace is deleted.
//
// spec: I5
func TestRetainedByAnother(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	stored := &corev1.ConfigMap{Data: map[string]string{
		"shop.web": "10.96.0.7 " + later, "shop.db": "10.96.0.8", "shop": "10.96.0.9 " + later, "shop.api": "no-address " + later,
		"shop.old": "10.96.0.10 2020-01-01T00:00:00Z", "shop.many": "10.96.0.1,10.96.0.2,10.96.0.3 " + later,
	}}
	stored.Namespace, stored.Name = "tombolo-system", retainConfigMap
	c := fake.NewClientBuilder().WithObjects(client.Object(stored)).Build()
	r := &Retained{Namespace: "tombolo-system", Live: c, Writer: apply.ToMember(c, c), Clock: testingclock.NewFakePassiveClock(time.Now())}
	for _, name := range []string{"db", "api", "old", "many", ""} {
		got, err := r.of(t.Context(), clusterset.ServiceKey{Namespace: "shop", Name: name})
		check.Must(t, err)
		check.Equal(t, "addresses of "+name, []string(nil), got)
	}
	got, err := r.of(t.Context(), webKey())
	check.Must(t, err)
	check.Equal(t, "addresses of web", []string{"10.96.0.7"}, got)
	r.see(webKey(), got)
	check.Equal(t, "addresses when the namespace is deleted", got, r.seen(webKey()))
	check.Must(t, r.retain(t.Context(), webKey(), got))
	check.Equal(t, "addresses after that", []string(nil), r.seen(webKey()))
}

// failing is a cluster whose writes fail as often as it says.
type failing struct {
	client.Client
	left *int
}

func (f failing) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	*f.left--
	if *f.left >= 0 {
		return apierrors.NewInternalError(errors.New("no leader"))
	}
	return f.Client.Create(ctx, object, options...)
}

// TestRetainedTogether: callers at the same time lose no entry, also if writes fail and are repeated.
//
// spec: I5
func TestRetainedTogether(t *testing.T) {
	t.Parallel()
	stored := fake.NewClientBuilder().Build()
	c := failing{stored, new(3)}
	start := func() *Retained {
		return &Retained{Namespace: "tombolo-system", Live: c, Writer: apply.ToMember(c, c), Clock: testingclock.NewFakePassiveClock(time.Unix(1_000_000, 0))}
	}
	r := start()
	key := func(i int) clusterset.ServiceKey {
		return clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprint("web-", i)}
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			err := errors.New("not stored yet")
			for err != nil {
				err = r.retain(t.Context(), key(i), []string{"10.96.0.7"})
			}
		})
	}
	all.Wait()
	again := start()
	for i := range 20 {
		got, err := again.of(t.Context(), key(i))
		check.Must(t, err)
		check.Equal(t, "addresses of "+key(i).Name, []string{"10.96.0.7"}, got)
	}
}
