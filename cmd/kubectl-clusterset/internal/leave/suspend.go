// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package leave

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// How long leave waits for the heartbeats of the other members: three of their intervals, at most a minute.
const (
	suspensionIntervals = 3
	suspensionAtMost    = time.Minute
	suspensionPoll      = 500 * time.Millisecond
)

// suspend sets suspended on the Member and waits until the connected members have sent a heartbeat since. A member that was
// disconnected when the Member was deleted keeps what it exported for a while, unless it has seen the suspension.
func (l *command) suspend(ctx context.Context) error {
	outcome, err := l.setSuspended(ctx)
	if err != nil || outcome == install.NotFound {
		return err // an earlier run has deleted it
	}
	l.r.Outcome(outcome, output.ResourceName(hubv1alpha1.GroupVersion.WithKind("Member").GroupKind(), hubv1alpha1.MemberName))
	l.r.Okf("the Member of %s is suspended", l.id)
	// After the write: a heartbeat that is newer than what is read here was sent after the suspension.
	seen, err := survey.ReadHub(ctx, survey.KubeContext{Config: l.hub.Config})
	if err != nil {
		return err
	}
	connected := seen.Connected()
	delete(connected, l.id)
	if len(connected) == 0 {
		l.r.Notef("no other member is connected: nothing to wait for")
		return nil
	}
	limit := suspensionLimit(connected)
	if l.IsDryRun() {
		l.r.Notef("then up to %s for the next heartbeat of %s, so that they see the suspension before the Member is deleted", limit, idList(connected))
		return nil
	}
	l.r.Notef("waiting up to %s for the next heartbeat of %s", limit, idList(connected))
	return l.awaitHeartbeats(ctx, seen.Records, connected, limit)
}

// setSuspended returns NotFound if the Member does not exist.
func (l *command) setSuspended(ctx context.Context) (outcome install.Outcome, err error) {
	key := client.ObjectKey{Namespace: l.id.HubNamespace(), Name: hubv1alpha1.MemberName}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		member := &hubv1alpha1.Member{}
		if err := l.hub.Client.Get(ctx, key, member); err != nil {
			return fmt.Errorf("get Member %s: %w", key, err)
		}
		member.Spec.Suspended = true
		outcome, err = l.hub.Install.Update(ctx, member)
		return err
	})
	if connection.IsAbsent(err) {
		return install.NotFound, nil
	}
	return outcome, err
}

// suspensionLimit returns how long to wait for members with these heartbeat intervals.
func suspensionLimit(connected map[clusterset.ClusterID]time.Duration) time.Duration {
	longest := time.Duration(0)
	for _, interval := range connected {
		longest = max(longest, interval)
	}
	return min(suspensionIntervals*longest, suspensionAtMost)
}

// heartbeats returns the heartbeats of a snapshot.
type heartbeats interface {
	Heartbeat(clusterset.ClusterID) *hubv1alpha1.Heartbeat
}

// awaitHeartbeats waits until each of the members has another heartbeat than before, or none, or until the limit.
func (l *command) awaitHeartbeats(ctx context.Context, before heartbeats, members map[clusterset.ClusterID]time.Duration, limit time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	awaited := maps.Clone(members)
	err := wait.PollUntilContextCancel(waiting, suspensionPoll, true, func(ctx context.Context) (bool, error) {
		list := &hubv1alpha1.HeartbeatList{}
		if err := l.hub.Client.List(ctx, list); err != nil {
			return false, connection.IgnoreTransient(err)
		}
		awaited = unanswered(awaited, before, list.Items)
		return len(awaited) == 0, nil
	})
	switch {
	case err == nil:
		l.r.Okf("a heartbeat of each since then")
		return nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		l.r.Notef("no heartbeat of %s within %s: a member that is disconnected keeps what %s exported until its --absent-member-timeout has passed",
			idList(awaited), limit, l.id)
		return nil
	}
	return err
}

// unanswered returns the members whose Heartbeat has not changed.
func unanswered(members map[clusterset.ClusterID]time.Duration, before heartbeats, now []hubv1alpha1.Heartbeat) map[clusterset.ClusterID]time.Duration {
	result := map[clusterset.ClusterID]time.Duration{}
	for _, beat := range now {
		id, _ := clusterset.ClusterIDOfHubNamespace(beat.Namespace)
		interval, awaited := members[id]
		old := before.Heartbeat(id)
		if awaited && old != nil && old.ResourceVersion == beat.ResourceVersion {
			result[id] = interval
		}
	}
	return result
}

func idList(of map[clusterset.ClusterID]time.Duration) string {
	var names []string
	for _, id := range slices.Sorted(maps.Keys(of)) {
		names = append(names, string(id))
	}
	return strings.Join(names, ", ")
}
