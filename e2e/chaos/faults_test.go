// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// faults returns all of them.
func faults() []fault {
	return []fault{
		{name: "hub restarted", during: hubRestarted},
		{name: "hub frozen for 60 s", during: hubFrozen},
		{name: "hub away for long", during: hubAway},
		{name: "hub's etcd frozen", during: etcdFrozen},
		{name: "connections to the hub cut", during: connectionsCut},
		{name: "agents killed at random moments", during: agentsKilled},
		{name: "member API server restarted", during: memberRestarted},
		{name: "member dies and returns", during: memberDies, calm: true},
		{name: "objects edited and deleted by hand", during: editedByHand},
		{name: "records deleted by hand on the hub", during: recordsByHand},
		{name: "namespace deleted and made anew", during: namespaceAnew},
		{name: "a policy refuses writes in one namespace", during: writesRefused},
		{name: "quota used up", during: quotaUsedUp},
		{name: "loss of most records held", during: lossHeld, calm: true},
		{name: "mass withdrawal one by one", during: withdrawnOneByOne},
		{name: "200 exports and withdrawals in a row", during: exportedOverAndOver},
		{name: "two agents with one ID", during: twoAgents},
		{name: "credentials revoked and renewed", during: revoked},
	}
}

// answers returns nil where a server answers at once.
func answers(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.List(ctx, &hubv1alpha1.MemberList{}, client.Limit(1))
}

var errNoEffect = errors.New("the fault had no effect")

// without has a process out of order for a time, and proves that whoever asks gets no answer meanwhile.
func (w *world) without(ctx context.Context, d time.Duration, c client.Client, begin, end func() error) error {
	if err := begin(); err != nil {
		return err
	}
	err := answers(ctx, c)
	pause(ctx, d)
	again := answers(ctx, c)
	if ended := end(); ended != nil {
		return ended
	}
	if err == nil || again == nil {
		return fmt.Errorf("it answers: %w", errNoEffect)
	}
	return eventually(ctx, func(ctx context.Context) error { return answers(ctx, c) })
}

func (w *world) stopped(ctx context.Context, d time.Duration, p *lab.Process, c client.Client) error {
	return w.without(ctx, d, c, func() error { return p.Stop(ctx) }, func() error { return p.Start(ctx) })
}

func hubRestarted(ctx context.Context, w *world) error {
	pause(ctx, 2*time.Second)
	return w.stopped(ctx, 0, w.hub.APIServer, w.hubKube)
}

func hubAway(ctx context.Context, w *world) error {
	return w.stopped(ctx, 45*time.Second, w.hub.APIServer, w.hubKube)
}

func hubFrozen(ctx context.Context, w *world) error {
	return w.without(ctx, time.Minute, w.hubKube, w.hub.APIServer.Freeze, w.hub.APIServer.Thaw)
}

func etcdFrozen(ctx context.Context, w *world) error {
	return w.without(ctx, 15*time.Second, w.hubKube, w.hub.Etcd.Freeze, w.hub.Etcd.Thaw)
}

func connectionsCut(ctx context.Context, w *world) error {
	for range 5 {
		for _, m := range w.members {
			if m.line.cut() == 0 {
				return fmt.Errorf("%s has no connection: %w", m.id, errNoEffect)
			}
		}
		pause(ctx, time.Duration(3+w.random.IntN(3))*time.Second)
	}
	return nil
}

func agentsKilled(ctx context.Context, w *world) error {
	for range 6 {
		pause(ctx, time.Duration(500+w.random.IntN(2500))*time.Millisecond)
		a := w.members[w.random.IntN(len(w.members))].agent
		if !a.runs() {
			return fmt.Errorf("an agent did not run: %w", errNoEffect)
		}
		if err := a.kill(); err != nil {
			return err
		}
		if err := a.start(); err != nil {
			return err
		}
	}
	return nil
}
