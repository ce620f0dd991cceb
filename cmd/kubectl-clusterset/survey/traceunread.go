// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"sync"
)

// readMembers reads all members, in parallel.
func (t *tracer) readMembers(ctx context.Context) {
	for _, u := range t.Clusterset.Unread {
		if !u.IsHub {
			t.unread = append(t.unread, Step{Hop: HopMembership, State: NotKnown, Found: u.String(), Fix: u.Next})
		}
	}
	members := t.Clusterset.Members
	views, errs := make([]*MemberView, len(members)), make([]error, len(members))
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() { views[i], errs[i] = m.Read(ctx, t.hub, t.Key.Namespace) })
	}
	group.Wait()
	for i, view := range views {
		if errs[i] != nil {
			t.unread = append(t.unread, unreadStep(members[i], errs[i]))
			continue
		}
		t.views = append(t.views, view)
	}
}

// unreadStep returns the step of a member that could not be read.
func unreadStep(m *Member, err error) Step {
	failure := FailureOf(err, m.KubeContext.Name)
	return Step{m.ID, HopMembership, NotKnown, "it could not be read: " + failure.Message, failure.Next}
}

// refresh reads the hub again.
func (t *tracer) refresh(ctx context.Context) {
	h, err := ReadHub(ctx, t.hub.KubeContext)
	if err != nil {
		h = unreadHub(t.hub.KubeContext, err)
	}
	t.hub = h
	for _, view := range t.views {
		view.Refresh(ctx, h)
	}
}

// hubSteps returns the step of a hub that could not be read.
func (t *tracer) hubSteps() []Step {
	if t.hub.IsRead() {
		return nil
	}
	failure := t.hub.failure()
	return []Step{{Hop: HopHub, State: NotKnown, Found: "the hub could not be read, so only what the clusters have is known: " + failure.Message, Fix: failure.Next}}
}
