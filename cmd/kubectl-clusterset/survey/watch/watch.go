// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch observes and assesses a clusterset again after each change, from caches.
package watch

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/manifests"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Observation is a clusterset as it is at present.
type Observation struct {
	// Clusterset has the content of the hub. Its members are read without a cache.
	Clusterset *survey.Clusterset
	Objects    []survey.MemberObjects
	Status     assess.Status
	// Unanswered are the API servers that do not answer. Their part of Status is what was read before.
	Unanswered []Unanswered
	// Cached is the Clusterset whose members are read from caches, which have only what a status depends on.
	Cached *survey.Clusterset
}

// Explain describes how the exports of a service are merged, who may use it, and which sources serve. It returns false if the hub has no
// record of the service.
func (o Observation) Explain(ctx context.Context, key clusterset.ServiceKey) (explain.Explanation, bool) {
	result, ok := explain.Service(o.Cached.Hub, key)
	if ok {
		result.Access, result.Preferences = explain.Rules(ctx, o.Cached, key), explain.Preferences(key, o.Objects)
	}
	return result, ok
}

// Once reads all reachable members without caches, and returns the status of the clusterset.
func Once(ctx context.Context, c *survey.Clusterset) assess.Status {
	return assess.Assess(c.Hub, c.ReadObjects(ctx), c.Unreached, c.Unread...)
}

// Unanswered is an API server that does not answer, with the reason.
type Unanswered struct {
	Context string      `json:"context"`
	Since   metav1.Time `json:"since"`
	Error   string      `json:"error"`
}

// After an observation, the next one begins after shortestPause at the earliest, or after pauseFactor times the duration of the last
// one. This limits the CPU time while much changes.
const (
	shortestPause = 100 * time.Millisecond
	pauseFactor   = 4
)

// Run calls publish with the clusterset as it is, and again after each change, until ctx ends or publish fails. It watches the objects that
// Status reads; the members and the settings of their agents stay those of Find. A member that cannot be watched is left out, with the reason
// in Unreached.
func Run(ctx context.Context, c *survey.Clusterset, publish func(Observation) error) error {
	w := &watcher{signal: make(chan struct{}, 1), found: *c, cached: *c}
	if err := w.start(ctx); err != nil {
		return err
	}
	for {
		began := time.Now()
		observation := w.observe(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is no error
		}
		if err := publish(observation); err != nil {
			return err
		}
		pause := max(shortestPause, pauseFactor*time.Since(began))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.signal:
		case <-time.After(time.Until(w.due)):
		}
	}
}

// hubKinds returns the kinds of the hub that a status depends on.
func hubKinds() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&hubv1alpha1.Member{}: {}, &hubv1alpha1.Heartbeat{}: {}, &hubv1alpha1.PublishedService{}: {}, &hubv1alpha1.PublishedEndpoints{}: {},
		&hubv1alpha1.PublishedGateway{}: {},
	}
}

// memberKinds returns the kinds of a member that a status depends on. Of the gateways, only those in the agent's namespace are read, and of
// ConfigMaps, only those of namespaces with a cluster DNS.
func memberKinds() map[client.Object]cache.ByObject {
	ofAgent := cache.ByObject{Namespaces: map[string]cache.Config{manifests.AgentNamespace: {}}}
	ofDNS := cache.ByObject{Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {}, memberdns.OpenShiftNamespace: {}}}
	return map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}:         ofDNS,
		&mcsv1beta1.ServiceExport{}: {}, &mcsv1beta1.ServiceImport{}: {}, &corev1.Service{}: {}, &corev1.Namespace{}: {},
		&policyv1alpha1.ServiceExportGrant{}: {}, &policyv1alpha1.ClusterServiceAccessPolicy{}: {},
		&discoveryv1.EndpointSlice{}: ofAgent, &gatewayv1alpha1.GatewayStatus{}: ofAgent, &gatewayv1alpha1.RemoteGateway{}: ofAgent,
	}
}

// reduce is a transform function of a cache: it removes managed fields, of Services that are no aliases all but what decides whether they
// can be exported and whose address they have, and the data of ConfigMaps that are not about DNS. The managed fields of Heartbeats have the time at which the hub received them. It returns its argument, changed.
func reduce(object any) (any, error) {
	if _, is := object.(*hubv1alpha1.Heartbeat); is {
		return object, nil
	}
	object, err := caches.StripManagedFields(object)
	if service, is := object.(*corev1.Service); is && !clusterset.IsAlias(service) {
		spec := corev1.ServiceSpec{
			Type: service.Spec.Type, ClusterIP: service.Spec.ClusterIP, ClusterIPs: service.Spec.ClusterIPs, ExternalIPs: service.Spec.ExternalIPs,
			Ports: service.Spec.Ports,
		}
		if service.Namespace == manifests.AgentNamespace {
			spec.Selector = service.Spec.Selector
		}
		service.Annotations, service.Spec, service.Status = nil, spec, corev1.ServiceStatus{LoadBalancer: service.Status.LoadBalancer}
	}
	if config, is := object.(*corev1.ConfigMap); is && !memberdns.IsConfig(client.ObjectKeyFromObject(config)) {
		config.Data, config.BinaryData = nil, nil
	}
	return object, err
}
