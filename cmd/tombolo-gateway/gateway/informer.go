// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
)

// listed is a source that is listed in one response, not streamed: a stream would not have the rules that stay.
type listed struct {
	toolscache.ListerWatcher
	toolscache.ListerWatcherWithContext
}

// IsWatchListSemanticsUnSupported returns true. client-go calls it before it streams.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// newInformer returns the constructor of informers that keep the rules whose kind is deleted.
func newInformer(options Options) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		reader := toolscache.ToListerWatcherWithContext(from)
		plain := &toolscache.ListWatch{ListWithContextFunc: reader.ListWithContext, WatchFuncWithContext: reader.WatchWithContext}
		source := caches.RetainRules(options.Cluster, of, plain, func(definition string, count int) {
			if count > 0 {
				options.Log.Info("rules stay without their definition", "reason", caches.Retained(definition, count).Error())
			}
		})
		if source == plain {
			return toolscache.NewSharedIndexInformer(from, of, resync, by)
		}
		return toolscache.NewSharedIndexInformer(listed{source, source}, of, resync, by)
	}
}
