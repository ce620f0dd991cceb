// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

func faults() []fault {
	return []fault{
		{name: "hub restarted", during: hubRestarted},
		{name: "hub frozen for 60 s", during: hubFrozen},
		{name: "hub unreachable for long", during: hubUnreachable},
		{name: "hub's etcd frozen", during: etcdFrozen},
		{name: "hub restored from an older backup", during: hubRestored},
		{name: "hub restored from a backup older than a member", during: olderThanMember, restarts: true},
		{name: "hub wiped and rebuilt", during: hubRebuilt, restarts: true},
		{name: "records lost while no agent runs", during: recordsLost, restarts: true},
		{name: "2000 records lost and withdrawn one by one", during: manyLost, restarts: true},
		{name: "connections to the hub cut", during: connectionsCut},
		{name: "deletion missed by a watch", during: deletionMissed},
		{name: "credentials expired and renewed", during: expired, restarts: true},
		{name: "agents killed 100 times in the life of a service", during: killedInALife, restarts: true},
		{name: "leader frozen and resumed", during: leaderFrozen, restarts: true},
		{name: "agents rolled back and upgraded", during: rolledBack, restarts: true},
		{name: "hub with the schema of a newer version", during: newerSchema, restarts: true},
		{name: "CRDs replaced", during: definitionsReplaced},
		{name: "member API server restarted", during: memberRestarted},
		{name: "member API server slow", during: memberSlow},
		{name: "member API server restored from an older state", during: memberRestored},
		{name: "import deleted by hand while the hub is unreachable", during: importDeleted, restarts: true},
		{name: "exports that the hub refuses for many reasons", during: invalidExport},
		{name: "one export refused for good while others withdraw", during: refusedForGood},
		{name: "member flaps", during: memberFlaps, calm: true, restarts: true},
		{name: "all members but one go down and return", during: allButOneDown, calm: true, restarts: true},
		{name: "agents restarted while a member is down", during: restartedWithOneDown, calm: true, restarts: true},
		{name: "member suspended", during: suspended, restarts: true},
		{name: "member copied", during: memberCopied, restarts: true},
		{name: "member copied while it is down", during: copiedWhileDown, restarts: true},
		{name: "silent member leaves and joins again", during: silentLeaves, restarts: true},
		{name: "a policy refuses writes in one namespace", during: writesRefused},
		{name: "a policy refuses updates of the Services of imports", during: updatesRefused},
		{name: "a quota refuses the Services of imports", during: servicesRefused},
		{name: "200 exports and withdrawals in a row", during: exportedOverAndOver},
		{name: "1000 conflicts at once", during: conflictsAtOnce},
	}
}

// answers returns nil where a server answers at once.
func answers(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.List(ctx, &hubv1alpha1.MemberList{}, client.Limit(1))
}

var errNoEffect = errors.New("the fault had no effect")

// without has a process out of order for a time, and proves that a client gets no answer meanwhile.
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

func hubUnreachable(ctx context.Context, w *world) error {
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

// TestFaultsAreDocumented: docs/operations.md says what is promised in each fault. (That those of which it speaks exist, the check
// of the documents says.)
func TestFaultsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	lab.Must(t, err)
	for _, name := range faultNames() {
		if !strings.Contains(string(text), "`chaos: "+name+"`") {
			t.Errorf("it says nothing about the fault %q", name)
		}
	}
}

// exportedOverAndOver exports a service and withdraws it again, 200 times in a row.
func exportedOverAndOver(ctx context.Context, w *world) error {
	m, k := w.members[0], oracle.Key{Namespace: scratch, Name: "web"}
	w.must(w.offer(ctx, m, service(k, 0), w.random))
	for range 200 {
		w.must(m.Delete(ctx, framework.Export(k)))
		w.must(m.Create(ctx, framework.Export(k)))
	}
	export := &mcsv1beta1.ServiceExport{}
	err := shown(ctx, m, k, export, func() error {
		if !apimeta.IsStatusConditionTrue(export.Status.Conditions, "Ready") {
			return fmt.Errorf("the last of 200 exports is not out: %w", errNoEffect)
		}
		return nil
	})
	return errors.Join(err, w.withdrawScratch(ctx))
}
