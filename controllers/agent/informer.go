// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"strings"
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
		return namespacedIndexes{toolscache.NewSharedIndexInformer(withoutWatchList{source, source}, of, resync, by)}
	}
}

// namespacedIndexes is an informer whose indexes find objects in one namespace only. controller-runtime enters each object a second time, for
// lists of all namespaces, which the agent does not make by an index. That takes memory, and with one entry for each object, an index has
// nothing to do when the object changes.
type namespacedIndexes struct{ toolscache.SharedIndexInformer }

// AddIndexers adds indexers without their entries for all namespaces.
func (i namespacedIndexes) AddIndexers(indexers toolscache.Indexers) error {
	namespaced := toolscache.Indexers{}
	for name, entriesOf := range indexers {
		namespaced[name] = func(object any) ([]string, error) {
			entries, err := entriesOf(object)
			if len(entries) < 2 { // an object without a namespace has no other entry
				return entries, err
			}
			return slices.DeleteFunc(entries, func(entry string) bool { return strings.HasPrefix(entry, "__all_namespaces/") }), err
		}
	}
	return i.SharedIndexInformer.AddIndexers(namespaced)
}
