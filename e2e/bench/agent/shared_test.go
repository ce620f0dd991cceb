// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestParts runs each part with very little to do. API servers that start cost more than that, so all parts have the same,
// one after the other, and each finds them as if they were new.
func TestParts(t *testing.T) {
	s := &shared{program: buildAgent(t)}
	var err error
	if s.all, err = newWorld(t.Context(), 2, room, t.Logf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.all.close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("slow agents", s.testSlowAgents)
	t.Run("floor fails", s.testFloorFails)
	t.Run("background", s.testBackground)
	t.Run("fanout", s.testFanout)
	t.Run("latency", s.testLatency)
	t.Run("restart", s.testRestart)
	t.Run("reconnect", s.testReconnect)
	t.Run("scale", s.testScale)
}

// room is how many services of a member a small part has at most.
const room = 100

// shared is what the tests of the parts have together.
type shared struct {
	all     *world
	program string // a real agent's
}

// buildAgent returns the program.
func buildAgent(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tombolo-agent")
	if err := lab.Build(t.Context(), "../../..", "tombolo-agent", program); err != nil {
		t.Fatal(err)
	}
	return program
}

// newBench returns the run of a part.
func (s *shared) newBench(t *testing.T, size int) *bench {
	t.Helper()
	return &bench{
		settings: settings{size: size, rounds: 1, agent: s.program, out: t.TempDir(), anyhow: true, world: s.lend},
		part:     "test", say: t.Logf, began: time.Now(), budget: time.Hour,
	}
}

// lend is an opener. Whoever closes what it returns leaves nothing behind.
func (s *shared) lend(ctx context.Context, members, services int, _ sayer) (*world, error) {
	if members > len(s.all.members) || services > room {
		return nil, fmt.Errorf("there is no room for %d members of %d services", members, services)
	}
	w := *s.all
	w.members = s.all.members[:members]
	w.close = func() error { return s.clear(ctx) }
	return &w, nil
}

// clear deletes all that a part has written. The members that it has admitted beside the world's stay, with nothing to say.
func (s *shared) clear(ctx context.Context) error {
	err := s.all.wipe(ctx)
	for _, m := range s.all.members {
		for _, kind := range []client.Object{&corev1.Service{}, &discoveryv1.EndpointSlice{}} {
			err = errors.Join(err, m.kube.DeleteAllOf(ctx, kind, client.InNamespace(namespace)))
		}
	}
	admitted := &hubv1alpha1.MemberList{}
	err = errors.Join(err, s.all.hubKube.List(ctx, admitted))
	for _, m := range admitted.Items {
		for _, kind := range []client.Object{&hubv1alpha1.PublishedService{}, &hubv1alpha1.PublishedEndpoints{}, &hubv1alpha1.Heartbeat{}} {
			err = errors.Join(err, s.all.hubKube.DeleteAllOf(ctx, kind, client.InNamespace(m.Namespace)))
		}
	}
	return err
}
