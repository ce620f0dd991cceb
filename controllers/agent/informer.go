// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/rewind"
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

// informers are what the informers of a member's objects need.
type informers struct {
	log     logr.Logger
	config  *rest.Config
	changes kindChanges
	rules   *retainedRules
}

type informerConstructor = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// indexed returns the constructor of informers of the member, whose indexes find objects in one namespace only.
func (i informers) indexed() informerConstructor {
	inner := i.plain()
	return func(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		return namespacedIndexes{inner(from, of, resync, by)}
	}
}

// plain returns the constructor of informers that list again after the member's API server was restored from a backup, and that keep rules whose
// kind is deleted.
func (i informers) plain() informerConstructor {
	return func(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		reader := toolscache.ToListerWatcherWithContext(from)
		source := rewind.Source(caches.RetainRules(i.config, of, noticed(reader, i.changes), i.rules.set), func() {
			i.log.Info("the cluster's API server is back at an earlier state, as after a restore; listing again", "kind", fmt.Sprintf("%T", of))
		})
		return toolscache.NewSharedIndexInformer(withoutWatchList{source, source}, of, resync, by)
	}
}

// noticed returns a source that notifies changes when a watch begins, and when the kind is not served.
func noticed(from toolscache.ListerWatcherWithContext, changes kindChanges) *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := from.ListWithContext(ctx, options)
			if apierrors.IsNotFound(err) {
				changes.notify()
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			changes.notify()
			return from.WatchWithContext(ctx, options)
		},
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
