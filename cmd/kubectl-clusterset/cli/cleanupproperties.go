// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// cleanProperties deletes the ClusterProperties that the agent has created, that of the clusterset, and that of the ID if join created
// it.
func (l *leaveCommand) cleanProperties(ctx context.Context) error {
	ofMember := &aboutv1beta1.ClusterPropertyList{}
	if err := l.member.client.List(ctx, ofMember, client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}); err != nil && !isAbsentKind(err) {
		return fmt.Errorf("list ClusterProperties: %w", err)
	}
	if err := deleteManaged(ctx, l, aboutv1beta1.GroupVersion.WithKind("ClusterProperty").GroupKind(), pointers(ofMember.Items)); err != nil {
		return err
	}
	for _, name := range []string{aboutv1beta1.ClusterSetProperty, aboutv1beta1.ClusterIDProperty} {
		existing, err := property(ctx, l.member, name)
		if err != nil {
			return err
		}
		if existing == nil || name == aboutv1beta1.ClusterIDProperty && existing.Labels[labelPartOf] != partOf {
			continue
		}
		object, err := newProperty(name, existing.Spec.Value)
		if err != nil {
			return err
		}
		outcome, err := l.member.install.Delete(ctx, object)
		if err != nil {
			return err
		}
		l.r.deleted(outcome, object, object.GroupVersionKind().GroupKind())
	}
	return nil
}
