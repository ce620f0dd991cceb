// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// killedInALife kills agents at 100 random moments while a service is exported, changed and withdrawn repeatedly. Between two moments an agent
// may not reconcile anything, nor renew its heartbeat.
func killedInALife(ctx context.Context, w *world) error {
	for _, m := range w.members {
		w.watch.will(oracle.Silence, m.id, oracle.Key{})
	}
	stop, rounds, done := make(chan struct{}), 0, sync.WaitGroup{}
	var failed error
	random := rand.New(rand.NewPCG(w.random.Uint64(), 2))
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if failed = w.life(ctx, w.members[rounds%2], random); failed != nil {
				return
			}
			rounds++
		}
	})
	err := error(nil)
	for range 100 {
		pause(ctx, time.Duration(w.random.IntN(700))*time.Millisecond)
		if err = w.members[w.random.IntN(len(w.members))].agent.crash(); err != nil {
			break
		}
	}
	close(stop)
	done.Wait()
	if rounds == 0 {
		err = errors.Join(err, fmt.Errorf("no life came to its end: %w", errNoEffect))
	}
	return errors.Join(err, failed)
}

// life exports a service, changes it in every way, and withdraws it.
func (w *world) life(ctx context.Context, m *member, random *rand.Rand) error {
	k := oracle.Key{Namespace: scratch, Name: "life"}
	s, slice, export := service(k, 0), &discoveryv1.EndpointSlice{ObjectMeta: meta(k)}, framework.Export(k)
	slice.Name += "-v4"
	for _, step := range []func() error{
		func() error { return w.offer(ctx, m, s, random) },
		func() error {
			return m.edit(ctx, slice, func() {
				slice.Endpoints = m.slice(s, "IPv4", 3, random).Endpoints
				w.watch.offers(m.id, slice)
			})
		},
		func() error { return m.edit(ctx, s, func() { s.Spec.Ports[0].Port++ }) },
		func() error {
			return m.edit(ctx, export, func() { export.Spec.ExportedLabels = map[string]string{"team": "x"} })
		},
		func() error { return m.edit(ctx, slice, func() { slice.Endpoints = nil }) },
		func() error { return m.Delete(ctx, export) },
		func() error { return m.Create(ctx, framework.Export(k)) },
		func() error { return m.Delete(ctx, s) },
		func() error { return m.Create(ctx, service(k, 1)) },
		func() error { return w.withdraw(ctx, m, k) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("life of %s in %s: %w", k, m.id, err)
		}
		pause(ctx, 200*time.Millisecond)
	}
	return nil
}

// leaderFrozen runs two replicas of an agent and freezes the one that leads, until the other has taken over. When it wakes
// resumed it still takes itself for the leader, reads the lease, and exits.
func leaderFrozen(ctx context.Context, w *world) error {
	m := w.members[w.random.IntN(len(w.members))]
	first, second := m.agent.beside("first", "--leader-elect=true"), m.agent.beside("second", "--leader-elect=true")
	w.watch.will(oracle.Silence, m.id, oracle.Key{}) // the lease is good for almost as long as a silence takes
	w.must(m.agent.stop())
	before, err := w.leader(ctx, m)
	w.must(err)
	err = errors.Join(first.start(), w.led(ctx, m, before))
	if err == nil {
		err = w.resumed(ctx, m, first, second)
	}
	return errors.Join(err, first.kill(), second.kill(), m.agent.start())
}

// resumed freezes the first of two replicas, which leads, until the second does.
func (w *world) resumed(ctx context.Context, m *member, first, second *agent) error {
	leader, err := w.leader(ctx, m)
	w.must(err)
	w.must(second.start())
	pause(ctx, 3*time.Second)
	w.must(first.send(syscall.SIGSTOP))
	w.must(w.led(ctx, m, leader))
	pause(ctx, 3*time.Second)
	if first.ends() > 0 {
		return fmt.Errorf("the leader ended though it was frozen: %w", errNoEffect)
	}
	w.must(first.send(syscall.SIGCONT))
	return eventually(ctx, func(context.Context) error {
		if first.ends() == 0 {
			return fmt.Errorf("the leader that was frozen continues: %w", errNoEffect)
		}
		return nil
	})
}

// leader returns who leads the replicas of a member's agent, empty if there never was one.
func (w *world) leader(ctx context.Context, m *member) (string, error) {
	lease := &coordinationv1.Lease{}
	err := m.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: "tombolo-agent"}, lease)
	if lease.Spec.HolderIdentity == nil {
		return "", client.IgnoreNotFound(err)
	}
	return *lease.Spec.HolderIdentity, err
}

// led returns when a user leads who did not before.
func (w *world) led(ctx context.Context, m *member, before string) error {
	return eventually(ctx, func(ctx context.Context) error {
		now, err := w.leader(ctx, m)
		if err == nil && (now == before || now == "") {
			return fmt.Errorf("the leader is %q still: %w", now, errNoEffect)
		}
		return err
	})
}

// memberSlow has a member's API server answer its agent slowly.
func memberSlow(ctx context.Context, w *world) error {
	m := w.members[w.random.IntN(len(w.members))]
	asker, err := client.New(m.localConfig, client.Options{Scheme: m.Scheme()})
	w.must(err)
	const delay = 500 * time.Millisecond
	m.localLine.delay.Store(int64(delay))
	defer m.localLine.delay.Store(0)
	begin := time.Now()
	w.must(asker.List(ctx, &mcsv1beta1.ServiceImportList{}, client.Limit(1)))
	if took := time.Since(begin); took < 2*delay {
		return fmt.Errorf("an answer takes %s: %w", took, errNoEffect)
	}
	pause(ctx, 15*time.Second)
	return nil
}

// conflictsAtOnce has all members export the same services, no two alike: 1,000 exports that report a conflict.
func conflictsAtOnce(ctx context.Context, w *world) error {
	services := (1000 + len(w.members) - 1) / len(w.members)
	key := func(i int) oracle.Key { return oracle.Key{Namespace: scratch, Name: fmt.Sprintf("conflict-%03d", i)} }
	err := atOnce(services, func(i int) error {
		for shape, m := range w.members {
			w.watch.will(oracle.Source, m.id, key(i))
			if err := errors.Join(m.Create(ctx, service(key(i), uint(shape))), m.Create(ctx, framework.Export(key(i)))); err != nil {
				return err
			}
		}
		return nil
	})
	w.must(err)
	for _, m := range w.members {
		err := eventually(ctx, func(ctx context.Context) error {
			list := &mcsv1beta1.ServiceExportList{}
			if err := m.List(ctx, list, client.InNamespace(scratch)); err != nil {
				return err
			}
			reported := 0
			for _, e := range list.Items {
				if apimeta.IsStatusConditionTrue(e.Status.Conditions, "Conflict") {
					reported++
				}
			}
			if reported < services {
				return fmt.Errorf("%d conflicts in %s: %w", reported, m.id, errNoEffect)
			}
			return nil
		})
		w.must(err)
	}
	return atOnce(services, func(i int) error {
		for _, m := range w.members {
			if err := errors.Join(m.Delete(ctx, framework.Export(key(i))), m.Delete(ctx, &corev1.Service{ObjectMeta: meta(key(i))})); err != nil {
				return err
			}
		}
		return nil
	})
}

// atOnce does something for all numbers below n, ten at a time.
func atOnce(n int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(10)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}
