// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// isLastSender returns the Lease of the agents of a member, which is on the hub if they run there, and whether its process has sent a
// heartbeat on the hub. The Lease is nil if there is none; then that is not known.
func isLastSender(ctx context.Context, onHub, member *cluster, beat *hubv1alpha1.Heartbeat) (*survey.AgentLease, bool, error) {
	now, err := survey.ServerTime(ctx, onHub.config)
	if err != nil {
		return nil, false, err
	}
	for _, at := range []struct {
		cluster   *cluster
		namespace string
	}{{member, manifests.AgentNamespace}, {onHub, beat.Namespace}} {
		local, err := survey.ServerTime(ctx, at.cluster.config)
		if err != nil {
			return nil, false, err
		}
		lease, err := survey.ReadAgentLease(ctx, at.cluster.client, at.namespace, func() time.Time { return local })
		if apierrors.IsForbidden(err) && at.cluster == onHub { // by an invitation
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		if lease != nil {
			isLast := lease.IsLast(beat, now.Sub(hub.RenewedAt(beat)))
			return lease, isLast, nil
		}
	}
	return nil, false, nil
}

// checkCopy fails if this cluster is a copy of the member: another process than its agent renews the heartbeat (K2). If the agent of this
// cluster has not sent the last one, because it has just been started, or because it has ended, the next one shows it.
func (j *joinCommand) checkCopy(ctx context.Context, first *hubv1alpha1.Heartbeat) error {
	if first == nil || first.Spec.Nonce == "" { // an older agent
		return nil
	}
	waiting := 2 * cmp.Or(time.Duration(first.Spec.IntervalSeconds)*time.Second, 10*time.Second)
	isCopy := false
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		beat, err := j.heartbeat(ctx)
		if err != nil || beat == nil {
			return true, err
		}
		now, err := survey.ServerTime(ctx, j.hub.config)
		if err != nil {
			return false, err
		}
		lease, isLast, err := isLastSender(ctx, j.hub, j.member, beat)
		switch {
		case err != nil:
			return false, err
		case isLast, lease == nil && j.running[manifests.AgentDeployment] != nil, now.Sub(hub.RenewedAt(beat)) > waiting:
			return true, nil
		}
		isCopy = beat.ResourceVersion != first.ResourceVersion
		return isCopy, nil
	})
	if isCopy {
		j.r.failf("the agent of another cluster renews the heartbeat of %q with the identity of this cluster (kube-system UID %s), so one of the two is a copy of the other. "+
			"If this one is the copy, give it another ID: \"kubectl clusterset leave --from member\" here, delete the ClusterProperty %s if it is left, and join with --cluster-id. "+
			"If this one replaces the other, stop the agent of the other, and run this again after %s", j.id, j.uid, aboutv1beta1.ClusterIDProperty, waiting)
	}
	return err
}
