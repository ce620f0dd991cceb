// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// watchedServer is an API server whose objects are read from a cache. Kinds that the user may not read, or that the API server does not
// have, are read from the API server itself, which answers with the reason.
type watchedServer struct {
	client.Client
	cache cache.Cache
	// changed is called after each change. stale is set if the objects have changed since they were read.
	changed func()
	stale   atomic.Bool

	mu sync.Mutex
	// failure is why the API server does not answer, since failed; nil if it answers.
	failure error
	failed  time.Time
}

// watchServer fills a cache with all objects of some kinds, and keeps it up to date until ctx ends. c is a client without a cache.
func watchServer(ctx context.Context, config *rest.Config, c client.Client, kinds map[client.Object]cache.ByObject, changed func()) (*watchedServer, error) {
	s := &watchedServer{Client: c, changed: changed}
	config = apiserver.Config(config)
	config.Wrap(s.wrap)
	options := cache.Options{
		Scheme: c.Scheme(), Mapper: c.RESTMapper(), ReaderFailOnMissingInformer: true, ByObject: map[client.Object]cache.ByObject{},
		DefaultTransform: reduce, DefaultUnsafeDisableDeepCopy: new(true), // what reads them changes nothing
	}
	asking, cancel := context.WithTimeout(ctx, survey.ReadTimeout)
	defer cancel()
	for kind, part := range kinds {
		readable, err := s.isReadable(asking, kind, slices.Sorted(maps.Keys(part.Namespaces)))
		if err != nil {
			return nil, err
		}
		if readable {
			options.ByObject[kind] = part
		}
	}
	var err error
	if s.cache, err = cache.New(config, options); err != nil {
		return nil, err
	}
	for kind := range options.ByObject {
		informer, err := s.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", clusterset.KindOf(kind), err)
		}
		if _, err := informer.AddEventHandler(s.handler()); err != nil {
			return nil, fmt.Errorf("watch %s: %w", clusterset.KindOf(kind), err)
		}
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// isReadable reports whether the API server has a kind and the user may list it, in some namespaces or in all.
func (s *watchedServer) isReadable(ctx context.Context, kind client.Object, namespaces []string) (bool, error) {
	gvk, err := apiutil.GVKForObject(kind, s.Scheme())
	if err != nil {
		return false, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		err := s.Client.List(ctx, list, client.Limit(1), client.InNamespace(namespace))
		switch {
		case apiserver.IsNotFound(err) || apierrors.IsForbidden(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("list %s: %w", gvk.Kind, err)
		}
	}
	return true, nil
}

// start fills the cache.
func (s *watchedServer) start(ctx context.Context) error {
	go func() { _ = s.cache.Start(ctx) }() // it stops with ctx, and fails only if it is started twice
	syncCtx, cancel := context.WithTimeout(ctx, survey.ReadTimeout)
	defer cancel()
	if !s.cache.WaitForCacheSync(syncCtx) {
		return fmt.Errorf("it has not answered within %s", survey.ReadTimeout)
	}
	s.stale.Store(true)
	return nil
}

func (s *watchedServer) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { s.setStale() },
		DeleteFunc: func(any) { s.setStale() },
		UpdateFunc: func(before, after any) {
			if !isRenewal(before, after) {
				s.setStale()
			}
		},
	}
}

func (s *watchedServer) setStale() {
	s.stale.Store(true)
	s.changed()
}

// List reads from the cache, or from the API server if the kind is not in the cache.
func (s *watchedServer) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := s.cache.List(ctx, list, options...)
	if missing := (*cache.ErrResourceNotCached)(nil); errors.As(err, &missing) {
		return s.Client.List(ctx, list, options...)
	}
	return err
}

// Get reads from the cache, or from the API server if the kind is not in the cache.
func (s *watchedServer) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := s.cache.Get(ctx, key, object, options...)
	if missing := (*cache.ErrResourceNotCached)(nil); errors.As(err, &missing) {
		return s.Client.Get(ctx, key, object, options...)
	}
	return err
}

// wrap notes whether the API server answers.
func (s *watchedServer) wrap(next http.RoundTripper) http.RoundTripper {
	return apiserver.RoundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if !errors.Is(err, context.Canceled) {
			s.note(failureOf(response, err))
		}
		return response, err
	})
}

// failureOf returns why a response contains no data: the API server did not answer, is not ready, or no longer accepts the credentials.
func failureOf(response *http.Response, err error) error {
	switch {
	case err != nil:
		return err
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode >= http.StatusInternalServerError:
		return errors.New(response.Status)
	}
	return nil
}

// note keeps a failure. After a failure, everything is read again.
func (s *watchedServer) note(failure error) {
	s.mu.Lock()
	was := s.failure
	s.failure = failure
	if was == nil && failure != nil {
		s.failed = time.Now()
	}
	s.mu.Unlock()
	switch {
	case was != nil && failure == nil:
		s.setStale()
	case was == nil && failure != nil:
		s.changed()
	}
}

// unanswered returns why the API server does not answer, and false if it answers.
func (s *watchedServer) unanswered(context string) (Unanswered, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		return Unanswered{}, false
	}
	return Unanswered{Context: context, Since: metav1.NewTime(s.failed), Error: s.failure.Error()}, true
}
