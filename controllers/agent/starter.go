// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/credentials"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// retryInterval is the time between checks of what the cluster lacks.
const retryInterval = 2 * time.Second

// starter waits until the cluster has what the controllers need, then adds them to the running manager.
type starter struct {
	manager manager.Manager
	options Options
	since   time.Time
	// own is this process, and lease its Lease; nil if no leader is elected.
	own   clusterset.LeaseHolder
	lease *lease
	// informers has the changes of the kinds that the cluster serves, and the rules that stay without their kind.
	informers informers

	mu      sync.Mutex
	waiting error
	started bool
}

// NeedLeaderElection returns false: a standby prepares its controllers too.
func (s *starter) NeedLeaderElection() bool { return false }

// Start waits, adds the controllers, and checks until ctx ends that the kinds are still served. It returns an error if the controllers cannot
// be set up.
func (s *starter) Start(ctx context.Context) error {
	var local identity
	identified := s.waitFor(ctx, func() (err error) {
		local, err = identify(ctx, s.manager.GetAPIReader(), s.options)
		return err
	})
	if !identified { // ctx has ended
		return nil
	}
	hubClient, err := hub.Client(s.options.Hub)
	if err != nil {
		return fmt.Errorf("set up the client of the hub: %w", err)
	}
	metrics, err := newMetrics(s.options.Registry, s.since)
	if err != nil {
		return err
	}
	if err := s.addRenewal(local, hubClient, metrics); err != nil {
		return err
	}
	if !s.waitFor(ctx, func() error { return checkCRDs(s.manager.GetConfig(), s.manager, metrics) }) {
		return nil
	}
	if err := metrics.register(objectCounts{s.manager.GetCache()}); err != nil { // its kinds are served only now
		return err
	}
	if err := s.addZoneProbe(metrics); err != nil {
		return fmt.Errorf("add the queries for the clusterset's zone: %w", err)
	}
	if err := s.add(ctx, local, hubClient, metrics); err != nil {
		return err
	}
	go s.compareVersions(ctx, hubClient)
	s.options.Log.Info("started", "clusterID", local.id, "clusterUID", local.uid, "serviceCIDRs", local.serviceCIDRs)
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	s.watchKinds(ctx, metrics)
	return nil
}

// waitFor returns true when check succeeds, and false if ctx ends before.
func (s *starter) waitFor(ctx context.Context, check func() error) bool {
	err := wait.PollUntilContextCancel(ctx, retryInterval, true, func(context.Context) (bool, error) {
		reason := check()
		s.setWaiting(reason)
		return reason == nil, nil
	})
	return err == nil && ctx.Err() == nil
}

// addRenewal adds the renewal of the member's token if HubSecret is set. It does not wait for the cluster's CRDs, because the token
// could expire before they are installed.
func (s *starter) addRenewal(local identity, hubClient client.WithWatch, metrics metrics) error {
	if s.options.HubSecret == (types.NamespacedName{}) {
		return nil
	}
	err := s.manager.Add(&credentials.Renewal{
		Secret:   s.options.HubSecret,
		Account:  types.NamespacedName{Namespace: local.id.HubNamespace(), Name: name},
		Member:   s.manager.GetAPIReader(),
		ToMember: apply.ToMember(s.manager.GetClient(), s.manager.GetAPIReader()),
		ToHub:    apply.ToHub(hubClient, local.id.HubNamespace()),
		Lifetime: s.options.TokenLifetime,
		Clock:    clock.RealClock{}, Log: s.options.Log.WithName("credentials"), SetExpiry: metrics.setTokenExpiry,
	})
	if err != nil {
		return fmt.Errorf("add the renewal of the token for the hub: %w", err)
	}
	return nil
}

// setWaiting stores what the agent waits for, and logs it if it has changed.
func (s *starter) setWaiting(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason != nil && (s.waiting == nil || s.waiting.Error() != reason.Error()) {
		s.options.Log.Info("waiting", "reason", reason.Error())
	}
	s.waiting = reason
}

// check returns nil if the controllers run and the cluster serves all kinds, else what is missing.
func (s *starter) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.waiting != nil:
		return s.waiting
	case s.started:
		return s.informers.rules.err()
	}
	return errors.New("starting")
}

// add adds the connection to the hub and the controllers to the manager, which starts them.
func (s *starter) add(ctx context.Context, local identity, hubClient client.WithWatch, metrics metrics) error {
	if err := caches.AddIndexes(ctx, s.manager.GetFieldIndexer()); err != nil {
		return err
	}
	store := hub.NewStore(local.id, clusterset.AddressRanges{Denied: local.serviceCIDRs})
	connection := hub.NewConnection(store, hubClient, s.options.Log.WithName("hub"), metrics.setReachability)
	pods, err := s.hostPods(ctx)
	if err != nil {
		return fmt.Errorf("add the cache of pods: %w", err)
	}
	parts := s.controllers(local, store, connection, hubClient, metrics, pods)
	if err := s.addGateway(parts.gateway); err != nil {
		return fmt.Errorf("add the controller of gateways: %w", err)
	}
	if err := metrics.registerMembers(parts.presence, store); err != nil {
		return err
	}
	if err := errors.Join(s.manager.Add(connection), s.manager.Add(parts.presence)); err != nil {
		return fmt.Errorf("add the connection to the hub: %w", err)
	}
	if local.fromProperty { // the cluster has ClusterProperties
		if err := errors.Join(
			s.manager.Add(&guard{cache: s.manager.GetCache(), id: local.id}),
			parts.properties.Add(s.manager, s.members(), s.controllerOptions()),
		); err != nil {
			return fmt.Errorf("add the guard of the cluster ID and the controller of ClusterProperties: %w", err)
		}
	}
	if parts.autoexport != nil {
		if err := parts.autoexport.Add(s.manager, s.members(), s.controllerOptions()); err != nil {
			return fmt.Errorf("add the controller of automatic exports: %w", err)
		}
	}
	return errors.Join(
		parts.publish.Add(s.manager, s.members(), s.controllerOptions()),
		parts.exportstatus.Add(s.manager, s.members(), s.controllerOptions()),
		parts.imports.Add(s.manager, s.members(), s.controllerOptions()),
		parts.access.Add(s.manager, s.members(), s.controllerOptions()),
		parts.routing.Add(s.manager, s.members(), s.controllerOptions()),
		parts.aliases.Add(s.manager, s.members(), s.controllerOptions()),
	)
}

// hostPods adds a cache of the pods in the host network to the manager, and returns it.
func (s *starter) hostPods(ctx context.Context) (cache.Cache, error) {
	pods, err := cache.New(s.manager.GetConfig(), cache.Options{
		HTTPClient: s.manager.GetHTTPClient(), Scheme: s.manager.GetScheme(), Mapper: s.manager.GetRESTMapper(), NewInformer: s.informers.plain(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Field: fields.OneTermEqualSelector("spec.hostNetwork", "true"), Transform: caches.CompactHostPod},
		},
	})
	if err != nil {
		return nil, err
	}
	return pods, errors.Join(pods.IndexField(ctx, &corev1.Pod{}, caches.IndexAddress, caches.PodAddresses), s.manager.Add(pods))
}

// members returns the cache of the member's objects.
func (s *starter) members() cache.Cache { return promptCache{s.manager.GetCache()} }

// controllerOptions has a rate limiter that does not delay first events, and backs off after failures for each service separately.
func (s *starter) controllerOptions() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: s.options.Workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 10*time.Second),
	}
}
