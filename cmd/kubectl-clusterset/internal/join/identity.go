// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/admission"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/identity"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// checkIdentity sets the cluster ID and the clusterset from the existing ClusterProperties, else from the flags (K1, K2).
func (j *command) checkIdentity(ctx context.Context) error {
	own, err := identity.Property(ctx, j.member, aboutv1beta1.ClusterIDProperty)
	if err != nil {
		return err
	}
	wanted := j.ClusterID
	if own != nil && wanted == "" {
		wanted = own.Spec.Value
	}
	id, err := clusterset.ParseClusterID(wanted)
	switch {
	case err != nil:
		j.r.Failf("%v", err)
	case own != nil && own.Spec.Value != wanted:
		j.r.Failf("this cluster calls itself %q (ClusterProperty %s), not %q: leave out --cluster-id; or, to rename it, let it leave, delete that ClusterProperty, and join again",
			own.Spec.Value, own.Name, wanted)
	default:
		j.ID = id
		j.r.Okf("cluster ID %q", id)
	}
	return j.checkClusterSet(ctx, own)
}

func (j *command) checkClusterSet(ctx context.Context, own *aboutv1beta1.ClusterProperty) error {
	set, err := identity.Property(ctx, j.member, aboutv1beta1.ClusterSetProperty)
	if err != nil {
		return err
	}
	name := j.ClusterSet
	switch {
	case name == "" && set != nil:
		name = set.Spec.Value
	case name == "":
		name = admission.DefaultClusterSet
	}
	if set != nil && set.Spec.Value != name {
		j.r.Failf("this cluster is a member of clusterset %q (ClusterProperty %s), not %q: leave that first, or correct --clusterset", set.Spec.Value, set.Name, name)
	}
	if j.ID == "" {
		return nil
	}
	for _, p := range []struct {
		existing    *aboutv1beta1.ClusterProperty
		name, value string
	}{
		{own, aboutv1beta1.ClusterIDProperty, string(j.ID)},
		{set, aboutv1beta1.ClusterSetProperty, name},
	} {
		if p.existing != nil {
			continue // an existing one is not changed
		}
		object, err := identity.NewProperty(p.name, p.value)
		if err != nil {
			return err
		}
		j.clusterProperties = append(j.clusterProperties, object)
	}
	return nil
}

// checkCopy fails if this cluster is a copy of the member: another process than its agent renews the heartbeat (K2). If the agent of this
// cluster has not sent the last one, because it has just been started, or because it has ended, the next one shows it.
func (j *command) checkCopy(ctx context.Context, first *hubv1alpha1.Heartbeat) error {
	if first == nil || first.Spec.Nonce == "" { // an older agent
		return nil
	}
	waiting := 2 * cmp.Or(time.Duration(first.Spec.IntervalSeconds)*time.Second, 10*time.Second)
	isCopy := false
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		beat, err := identity.Heartbeat(ctx, j.Hub, j.ID)
		if err != nil || beat == nil {
			return true, err
		}
		now, err := apiserver.Time(ctx, j.Hub.Config)
		if err != nil {
			return false, err
		}
		lease, isLast, err := identity.IsLastSender(ctx, j.Hub, j.member, beat)
		switch {
		case err != nil:
			return false, err
		case isLast, lease == nil && j.Running[manifests.AgentDeployment] != nil, now.Sub(hub.RenewedAt(beat)) > waiting:
			return true, nil
		}
		isCopy = beat.ResourceVersion != first.ResourceVersion
		return isCopy, nil
	})
	if isCopy {
		j.r.Failf("the agent of another cluster renews the heartbeat of %q with the identity of this cluster (kube-system UID %s), so one of the two is a copy of the other. "+
			"If this one is the copy, give it another ID: \"kubectl clusterset leave --from member\" here, delete the ClusterProperty %s if it is left, and join with --cluster-id. "+
			"If this one replaces the other, stop the agent of the other, and run this again after %s", j.ID, j.UID, aboutv1beta1.ClusterIDProperty, waiting)
	}
	return err
}
