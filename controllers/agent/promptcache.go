// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// promptCache is a cache for sources that wait until they have read all objects. source.Kind asks three times whether a cache, or a
// handler, has synced, and again every 100 ms. With this cache, the first answer is always yes, because adding a handler waits.
type promptCache struct{ cache.Cache }

// GetInformer returns an informer at once. Before it has synced, it must only be used to add handlers.
func (c promptCache) GetInformer(ctx context.Context, of client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, of, append(options, cache.BlockUntilSynced(false))...)
	if err != nil {
		return nil, err
	}
	return promptInformer{informer, func(by toolscache.DoneChecker) { toolscache.WaitFor(ctx, "", by) }}, nil
}

// WaitForCacheSync returns true: each source waits for the objects of its own kind, and a reader for those that it reads.
func (promptCache) WaitForCacheSync(context.Context) bool { return true }

type promptInformer struct {
	cache.Informer
	wait func(toolscache.DoneChecker)
}

// AddEventHandlerWithOptions returns when the handler has received all objects, or the context of GetInformer has ended.
func (i promptInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := i.Informer.AddEventHandlerWithOptions(handler, options)
	if err == nil {
		i.wait(registration.HasSyncedChecker())
	}
	return registration, err
}
