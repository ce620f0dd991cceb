// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// oneInformer is a cache with the informer of one kind.
type oneInformer struct {
	cache.Cache
	informer toolscache.SharedIndexInformer
}

func (c oneInformer) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return c.informer, nil
}

// TestPromptCache: a source has synced at once when all objects are read, and not before.
func TestPromptCache(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		read := make(chan struct{})
		informer := toolscache.NewSharedIndexInformer(withoutWatchList{ListerWatcherWithContext: &toolscache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				<-read
				return &corev1.ServiceList{Items: []corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
		}}, &corev1.Service{}, 0, nil)
		go informer.RunWithContext(ctx)
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		services := source.Kind(promptCache{oneInformer{informer: informer}}, &corev1.Service{}, &handler.TypedEnqueueRequestForObject[*corev1.Service]{})
		check.Must(t, services.Start(ctx, queue))
		hasSynced := false
		go func() {
			if err := services.WaitForSync(ctx); err != nil {
				t.Error(err)
			}
			hasSynced = true
		}()
		synctest.Wait()
		if hasSynced || queue.Len() > 0 {
			t.Errorf("before the services are read: in sync %t, %d enqueued", hasSynced, queue.Len())
		}
		close(read)
		synctest.Wait() // no time passes: a source that polls would still wait
		if !hasSynced || queue.Len() != 1 {
			t.Errorf("when the services are read: in sync %t, %d enqueued, want true and 1", hasSynced, queue.Len())
		}
		queue.ShutDown()
		cancel()
	})
}
