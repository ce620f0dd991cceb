// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tombolo-mcs/tombolo/controllers/accessstatus"
	"github.com/tombolo-mcs/tombolo/controllers/aliases"
	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/credentials"
	"github.com/tombolo-mcs/tombolo/controllers/exportstatus"
	"github.com/tombolo-mcs/tombolo/controllers/gateway"
	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/controllers/presence"
	"github.com/tombolo-mcs/tombolo/controllers/properties"
	"github.com/tombolo-mcs/tombolo/controllers/publication"
	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/controllers/routing"
	"github.com/tombolo-mcs/tombolo/controllers/sources"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/reach"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// retryInterval is the time between checks of what the cluster lacks.
const retryInterval = 2 * time.Second

// starter waits until the cluster has what the controllers need, then adds them to the running manager.
type starter struct {
	manager manager.Manager
	options Options
	since   time.Time

	mu      sync.Mutex
	waiting error
	started bool
}

// NeedLeaderElection returns false: a standby prepares its controllers too.
func (s *starter) NeedLeaderElection() bool { return false }

// Start waits, adds the controllers, and returns. It returns an error if they cannot be set up.
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
	if !s.waitFor(ctx, func() error { return checkCRDs(s.manager.GetConfig(), s.manager) }) {
		return nil
	}
	if err := metrics.register(objectCounts{s.manager.GetCache()}); err != nil { // its kinds are served only now
		return err
	}
	if err := s.add(ctx, local, hubClient, metrics); err != nil {
		return err
	}
	s.options.Log.Info("started", "clusterID", local.id, "clusterUID", local.uid, "serviceCIDRs", local.serviceCIDRs)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
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

// check returns nil if the controllers run, else what is missing.
func (s *starter) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return nil
	}
	if s.waiting != nil {
		return s.waiting
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
	parts := s.controllers(local, store, hubClient, metrics)
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
		parts.accessstatus.Add(s.manager, s.members(), s.controllerOptions()),
		parts.routing.Add(s.manager, s.members(), s.controllerOptions()),
		parts.aliases.Add(s.manager, s.members(), s.controllerOptions()),
	)
}

// addGateway adds the controller of gateways, with a cache of its own, which reads one namespace, and the probes. r may be nil.
func (s *starter) addGateway(r *gateway.Reconciler) error {
	if r == nil {
		return nil
	}
	remote, err := cache.New(s.manager.GetConfig(), cache.Options{
		HTTPClient: s.manager.GetHTTPClient(), Scheme: s.manager.GetScheme(), Mapper: s.manager.GetRESTMapper(),
		NewInformer: newInformer(s.options.Log), DefaultNamespaces: map[string]cache.Config{s.options.Namespace: {}},
	})
	if err != nil {
		return err
	}
	r.Remote = remote
	return errors.Join(
		s.manager.Add(remote), s.manager.Add(&gateway.Prober{Sources: r.Sources, Reach: r.Reach}),
		r.Add(s.manager, s.members(), s.controllerOptions()),
	)
}

// parts are the controllers of an agent.
type parts struct {
	publish      *publish.Reconciler
	exportstatus *exportstatus.Reconciler
	imports      *imports.Reconciler
	accessstatus *accessstatus.Reconciler
	routing      *routing.Reconciler
	aliases      *aliases.Reconciler
	presence     *presence.Presence
	properties   *properties.Reconciler
	// autoexport is nil if labels export nothing.
	autoexport *autoexport.Reconciler
	// gateway is nil if the agent runs in another cluster: gateways run beside their agent.
	gateway *gateway.Reconciler
}

func (s *starter) controllers(local identity, store *hub.Store, hubClient client.Client, metrics metrics) parts {
	toHub := apply.ToHub(hubClient, local.id.HubNamespace())
	reader := sources.Reader{
		Cluster: local.id, Member: s.manager.GetClient(), Grants: s.manager.GetClient(), Hub: store, Selector: s.options.Selector, AgentNamespace: s.options.Namespace,
	}
	toMember := apply.ToMember(s.manager.GetClient(), s.manager.GetAPIReader())
	recorder := s.manager.GetEventRecorder(name)
	progress, outcomes := publication.NewProgress(), publication.NewOutcomes()
	present := &presence.Presence{
		Cluster: local.id, ClusterUID: local.uid, AgentVersion: s.options.Version,
		Interval: s.options.HeartbeatInterval, Grace: liveness.GracePeriods * s.options.HeartbeatInterval, AbsentTimeout: s.options.AbsentTimeout,
		Store: store, Hub: toHub, Live: hubClient, Progress: progress,
		Tracker: liveness.NewTracker(s.options.HeartbeatInterval, liveness.GracePeriods*s.options.HeartbeatInterval),
		Clock:   clock.RealClock{}, Log: s.options.Log.WithName("presence"),
	}
	var gatewayPorts *imports.GatewayPorts
	var virtualIPs *imports.VirtualIPs
	if s.options.Namespace != "" {
		gatewayPorts = &imports.GatewayPorts{
			Namespace: s.options.Namespace, Live: s.manager.GetAPIReader(), Cached: s.manager.GetClient(), Writer: toMember, Clock: clock.RealClock{},
		}
		virtualIPs = &imports.VirtualIPs{Live: s.manager.GetAPIReader()}
	}
	gatewayReach := &reach.Reach{}
	var gateways *gateway.Reconciler
	if s.options.Namespace != "" && s.options.AgentCluster == nil {
		gateways = &gateway.Reconciler{
			Sources: reader, Live: s.manager.GetAPIReader(), ToMember: toMember, ToHub: toHub, Allowed: present.Allowed,
			Reach: gatewayReach, Addresses: s.options.gatewayAddresses(), Events: recorder, Clock: clock.RealClock{},
		}
	}
	var labelled *autoexport.Reconciler
	if s.options.AutoExport != NoAutoExport {
		labelled = &autoexport.Reconciler{
			Cluster: local.id, Member: s.manager.GetClient(), Writer: toMember, Limit: s.options.AutoExportLimit, AgentNamespace: s.options.Namespace, Events: recorder,
		}
	}
	return parts{
		presence:   present,
		gateway:    gateways,
		autoexport: labelled,
		properties: &properties.Reconciler{
			Cluster: local.id, Hub: store, Member: s.manager.GetClient(), Writer: toMember, Allowed: present.Allowed, Events: recorder,
		},
		publish:      &publish.Reconciler{Sources: reader, Hub: toHub, Allowed: present.Allowed, Progress: progress, Outcomes: outcomes},
		accessstatus: &accessstatus.Reconciler{Sources: reader, Member: toMember, Clock: clock.RealClock{}},
		routing:      &routing.Reconciler{Cluster: local.id, Hub: store, Member: s.manager.GetClient(), Writer: toMember, Clock: clock.RealClock{}},
		aliases: &aliases.Reconciler{
			Cluster: local.id, Member: s.manager.GetClient(), Live: s.manager.GetAPIReader(), Writer: toMember, Events: recorder, Clock: clock.RealClock{},
		},
		exportstatus: &exportstatus.Reconciler{
			Sources: reader, Member: toMember, Outcomes: outcomes, Refusal: present.Refusal, Events: recorder, Clock: clock.RealClock{},
		},
		imports: &imports.Reconciler{
			Allowed: func() bool { return store.InitialListDone() && present.Allowed() },
			Sources: reader, Member: s.manager.GetClient(), Writer: toMember, IPFamilies: clusterset.FamiliesOf(local.serviceCIDRs),
			State: present.State, Policies: liveness.DefaultPolicies(),
			Namespaces: s.options.importPolicy(), MetadataDomains: s.options.MetadataDomains, Refusals: imports.NewRefusals(), Unsupported: imports.NewUnsupportedSettings(),
			GatewayPorts: gatewayPorts, VirtualIPs: virtualIPs, GatewayReach: gatewayReach, Returns: imports.NewReturns(), DefaultSources: s.options.defaultSources(), Events: recorder, Clock: clock.RealClock{}, Metrics: metrics.imports,
		},
	}
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
