// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/gateway/forward"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// accessRules decides about the streams of a gateway by the rules of its cluster.
type accessRules struct {
	cache                    client.Reader
	log                      logr.Logger
	logs                     *rate.Limiter
	denials                  *prometheus.CounterVec
	events                   *denials
	exportRules, importRules atomic.Pointer[access.Rules] // nil until they are read
	exports                  *exports
	changed                  chan struct{}
	exporting, importing     *forward.Permissions
	// identify returns who a client of this cluster is, without waiting; nil if it is not known.
	identify func(ctx context.Context, client netip.Addr) (namespace, account string, known bool)
}

func newAccessRules(ctx context.Context, cache client.Reader, log logr.Logger, events *denials) *accessRules {
	ctx = context.WithoutCancel(ctx) // the gateway also decides while it drains
	r := &accessRules{
		cache: cache, log: log, events: events, logs: rate.NewLimiter(1, 10), changed: make(chan struct{}, 1),
		denials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tombolo_gateway_streams_denied_total", Help: "Streams that a rule of this cluster has denied, by rule.",
		}, []string{"direction", "rule"}),
	}
	r.exports = &exports{cache: cache, changed: r.notify, known: map[clusterset.ServiceKey]exported{}}
	r.exporting = &forward.Permissions{Denied: func(id clusterset.ClusterID, request wire.Open) *wire.Refusal {
		// The rules decide first: a client that they deny does not learn what is exported.
		service, rules := serviceOf(request), r.exportRules.Load()
		refusal := r.exports.refusal(ctx, service.Key)
		service.GrantedOnly = refusal == nil && r.exports.isGrantedOnly(ctx, service.Key)
		if request.Unidentified && rules != nil && rules.NeedsClient(service, id) {
			return errUnidentified
		}
		return cmp.Or(r.decide(ctx, rules, "export", id, service, request), refusal)
	}}
	r.importing = &forward.Permissions{Denied: func(id clusterset.ClusterID, request wire.Open) *wire.Refusal {
		if request.Unidentified && r.identify != nil { // the API may show its pod since the stream was opened
			request.ClientNamespace, request.ServiceAccount, _ = r.identify(ctx, request.Client)
		}
		return r.decide(ctx, r.importRules.Load(), "import", id, serviceOf(request), request)
	}}
	return r
}

// errUnidentified has the other gateway wait until it knows who the client is (A3).
var errUnidentified = &wire.Refusal{Code: wire.CodeUnidentified, Text: "a rule of the exporting cluster depends on who the client is"}

// importNeedsClient reports whether a rule of this cluster depends on who the client of a stream to a cluster is.
func (r *accessRules) importNeedsClient(to clusterset.ClusterID, request wire.Open) bool {
	rules := r.importRules.Load()
	return rules != nil && rules.NeedsClient(serviceOf(request), to)
}

func serviceOf(request wire.Open) access.Service {
	return access.Service{Key: clusterset.ServiceKey{Namespace: request.Namespace, Name: request.Service}}
}

// notify says that a rule has changed.
func (r *accessRules) notify() {
	select {
	case r.changed <- struct{}{}:
	default: // a change is pending
	}
}

// run reads the rules when they have changed, until ctx ends.
func (r *accessRules) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			r.load(ctx)
			r.exporting.Recheck()
			r.importing.Recheck()
		}
	}
}

// load reads the rules, and logs which are not valid; the others are in effect. If it cannot read them, those before stay in effect.
func (r *accessRules) load(ctx context.Context) {
	objects, err := caches.AccessObjects(ctx, r.cache)
	var remotes gatewayv1alpha1.RemoteGatewayList
	if err = errors.Join(err, r.cache.List(ctx, &remotes, client.UnsafeDisableDeepCopy)); err != nil {
		r.log.Error(err, "cannot read the rules")
		return
	}
	objects.Properties = propertiesOf(remotes.Items)
	exports, exportErr := access.New(policyv1alpha1.DirectionExport, objects)
	imports, importErr := access.New(policyv1alpha1.DirectionImport, objects)
	r.exportRules.Store(exports)
	r.importRules.Store(imports)
	if err := errors.Join(exportErr, importErr); err != nil {
		r.log.Error(err, "a rule is not valid")
	}
}

// decide returns why a stream is denied; nil if it is allowed. The other cluster does not learn which rule decides.
func (r *accessRules) decide(
	ctx context.Context, rules *access.Rules, direction string, id clusterset.ClusterID, service access.Service, request wire.Open,
) *wire.Refusal {
	who := access.Client{Cluster: id, Namespace: request.ClientNamespace, ServiceAccount: request.ServiceAccount}
	verdict := access.Verdict{Rule: "the rules are not read yet"}
	if rules != nil {
		verdict = rules.Decide(service, who)
	}
	if verdict.Allowed {
		return nil
	}
	r.denials.WithLabelValues(direction, verdict.Rule).Inc()
	if r.logs.Allow() {
		r.log.Info("a client is denied", "direction", direction, "service", service.Key.String(), "cluster", id, "rule", verdict.Rule,
			"client", request.Client.String(), "namespace", request.ClientNamespace, "serviceAccount", request.ServiceAccount)
	}
	if verdict.Rule == access.GrantedOnly {
		verdict.Object = r.withUID(ctx, verdict.Object)
	}
	r.events.send(direction, service.Key, who, verdict)
	return &wire.Refusal{Code: wire.CodeDenied, Text: fmt.Sprintf("service %s: a rule of the %sing cluster denies the client", service.Key, direction)}
}

// withUID returns a reference to a ServiceExport with its UID, without which no list of its Events has an Event; nil if there is none.
func (r *accessRules) withUID(ctx context.Context, reference *corev1.ObjectReference) *corev1.ObjectReference {
	var exported mcsv1beta1.ServiceExport
	key := client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}
	if r.cache.Get(ctx, key, &exported, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	result := *reference
	result.UID = exported.UID
	return &result
}

// sameNamespace reports whether an update of a namespace leaves its labels as they are, and is not the beginning of its deletion.
func sameNamespace(before, after any) bool {
	b, a := before.(client.Object), after.(client.Object)
	return maps.Equal(b.GetLabels(), a.GetLabels()) && b.GetDeletionTimestamp().IsZero() == a.GetDeletionTimestamp().IsZero()
}

// sameSpec reports whether an update leaves the spec as it is. Each change of a status by the agent is an update too.
func sameSpec(before, after any) bool {
	b, a := before.(client.Object), after.(client.Object)
	return b.GetUID() == a.GetUID() && b.GetGeneration() == a.GetGeneration()
}
