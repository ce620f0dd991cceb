// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tombolo-mcs/tombolo/pkg/rewind"
)

// withoutWatchList is a source that is listed in one response, not streamed. Streaming saves memory in an API server with many
// clients, such as the hub. A member has one agent, for which streaming takes twice as long, because objects are sent and decoded
// one by one.
type withoutWatchList struct {
	toolscache.ListerWatcher
	toolscache.ListerWatcherWithContext
}

// IsWatchListSemanticsUnSupported returns true. client-go calls it before it streams.
func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// newInformer returns the constructor of informers of the member, which list again after its API server was restored from a backup.
func newInformer(log logr.Logger) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		reader := toolscache.ToListerWatcherWithContext(from)
		source := rewind.Source(&toolscache.ListWatch{ListWithContextFunc: reader.ListWithContext, WatchFuncWithContext: reader.WatchWithContext}, func() {
			log.Info("the cluster's API server is back at an earlier state, as after a restore; listing again", "kind", fmt.Sprintf("%T", of))
		})
		return toolscache.NewSharedIndexInformer(withoutWatchList{source, source}, of, resync, by)
	}
}
