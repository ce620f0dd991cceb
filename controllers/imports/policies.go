// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// routing reads the policy of an import.
func (r *Reconciler) routing(ctx context.Context, o importing.Observed) (importing.Routing, error) {
	policies, err := caches.ListRoutingPolicies(ctx, r.Member, o.Sources.Key.Namespace)
	if err != nil {
		return importing.Routing{}, err
	}
	result := importing.Routing{Policy: "the default sources of the agent", Sources: r.DefaultSources}
	if policy := preference.Select(policies, o.Sources.Key.Name); policy != nil {
		result.Policy, result.Sources = "ServiceImportRoutingPolicy "+policy.Name, policy.Spec.Sources
	}
	if len(result.Sources) == 0 {
		return importing.Routing{}, nil
	}
	result.Clusters = preference.Clusters{Local: r.Sources.Cluster, Properties: r.Sources.Hub.Properties(), Serving: importing.Serving(o.Mirrored)}
	if r.Sources.Hub.Synced() {
		result.Unmatched = result.Clusters.Unmatched(result.Sources)
	}
	result.Available = r.Returns.available(o.Sources.Key, result.Sources, o.Now)
	return result, nil
}

// importsOfPolicy enqueues the imports of a policy's namespace.
func (r *Reconciler) importsOfPolicy() handler.TypedEventHandler[*policyv1alpha1.ServiceImportRoutingPolicy, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, policy *policyv1alpha1.ServiceImportRoutingPolicy) []reconcile.Request {
		list := &mcsv1beta1.ServiceImportList{}
		if err := r.Member.List(ctx, list, client.InNamespace(policy.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "cannot find the imports of a policy", "namespace", policy.Namespace)
		}
		requests := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
		}
		return requests
	})
}

// Returns stores since when levels that are better than those in use have been available without interruption. It is empty after a
// restart of the agent, and for a service whose sources have changed: a level is the index of a source.
type Returns struct {
	mu    sync.Mutex
	since map[clusterset.ServiceKey]returnsOf
}

// returnsOf are the Returns of a service, for these sources of its policy.
type returnsOf struct {
	sources []policyv1alpha1.Source
	since   map[preference.Return]time.Time
}

// NewReturns returns empty Returns.
func NewReturns() *Returns { return &Returns{since: map[clusterset.ServiceKey]returnsOf{}} }

// available returns for how long the levels of a service have been available at now.
func (r *Returns) available(key clusterset.ServiceKey, from []policyv1alpha1.Source, now time.Time) map[preference.Return]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := map[preference.Return]time.Duration{}
	for level, since := range r.of(key, from) {
		result[level] = now.Sub(since)
	}
	return result
}

// update stores which levels of a service wait at now.
func (r *Returns) update(key clusterset.ServiceKey, from []policyv1alpha1.Source, waiting []preference.Return, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, since := r.of(key, from), map[preference.Return]time.Time{}
	for _, level := range waiting {
		began, ok := before[level]
		if !ok {
			began = now
		}
		since[level] = began
	}
	r.since[key] = returnsOf{from, since}
	if len(since) == 0 {
		delete(r.since, key)
	}
}

// of returns since when the levels of a service have been available; nothing if they were those of other sources.
func (r *Returns) of(key clusterset.ServiceKey, from []policyv1alpha1.Source) map[preference.Return]time.Time {
	if stored := r.since[key]; equality.Semantic.DeepEqual(stored.sources, from) {
		return stored.since
	}
	return nil
}
