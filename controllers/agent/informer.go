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

// listed is a source that is listed in one answer, from the API server's cache, not streamed object by object. A stream spares an
// API server's memory where many clients come at once, as they do to the hub, which is streamed. A member has one agent, to which
// the stream takes twice as long: it is told and decoded one by one.
type listed struct {
	toolscache.ListerWatcher
	toolscache.ListerWatcherWithContext
}

// IsWatchListSemanticsUnSupported is how client-go asks whether not to stream.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// newInformer returns what makes the informers of the member's own cluster, which list again after it was restored from a backup.
func newInformer(log logr.Logger) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		reader := toolscache.ToListerWatcherWithContext(from)
		source := rewind.Source(&toolscache.ListWatch{ListWithContextFunc: reader.ListWithContext, WatchFuncWithContext: reader.WatchWithContext}, func() {
			log.Info("the cluster's API server is back at an earlier state, as after a restore; listing again", "kind", fmt.Sprintf("%T", of))
		})
		return toolscache.NewSharedIndexInformer(listed{source, source}, of, resync, by)
	}
}
