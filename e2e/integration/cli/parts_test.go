// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

// Starting API servers takes longer than most of the tests. So these tests have parts that share a hub and clusters. After each part
// the clusters are restored to their earlier state.

// TestVerbs runs the verbs: clusters join, are read and changed, and leave.
func TestVerbs(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east", "west")
	w.testInitHub(t)
	w.share(t, map[string]func(*testing.T){
		"life of a member":  w.testLifeOfAMember,
		"DNS":               w.testDNS,
		"checks of join":    w.testChecksOfJoin,
		"leave interrupted": w.testLeaveInterrupted,
		"survey":            w.testSurvey,
	})
}

// TestCredentials changes the credentials of a member and of the hub. An agent reads its token once a minute, so most of this test
// is waiting, beside the other tests.
func TestCredentials(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east")
	w.must(t, "init-hub --context hub")
	w.share(t, map[string]func(*testing.T){
		"join again": w.testJoinAgain,
		"revoked":    w.testRevoked,
	})
	t.Run("hub certificate rotated", w.testHubCertificateRotated) // it disconnects the hub's controllers
}

// share runs parts, in any order.
func (w *world) share(t *testing.T, parts map[string]func(*testing.T)) {
	t.Helper()
	var before []*membership.Snapshot
	for _, cluster := range w.Clusters() {
		s, err := membership.TakeSnapshot(t.Context(), cluster)
		lab.Must(t, err)
		before = append(before, s)
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				var restoring errgroup.Group
				for _, s := range before {
					restoring.Go(func() error { return s.Restore(context.WithoutCancel(t.Context())) })
				}
				lab.Must(t, restoring.Wait())
			})
			part(t)
		})
	}
}
