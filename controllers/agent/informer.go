// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
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

// newInformer returns an informer of the member's own cluster.
func newInformer(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(listed{from, toolscache.ToListerWatcherWithContext(from)}, of, resync, by)
}
