// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/aliases"
	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/exportstatus"
	"github.com/tombolo-mcs/tombolo/controllers/gateway"
	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/controllers/policystatus"
	"github.com/tombolo-mcs/tombolo/controllers/presence"
	"github.com/tombolo-mcs/tombolo/controllers/properties"
	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/controllers/queue"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// parts are the controllers of an agent.
type parts struct {
	publish      *publish.Reconciler
	exportstatus *exportstatus.Reconciler
	imports      *imports.Reconciler
	access       *policystatus.Access
	routing      *policystatus.Routing
	aliases      *aliases.Reconciler
	presence     *presence.Presence
	properties   *properties.Reconciler
	// autoexport is nil if labels export nothing.
	autoexport *autoexport.Reconciler
	// gateway is nil if the agent runs in another cluster: gateways run beside their agent.
	gateway *gateway.Reconciler
}

func (s *starter) controllers(
	local identity, store *hub.Store, connection *hub.Connection, hubClient client.Client, metrics metrics, pods cache.Cache,
) parts {
	toHub := apply.ToHub(hubClient, local.id.HubNamespace())
	reader := gather.Reader{
		Cluster: local.id, Member: s.manager.GetClient(), Grants: s.manager.GetClient(), Hub: store, Selector: s.options.Selector, AgentNamespace: s.options.Namespace,
		HostPods: func(ctx context.Context, ip netip.Addr) ([]corev1.Pod, error) { return caches.PodsAt(ctx, pods, ip) },
	}
	toMember := apply.ToMember(s.manager.GetClient(), s.manager.GetAPIReader())
	recorder := s.manager.GetEventRecorder(name)
	progress, outcomes := publish.NewProgress(), publish.NewOutcomes()
	present := s.presence(local, store, toHub, hubClient, progress)
	gatewayPorts, virtualIPs, retained := s.numbers(toMember)
	gatewayReach, gateways := &reach.Reach{}, (*gateway.Reconciler)(nil)
	if s.options.Namespace == "" || s.options.AgentCluster != nil {
		gatewayReach.Observe(nil, nil) // there is no Prober
	} else {
		gateways = &gateway.Reconciler{
			Sources: reader, Live: s.manager.GetAPIReader(), ToMember: toMember, ToHub: toHub, Allowed: present.Allowed,
			MayWrite: present.MayWrite, OnMayWrite: present.OnMayWrite, Reverts: queue.NewReverts(clock.RealClock{}),
			Reach: gatewayReach, Addresses: s.options.gatewayAddresses(), RecordRefused: metrics.refused, Events: recorder, Clock: clock.RealClock{},
		}
	}
	var labelled *autoexport.Reconciler
	if s.options.AutoExport != NoAutoExport {
		labelled = &autoexport.Reconciler{
			Cluster: local.id, Member: s.manager.GetClient(), Writer: toMember, Limit: s.options.AutoExportLimit, AgentNamespace: s.options.Namespace, Events: recorder, Clock: clock.RealClock{},
		}
	}
	return parts{
		presence:   present,
		gateway:    gateways,
		autoexport: labelled,
		properties: &properties.Reconciler{Cluster: local.id, Hub: store, Member: s.manager.GetClient(), Writer: toMember, Allowed: present.Allowed, Events: recorder},
		publish: &publish.Reconciler{
			Sources: reader, Hub: toHub, MayWrite: present.MayWrite, OnMayWrite: present.OnMayWrite, Progress: progress, Outcomes: outcomes,
			Reverts: queue.NewReverts(clock.RealClock{}), HostPods: pods,
		},
		access:  &policystatus.Access{Sources: reader, Member: toMember, Clock: clock.RealClock{}},
		routing: &policystatus.Routing{Cluster: local.id, Hub: store, Member: s.manager.GetClient(), Writer: toMember, Clock: clock.RealClock{}},
		aliases: &aliases.Reconciler{
			Cluster: local.id, Member: s.manager.GetClient(), Live: s.manager.GetAPIReader(), Writer: toMember, Events: recorder, Clock: clock.RealClock{},
		},
		exportstatus: &exportstatus.Reconciler{
			Sources: reader, Member: toMember, Outcomes: outcomes, Refusal: present.Refusal, Unreached: connection.Unreached, Events: recorder, Clock: clock.RealClock{},
		},
		imports: &imports.Reconciler{
			Allowed: func() bool { return store.InitialListDone() && present.Allowed() },
			Sources: reader, Member: s.manager.GetClient(), Writer: toMember, IPFamilies: clusterset.FamiliesOf(local.serviceCIDRs), ServiceRanges: s.serviceRanges,
			State: present.State, Policies: liveness.DefaultPolicies(),
			Namespaces: s.options.importPolicy(), MetadataDomains: s.options.MetadataDomains, Reported: imports.NewReported(), Unsupported: imports.NewUnsupportedSettings(),
			GatewayPorts: gatewayPorts, VirtualIPs: virtualIPs, Retained: retained, GatewayReach: gatewayReach, Returns: imports.NewReturns(), DefaultSources: s.options.defaultSources(), Events: recorder, Clock: clock.RealClock{}, Metrics: metrics.imports,
		},
	}
}

// numbers returns what allocates listening ports and virtual IPs and retains addresses; nil in a cluster without an agent namespace.
func (s *starter) numbers(toMember apply.Writer) (*imports.GatewayPorts, *imports.VirtualIPs, *imports.Retained) {
	namespace, live := s.options.Namespace, s.manager.GetAPIReader()
	if namespace == "" {
		return nil, nil, nil
	}
	gatewayPorts := &imports.GatewayPorts{Namespace: namespace, Live: live, Cached: s.manager.GetClient(), Writer: toMember, Clock: clock.RealClock{}}
	if s.options.AgentCluster != nil { // an agent outside of its cluster has no namespace there
		return gatewayPorts, &imports.VirtualIPs{Live: live}, nil
	}
	return gatewayPorts, &imports.VirtualIPs{Live: live}, &imports.Retained{Namespace: namespace, Live: live, Writer: toMember, Clock: clock.RealClock{}}
}

// presence returns the heartbeat of this member, and its view of the others.
func (s *starter) presence(local identity, store *hub.Store, toHub apply.Writer, hubClient client.Client, progress *publish.Progress) *presence.Presence {
	present := &presence.Presence{
		Cluster: local.id, ClusterUID: local.uid, AgentVersion: s.options.Version, Claim: presence.NewClaim(local.uid, s.own.Nonce),
		Interval: s.options.HeartbeatInterval, Grace: liveness.GracePeriods * s.options.HeartbeatInterval, AbsentTimeout: s.options.AbsentTimeout,
		Store: store, Hub: toHub, Live: hubClient, Progress: progress,
		Tracker: liveness.NewTracker(s.options.HeartbeatInterval, liveness.GracePeriods*s.options.HeartbeatInterval),
		Clock:   clock.RealClock{}, Log: s.options.Log.WithName("presence"),
	}
	if s.lease != nil {
		present.Lease = s.lease
	}
	return present
}
