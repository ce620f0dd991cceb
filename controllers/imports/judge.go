// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/sources"
	"github.com/tombolo-mcs/tombolo/pkg/breaker"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
)

// judge has the hub's last list compared with what this cluster has imported, before anything is deleted because of it
// (design decision 7).
func (r *Reconciler) judge(ctx context.Context) error {
	found, err := r.Sources.Hub.Judge(r.Clock.Now(), func() (map[clusterset.ClusterID][]breaker.Record, error) { return r.imported(ctx) })
	if err != nil {
		return fmt.Errorf("judge what the hub has lost: %w", err)
	}
	for _, hold := range found {
		log.FromContext(ctx).Info("the hub has lost most of what a member exported; what there is of it is kept until it is confirmed",
			"member", hold.Member, "records", hold.Total(), "services", len(hold.Records))
	}
	return nil
}

// imported returns what this cluster has of each member: the exports that its ServiceImports name, and its mirrored
// slices.
func (r *Reconciler) imported(ctx context.Context) (map[clusterset.ClusterID][]breaker.Record, error) {
	result := map[clusterset.ClusterID][]breaker.Record{}
	list := &mcsv1beta1.ServiceImportList{}
	if err := r.Member.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ServiceImports: %w", err)
	}
	for i := range list.Items {
		if !clusterset.IsManaged(list.Items[i].Labels) {
			continue
		}
		for _, status := range list.Items[i].Status.Clusters {
			id := clusterset.ClusterID(status.Cluster)
			result[id] = append(result[id], breaker.Record{Key: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	slices := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, slices, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list EndpointSlices: %w", err)
	}
	for i := range slices.Items {
		if key, ok := sources.MirroredService(&slices.Items[i]); ok {
			source := keyOf(&slices.Items[i])
			result[source.cluster] = append(result[source.cluster], breaker.Record{Key: key, Slice: source.id})
		}
	}
	return result, nil
}

// announceHold says, once for each import, that the loss of an exporter is not believed.
func (r *Reconciler) announceHold(before, after *mcsv1beta1.ServiceImport) {
	held := meta.FindStatusCondition(after.Status.Conditions, conditions.TypeDeletionHeld)
	if held != nil && meta.FindStatusCondition(before.Status.Conditions, conditions.TypeDeletionHeld) == nil {
		r.Events.Eventf(after, nil, corev1.EventTypeWarning, held.Reason, "Import", "%s", conditions.EventNote(held.Message))
	}
}
