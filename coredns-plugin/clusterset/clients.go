// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	mcsalpha "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned/typed/apis/v1alpha1"
	mcsbeta "sigs.k8s.io/mcs-api/pkg/client/clientset/versioned/typed/apis/v1beta1"
)

// clients read what the plugin needs, and nothing else.
type clients struct {
	core  kubernetes.Interface
	beta  mcsbeta.MulticlusterV1beta1Interface
	alpha mcsalpha.MulticlusterV1alpha1Interface
}

// newClients returns the clients for an API server. It does not connect yet.
func newClients(config *rest.Config) (clients, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // two watches need no throttle; the API server's Priority and Fairness protects it
	custom := rest.CopyConfig(config)
	custom.ContentType = runtime.ContentTypeJSON // custom resources have no other
	config.ContentType = runtime.ContentTypeProtobuf
	var c clients
	var err error
	if c.core, err = kubernetes.NewForConfig(config); err != nil {
		return clients{}, err
	}
	if c.beta, err = mcsbeta.NewForConfig(custom); err != nil {
		return clients{}, err
	}
	c.alpha, err = mcsalpha.NewForConfig(custom)
	return c, err
}

// importVersion returns the version of ServiceImports to read: v1beta1, or v1alpha1 if only that is served. The error is
// errNoImports if the API server serves neither.
func (c clients) importVersion(ctx context.Context) (string, error) {
	for _, gv := range []string{v1beta1.GroupVersion.String(), v1alpha1.GroupVersion.String()} {
		raw, err := c.core.Discovery().RESTClient().Get().AbsPath("/apis/"+gv).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("asking what is in %s: %w", gv, err)
		}
		var resources metav1.APIResourceList
		if err := json.Unmarshal(raw, &resources); err != nil {
			return "", fmt.Errorf("reading what is in %s: %w", gv, err)
		}
		if slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == string(kindImport) }) {
			return gv[len(v1beta1.GroupName)+1:], nil
		}
	}
	return "", errNoImports
}

// imports returns the source of all ServiceImports, in one version.
func (c clients) imports(version string) cache.ListWatch {
	if version == v1alpha1.GroupVersion.Version {
		return listWatch(c.alpha.ServiceImports(metav1.NamespaceAll), "")
	}
	return listWatch(c.beta.ServiceImports(metav1.NamespaceAll), "")
}

// slices returns the source of the EndpointSlices that belong to multi-cluster services.
func (c clients) slices() cache.ListWatch {
	return listWatch(c.core.DiscoveryV1().EndpointSlices(metav1.NamespaceAll), v1beta1.LabelServiceName)
}

// listWatcher is the client of a kind with lists of type L.
type listWatcher[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func listWatch[L runtime.Object](client listWatcher[L], labelSelector string) cache.ListWatch {
	return cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = labelSelector
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = labelSelector
			return client.Watch(ctx, o)
		},
	}
}
