// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestNamespacedIndexes: an index finds the objects of a namespace, and has no entries for all namespaces.
func TestNamespacedIndexes(t *testing.T) {
	t.Parallel()
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	services := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			named := func(namespace string) corev1.Service {
				return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
			}
			return &corev1.ServiceList{Items: []corev1.Service{named("shop"), named("stock")}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
	read, err := cache.New(&rest.Config{}, cache.Options{
		Mapper: kinds,
		NewInformer: func(_ toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
			return informers{log: logr.Discard()}.indexed()(services, of, resync, by)
		},
	})
	check.Must(t, err)
	check.Must(t, read.IndexField(t.Context(), &corev1.Service{}, "name", func(o client.Object) []string { return []string{o.GetName()} }))
	go func() {
		if err := read.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if !read.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache has not synced")
	}
	for namespace, want := range map[string]int{"shop": 1, "stock": 1, "other": 0, metav1.NamespaceAll: 0} {
		var found corev1.ServiceList
		check.Must(t, read.List(t.Context(), &found, client.InNamespace(namespace), client.MatchingFields{"name": "web"}))
		if len(found.Items) != want {
			t.Errorf("in namespace %q, the index finds %d services, want %d", namespace, len(found.Items), want)
		}
	}
}
