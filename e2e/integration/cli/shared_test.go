// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

// API servers that start cost more than most of what is tested. So these tests have parts that share a hub and clusters, one
// after the other, and each part finds them as if they had just become so.

// TestVerbs uses the verbs as an administrator does who lets clusters join, looks at them, and lets them leave.
func TestVerbs(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east", "west")
	w.testInitHub(t)
	w.share(t, map[string]func(*testing.T){
		"life of a member":  w.testLifeOfAMember,
		"DNS":               w.testDNS,
		"checks of join":    w.testChecksOfJoin,
		"found ranges":      w.testFoundRanges,
		"leave interrupted": w.testLeaveInterrupted,
		"see":               w.testSee,
	})
}

// TestCredentials changes what a member and the hub know each other by. An agent reads its token once a minute: most of this
// is waiting, beside the other tests.
func TestCredentials(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east")
	w.must(t, "init-hub --context hub")
	w.share(t, map[string]func(*testing.T){
		"join again": w.testJoinAgain,
		"revoked":    w.testRevoked,
	})
	t.Run("hub certificate rotated", w.testHubCertificateRotated) // the hub's controllers are not heard any more then
}

// share runs parts. They come in any order, as none needs another.
func (w *world) share(t *testing.T, parts map[string]func(*testing.T)) {
	t.Helper()
	before := w.snapshots(t)
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { restore(t, before) })
			part(t)
		})
	}
}

// snapshots returns those of all clusters.
func (w *world) snapshots(t *testing.T) []*membership.Snapshot {
	t.Helper()
	var all []*membership.Snapshot
	for _, cluster := range w.Clusters() {
		s, err := membership.TakeSnapshot(t.Context(), cluster)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// restore has clusters be as they were.
func restore(t *testing.T, all []*membership.Snapshot) {
	t.Helper()
	var restoring errgroup.Group
	for _, s := range all {
		restoring.Go(func() error { return s.Restore(context.WithoutCancel(t.Context())) })
	}
	if err := restoring.Wait(); err != nil {
		t.Error(err)
	}
}
