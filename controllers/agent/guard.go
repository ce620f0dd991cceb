// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// guard stops the agent if the cluster ID changes, which must not happen while the cluster is a member (spec K2).
type guard struct {
	cache cache.Cache
	id    clusterset.ClusterID
}

// NeedLeaderElection returns false: a standby must not use the old ID either.
func (g *guard) NeedLeaderElection() bool { return false }

// Start returns nil when ctx ends, and an error if the ID changes. It ignores the deletion of the property: the next start of the
// agent reads it.
func (g *guard) Start(ctx context.Context) error {
	informer, err := g.cache.GetInformer(ctx, &aboutv1beta1.ClusterProperty{})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch ClusterProperties: %w", err)
	}
	changed := make(chan string, 1)
	compare := func(object any) {
		property, ok := object.(*aboutv1beta1.ClusterProperty)
		if !ok || property.Name != aboutv1beta1.ClusterIDProperty || property.Spec.Value == string(g.id) {
			return
		}
		select {
		case changed <- property.Spec.Value:
		default: // one is enough
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    compare,
		UpdateFunc: func(_, current any) { compare(current) },
	})
	if err != nil {
		return fmt.Errorf("watch ClusterProperties: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }() // the cache stops with the agent
	select {
	case <-ctx.Done():
		return nil
	case value := <-changed:
		return fmt.Errorf("the ClusterProperty %s has changed from %q to %q: a cluster keeps its ID while it is a member; "+
			"set it back, or let the cluster leave the clusterset and join again under the new ID",
			aboutv1beta1.ClusterIDProperty, g.id, value)
	}
}
