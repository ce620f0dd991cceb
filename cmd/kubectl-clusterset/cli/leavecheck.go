// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// check sets the cluster ID, and fails if it is not the ID of the selected cluster (K2).
func (l *leaveCommand) check(ctx context.Context) error {
	l.r.titlef("Checking")
	wanted := l.given
	if l.member != nil {
		own, err := property(ctx, l.member, aboutv1beta1.ClusterIDProperty)
		if err != nil {
			return err
		}
		switch {
		case own == nil && wanted == "" && l.from == memberOnly:
			l.r.notef("this cluster has no ClusterProperty %s: whatever is left of Tombolo in it is removed", aboutv1beta1.ClusterIDProperty)
			return nil
		case own != nil && wanted != "" && own.Spec.Value != wanted:
			l.r.failf("this cluster calls itself %q, not %q: correct --cluster-id or --context", own.Spec.Value, wanted)
			return nil
		case own != nil:
			wanted = own.Spec.Value
		}
	}
	id, err := clusterset.ParseClusterID(wanted)
	if err != nil {
		l.r.failf("%v", err)
		return nil
	}
	l.id = id
	l.r.okf("cluster ID %q", id)
	if l.hub == nil {
		return nil
	}
	return l.checkHolder(ctx)
}

// checkHolder fails if another cluster than the selected one has sent the heartbeat on the hub.
func (l *leaveCommand) checkHolder(ctx context.Context) error {
	beat := &hubv1alpha1.Heartbeat{}
	err := l.hub.client.Get(ctx, client.ObjectKey{Namespace: l.id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}, beat)
	if isAbsentKind(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get the heartbeat of %s on the hub: %w", l.id, err)
	}
	if l.member == nil {
		l.r.notef("its last heartbeat, by its own clock, was at %s", beat.Spec.RenewTime.UTC().Format("2006-01-02 15:04:05 MST"))
		return nil
	}
	uid, err := clusterUID(ctx, l.member)
	if err != nil {
		return err
	}
	if uid != beat.Spec.ClusterUID {
		l.r.failf("on the hub, %q is another cluster (its kube-system has the UID %s, this one's %s): to take this one out, pass --from member", l.id, beat.Spec.ClusterUID, uid)
		return nil
	}
	return l.checkCopy(ctx, beat)
}

// checkCopy fails if the heartbeat on the hub is not that of the process that holds the Lease of this cluster, or held it last: then this
// cluster is a copy of the member, and its leaving would delete the member.
func (l *leaveCommand) checkCopy(ctx context.Context, beat *hubv1alpha1.Heartbeat) error {
	if beat.Spec.Nonce == "" { // an older agent
		return nil
	}
	lease, isLast, err := isLastSender(ctx, l.hub, l.member, beat)
	if err != nil {
		return err
	}
	if lease == nil {
		l.r.notef("this cluster has no Lease of an agent, so it cannot be checked that %s is not a copy of it", l.id)
		return nil
	}
	if !isLast {
		l.r.failf("the last heartbeat of %q on the hub is not from the agent of this cluster, so this cluster can be a copy of the member: to take only this cluster out, pass --from member; "+
			"if this cluster is the member, run this again when its agent has sent a heartbeat, or use --from member here and then --from hub", l.id)
	}
	return nil
}
