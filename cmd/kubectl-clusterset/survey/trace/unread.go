// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"sync"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/dryrun"
)

// readMembers reads all members, in parallel.
func (t *tracer) readMembers(ctx context.Context) {
	for _, u := range t.Clusterset.Unread {
		if !u.IsHub {
			t.unread = append(t.unread, Step{Hop: HopMembership, State: NotKnown, Found: u.String(), Fix: u.Next})
		}
	}
	members := t.Clusterset.Members
	views, errs := make([]*dryrun.View, len(members)), make([]error, len(members))
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() { views[i], errs[i] = dryrun.Read(ctx, m, t.hub, t.Key.Namespace) })
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
func unreadStep(m *survey.Member, err error) Step {
	failure := apiserver.FailureOf(err, m.KubeContext.Name)
	return Step{m.ID, HopMembership, NotKnown, "it could not be read: " + failure.Message, failure.Next}
}

// refresh reads the hub again.
func (t *tracer) refresh(ctx context.Context) {
	h, err := survey.ReadHub(ctx, t.hub.KubeContext)
	if err != nil {
		h = survey.UnreadHub(t.hub.KubeContext, err)
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
	failure := t.hub.Failure()
	return []Step{{Hop: HopHub, State: NotKnown, Found: "the hub could not be read, so only what the clusters have is known: " + failure.Message, Fix: failure.Next}}
}
