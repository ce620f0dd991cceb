// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// accepting runs do while the clusters accept the deletions of the member. What it adds to their Members it takes away again,
// whether do fails, or is interrupted; what somebody else has put there stays.
func (l *releasing) accepting(ctx context.Context, clusters []clusterset.ClusterID, do func(context.Context) error) (err error) {
	l.r.titlef("On the hub")
	var changed []clusterset.ClusterID
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		for _, id := range changed {
			if _, failure := l.edit(ctx, id, without); failure != nil {
				err = errors.Join(err, fmt.Errorf("%w: take %s out of acceptDeletionsOf of Member %s/%s by hand, or its next loss will be believed at once",
					failure, l.member, id.HubNamespace(), hubv1alpha1.MemberName))
				continue
			}
			l.r.okf("%s takes no loss of %s for granted any more", id, l.member)
		}
	}()
	for _, id := range clusters {
		outcome, err := l.edit(ctx, id, with)
		if outcome == apply.Configured {
			changed = append(changed, id)
		}
		if err != nil {
			return err
		}
		l.r.did(outcome, fmt.Sprintf("Member %s/%s: it accepts deletions of %s", id.HubNamespace(), hubv1alpha1.MemberName, l.member))
	}
	return do(ctx)
}

// edit changes whose deletions a cluster accepts. What it returns beside an error may have been done.
func (l *releasing) edit(ctx context.Context, id clusterset.ClusterID, change func(list []hubv1alpha1.ClusterID, member hubv1alpha1.ClusterID) []hubv1alpha1.ClusterID) (apply.Outcome, error) {
	var outcome apply.Outcome
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		m := &hubv1alpha1.Member{}
		key := client.ObjectKey{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName}
		if err := l.hub.client.Get(ctx, key, m); err != nil {
			return fmt.Errorf("get Member %s: %w", key, err)
		}
		before := m.Spec.AcceptDeletionsOf
		m.Spec.AcceptDeletionsOf = change(before, hubv1alpha1.ClusterID(l.member))
		if slices.Equal(before, m.Spec.AcceptDeletionsOf) {
			outcome = apply.Unchanged
			return nil
		}
		outcome = apply.Configured // after an error, it may be
		_, err := l.hub.install.Update(ctx, m)
		return err
	})
	return outcome, err
}

func with(list []hubv1alpha1.ClusterID, member hubv1alpha1.ClusterID) []hubv1alpha1.ClusterID {
	if slices.Contains(list, member) {
		return list
	}
	return append(slices.Clone(list), member)
}

func without(list []hubv1alpha1.ClusterID, member hubv1alpha1.ClusterID) []hubv1alpha1.ClusterID {
	result := slices.DeleteFunc(slices.Clone(list), func(id hubv1alpha1.ClusterID) bool { return id == member })
	if len(result) == 0 {
		return nil
	}
	return result
}
