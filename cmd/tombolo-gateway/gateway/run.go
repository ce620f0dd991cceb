// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/metricsauth"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Options are the options of a gateway.
type Options struct {
	// Cluster is the cluster of the gateway.
	Cluster *rest.Config
	// Namespace, PodName, PodUID and PodIPs are those of the gateway's pod.
	Namespace, PodName, PodUID string
	PodIPs                     []string
	// Listen is the address for the gateways of other clusters, as host and port.
	Listen string
	// MetricsAddress and ProbeAddress are host and port; "0" disables them.
	MetricsAddress, ProbeAddress string
	// MetricsAuth serves the metrics by HTTPS, to accounts that may get /metrics.
	MetricsAuth bool
	// DrainTimeout is how long a gateway that stops waits for its streams.
	DrainTimeout time.Duration
	// MaxStreams is the largest number of streams in each direction, and MaxStreamsEach that of one client, or one other cluster.
	MaxStreams, MaxStreamsEach int
	// StreamMemory is the memory of the streams of both directions, in bytes; 0 for no bound.
	StreamMemory int64
	// LargeBuffers is the largest number of buffers of 256 KiB; small ones have as much memory.
	LargeBuffers int
	Log          logr.Logger
	// AccessLog gets a line for each stream that has ended; nil for none.
	AccessLog *slog.Logger
	Registry  prometheus.Registerer
}

// Validate returns what is missing.
func (o Options) Validate() error {
	switch {
	case o.Cluster == nil:
		return errors.New("no cluster: run in a pod, or set --kubeconfig")
	case o.Namespace == "" || o.PodName == "" || o.PodUID == "" || len(o.PodIPs) == 0:
		return errors.New("the environment lacks POD_NAMESPACE, POD_NAME, POD_UID or POD_IPS: see manifests/gateway/deployment.yaml")
	}
	return nil
}

// Run runs a gateway until ctx ends, and then until its streams have ended or DrainTimeout has passed.
func Run(ctx context.Context, options Options) error {
	if err := options.Validate(); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), mcsv1beta1.Install(scheme), gatewayv1alpha1.AddToScheme(scheme), policyv1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("build the scheme: %w", err)
	}
	own := map[string]cache.Config{options.Namespace: {}}
	metrics := metricsserver.Options{BindAddress: options.MetricsAddress}
	if options.MetricsAuth {
		metrics = metricsauth.Options(options.MetricsAddress)
	}
	mgr, err := manager.New(options.Cluster, manager.Options{
		Scheme: scheme,
		Logger: options.Log,
		Cache: cache.Options{
			DefaultTransform: caches.StripManagedFields,
			NewInformer:      newInformer(options),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}:                    {Transform: compactPod},
				&corev1.Namespace{}:              {Transform: compactNamespace},
				&gatewayv1alpha1.RemoteGateway{}: {Namespaces: own},
				&corev1.Secret{}:                 {Namespaces: own, Field: fields.OneTermEqualSelector("metadata.name", clusterset.GatewayCertificateSecret)},
			},
		},
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&gatewayv1alpha1.GatewayStatus{}}}},
		Metrics:                 metrics,
		GracefulShutdownTimeout: new(options.DrainTimeout + 5*time.Second),
	})
	if err != nil {
		return fmt.Errorf("set up the gateway: %w", err)
	}
	g := newGateway(ctx, options, mgr.GetCache(), mgr.GetEventRecorder("tombolo-gateway"))
	reports := &reporter{options: options, api: mgr.GetClient()}
	probes, err := g.probes(options.ProbeAddress)
	if err != nil {
		return err
	}
	if probes != nil {
		if err := mgr.Add(probes); err != nil {
			return fmt.Errorf("add the server of the probes: %w", err)
		}
	}
	err = errors.Join(
		g.watch(ctx, mgr.GetCache()),
		options.Registry.Register(g),
		options.Registry.Register(g.rules.denials),
		options.Registry.Register(g.unknown),
		options.Registry.Register(g.importer.Metrics),
		options.Registry.Register(g.exporter.Metrics),
		mgr.Add(manager.RunnableFunc(g.run)),
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			reports.run(ctx, g.reachable)
			return nil
		})),
	)
	if err != nil {
		return fmt.Errorf("set up the gateway: %w", err)
	}
	return mgr.Start(ctx)
}

// watch starts the informers of all kinds that the gateway reads, and says what is notified of their changes.
func (g *gateway) watch(ctx context.Context, c cache.Cache) error {
	if err := errors.Join(
		c.IndexField(ctx, &discoveryv1.EndpointSlice{}, caches.IndexSource, caches.SourceIndex),
		c.IndexField(ctx, &corev1.Pod{}, caches.IndexAddress, caches.PodAddresses),
		c.IndexField(ctx, &corev1.Service{}, indexServiceAddress, serviceAddresses),
	); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	for _, kind := range []struct {
		object  client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&mcsv1beta1.ServiceExport{}, follow(g.rules.exports.observe)},
		{&discoveryv1.EndpointSlice{}, follow(g.claims.observe)},
		{&gatewayv1alpha1.RemoteGateway{}, notifying(g.notify, nil)},
		{&gatewayv1alpha1.RemoteGateway{}, notifying(g.rules.notify, sameProperties)},
		{&corev1.Secret{}, notifying(g.notify, nil)},
		{&policyv1alpha1.ClusterServiceAccessPolicy{}, notifying(g.rules.notify, sameSpec)},
		{&policyv1alpha1.ServiceExportGrant{}, notifying(g.rules.notify, sameSpec)},
		{&corev1.Namespace{}, notifying(g.rules.notify, sameNamespace)},
		{&corev1.Pod{}, notifying(g.pods.notify, nil)},
		{&corev1.Service{}, toolscache.ResourceEventHandlerFuncs{}}, // it is only read
	} {
		informer, err := c.GetInformer(ctx, kind.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		registration, err := informer.AddEventHandler(kind.handler)
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		g.synced = append(g.synced, registration.HasSyncedChecker())
	}
	return nil
}

// notifying returns a handler that calls changed for each event, without the updates that same calls equal; nil for each update.
func notifying(changed func(), same func(before, after any) bool) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			if same == nil || !same(before, after) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	}
}

// follow returns a handler that calls observe with the state of each object, which is nil if the object was deleted.
func follow[T client.Object](observe func(client.ObjectKey, T)) toolscache.ResourceEventHandler {
	exists := func(object any) {
		if existing, ok := object.(T); ok {
			observe(client.ObjectKeyFromObject(existing), existing)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    exists,
		UpdateFunc: func(_, after any) { exists(after) },
		DeleteFunc: func(object any) {
			if last, missed := object.(toolscache.DeletedFinalStateUnknown); missed {
				object = last.Obj
			}
			if former, ok := object.(T); ok {
				var none T
				observe(client.ObjectKeyFromObject(former), none)
			}
		},
	}
}

// listed is a source that is listed in one response, not streamed: a stream would not have the rules that stay.
type listed struct {
	toolscache.ListerWatcher
	toolscache.ListerWatcherWithContext
}

// IsWatchListSemanticsUnSupported returns true. client-go calls it before it streams.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// newInformer returns the constructor of informers that keep the rules whose kind is deleted.
func newInformer(options Options) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		reader := toolscache.ToListerWatcherWithContext(from)
		plain := &toolscache.ListWatch{ListWithContextFunc: reader.ListWithContext, WatchFuncWithContext: reader.WatchWithContext}
		source := caches.RetainRules(options.Cluster, of, plain, func(definition string, count int) {
			if count > 0 {
				options.Log.Info("rules stay without their definition", "reason", caches.Retained(definition, count).Error())
			}
		})
		if source == plain {
			return toolscache.NewSharedIndexInformer(from, of, resync, by)
		}
		return toolscache.NewSharedIndexInformer(listed{source, source}, of, resync, by)
	}
}
