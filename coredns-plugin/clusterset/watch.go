// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/rewind"
)

// backoff is for lists and watches that fail. It is short, so that the plugin reconnects soon after the API server is back, and has
// jitter, so that not all servers of a cluster reconnect at once.
func backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 8, Cap: 10 * time.Second}
}

// errGone is returned if the API server does not serve a resource.
var errGone = errors.New("the API server does not serve it")

// watcher reads the objects of one API server into the table.
type watcher struct {
	clients clients
	feeds   map[kind]*feed
	gauges  gauges
	absent  func() // called if the API server does not serve ServiceImports

	mu     sync.Mutex
	failed map[kind]string // the error of the last request, logged once
}

// run reads until ctx ends.
func (w *watcher) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { w.followImports(ctx) })
	if f := w.feeds[kindSlice]; f != nil {
		group.Go(func() { w.follow(ctx, f, w.clients.slices(), &discoveryv1.EndpointSlice{}) })
	}
}

// followImports finds the version of ServiceImports that the API server serves, follows it as long as it is served, and starts again.
// It repeats that while there is none: the CRD may be installed later.
func (w *watcher) followImports(ctx context.Context) {
	pause := backoff().DelayFunc()
	for ctx.Err() == nil {
		version, err := w.clients.importVersion(ctx)
		switch {
		case errors.Is(err, errGone):
			w.report(kindImport, err)
			w.gauges.crdAbsent()
			w.absent()
		case err != nil:
			w.report(kindImport, err)
		default:
			w.gauges.crdServed()
			pause = backoff().DelayFunc()
			w.follow(ctx, w.feeds[kindImport], w.clients.imports(version), objectOf(version))
		}
		timer := time.NewTimer(pause())
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func objectOf(version string) runtime.Object {
	if version == v1alpha1.GroupVersion.Version {
		return &v1alpha1.ServiceImport{}
	}
	return &v1beta1.ServiceImport{}
}

// follow lists and watches one resource until ctx ends; ServiceImports, until the API server does not serve this version. A 404 for
// EndpointSlices is from a proxy, because each API server serves them, so the request is repeated.
func (w *watcher) follow(ctx context.Context, f *feed, source cache.ListWatch, object runtime.Object) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	check := func(err error) {
		w.report(f.kind, err)
		if f.kind == kindImport && apierrors.IsNotFound(err) {
			stop()
		}
	}
	noted := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := source.ListWithContextFunc(ctx, options)
			check(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watcher, err := source.WatchFuncWithContext(ctx, options)
			check(err)
			return watcher, err
		},
	}
	current := rewind.Source(noted, func() {
		log.Infof("the API server is back at an earlier state, as after a restore; listing %s again", f.kind)
	})
	quiet := logr.Discard() // report logs errors, each once
	reflector := cache.NewReflectorWithOptions(current, object, f, cache.ReflectorOptions{
		Name: name + "/" + string(f.kind), Logger: &quiet, Backoff: backoff(),
	})
	reflector.RunWithContext(klog.NewContext(ctx, quiet))
}

// report counts a failed request, and logs a new error.
func (w *watcher) report(k kind, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		if w.failed[k] != "" {
			log.Infof("reading %s again", k)
		}
		delete(w.failed, k)
		return
	}
	if errors.Is(err, context.Canceled) {
		return // the plugin stops
	}
	w.gauges.watchError(k)
	if w.failed[k] == err.Error() {
		return
	}
	w.failed[k] = err.Error()
	log.Warningf("cannot read %s; trying again, and serving meanwhile what was last seen: %s", k, err)
}

var errNoImports = fmt.Errorf("neither %s nor %s has serviceimports (install the CustomResourceDefinitions of the Multi-Cluster Services API): %w",
	v1beta1.GroupVersion, v1alpha1.GroupVersion, errGone)
