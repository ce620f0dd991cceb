// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestRivalExpired: an ID is taken over after all reads of the grace period have returned the same heartbeat of the other cluster.
// Time in which the hub was unreachable, or not read, does not count.
//
// spec: K2
func TestRivalExpired(t *testing.T) {
	const noAnswer = ""
	for name, answers := range map[string][]struct {
		after   time.Duration
		version string
		want    bool
	}{
		"silent": {
			{0, "1", false}, {10 * time.Second, "1", false}, {11 * time.Second, "1", false}, {10 * time.Second, "1", false}, {9 * time.Second, "1", true},
		},
		"renewed at the last moment": {
			{0, "1", false}, {20 * time.Second, "1", false}, {19 * time.Second, "1", false}, {time.Second, "2", false}, {20 * time.Second, "2", false}, {20 * time.Second, "2", true},
		},
		"hub unreachable": {
			{0, "1", false},
			{20 * time.Second, "1", false},
			{time.Second, noAnswer, false},
			{18 * time.Second, "1", false},
			{20 * time.Second, "1", false},
			{19 * time.Second, "1", false},
			{time.Second, "1", true},
		},
		"hub unreachable all the time": {
			{0, "1", false}, {20 * time.Second, noAnswer, false}, {20 * time.Second, noAnswer, false}, {20 * time.Second, noAnswer, false}, {time.Hour, "1", false},
		},
		"agent suspended": {
			{0, "1", false}, {20 * time.Second, "1", false}, {21 * time.Second, "1", false}, {20 * time.Second, "1", false}, {20 * time.Second, "1", true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
			hubOf := &answer{}
			p := &Presence{
				Cluster: "a", Interval: 10 * time.Second, Grace: 40 * time.Second,
				Store: hub.NewStore("a", clusterset.AddressRanges{}), Live: hubOf, Clock: clock,
			}
			for i, next := range answers {
				clock.Step(next.after)
				hubOf.version = next.version
				if got := p.rivalExpired(t.Context()); got != next.want {
					t.Errorf("question %d: %t, want %t", i, got, next.want)
				}
			}
		})
	}
}

// answer is a hub with a heartbeat of this version; the hub is unreachable if it is empty.
type answer struct {
	client.Reader

	version string
}

func (a *answer) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if a.version == "" {
		return errors.New("no answer")
	}
	object.SetResourceVersion(a.version)
	return nil
}
