// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
	"github.com/tombolo-mcs/tombolo/pkg/preference"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// routing is what decides which of the sources of an import serve.
type routing struct {
	// policy describes where the sources are from.
	policy string
	// sources are the preferred ones; empty if all sources of the import serve.
	sources  []policyv1alpha1.Source
	clusters preference.Clusters
	// unmatched is what the sources name and no member has.
	unmatched []string
	// available says for how long better levels have been available.
	available map[preference.Return]time.Duration
}

// routing reads the policy of an import.
func (r *Reconciler) routing(ctx context.Context, v view) (routing, error) {
	policies, err := caches.ListRoutingPolicies(ctx, r.Member, v.sources.Key.Namespace)
	if err != nil {
		return routing{}, err
	}
	result := routing{policy: "the default sources of the agent", sources: r.DefaultSources}
	if policy := preference.Select(policies, v.sources.Key.Name); policy != nil {
		result.policy, result.sources = "ServiceImportRoutingPolicy "+policy.Name, policy.Spec.Sources
	}
	if len(result.sources) == 0 {
		return routing{}, nil
	}
	serving := map[clusterset.ClusterID]bool{}
	for _, slice := range v.mirrored {
		if len(slice.Ports) > 0 {
			serving[sourceOf(slice)] = true
		}
	}
	result.clusters = preference.Clusters{Local: r.Sources.Cluster, Properties: r.Sources.Hub.Properties(), Serving: serving}
	if r.Sources.Hub.Synced() {
		result.unmatched = result.clusters.Unmatched(result.sources)
	}
	result.available = r.Returns.available(v.sources.Key, result.sources, r.Clock.Now())
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

// applies reports whether the policy applies to an import: not to a headless one, whose endpoints have names of their own, and not if
// the derived Service has a selector, because Kubernetes then creates the slices for the local pods.
func (r routing) applies(m merge.Merged) bool {
	return len(r.sources) > 0 && m.Type != mcsv1beta1.Headless && m.Selection == nil
}

// allowed returns the sources without the ports of those that the policy does not match, so that no other source is left out because
// of them.
func (r routing) allowed(m merge.Merged, sources []liveness.Source) []liveness.Source {
	if !r.applies(m) {
		return sources
	}
	result := make([]liveness.Source, len(sources))
	for i, source := range sources {
		if _, ok := r.clusters.Level(r.sources, source.Cluster); !ok {
			source.Ports = nil
		}
		result[i] = source
	}
	return result
}

// choose returns which level of the policy serves each port, from what liveness leaves.
func (r routing) choose(v view, d decision) preference.Choice {
	var offers []preference.Offer
	families := render.Families(d.merged, d.site) // gateways have all those of this cluster
	for _, slice := range d.slices {
		if !slices.Contains(families, corev1.IPFamily(slice.AddressType)) {
			continue
		}
		if level, ok := r.clusters.Level(r.sources, slice.Cluster); ok {
			availability := preference.AvailabilityOf(slice.Endpoints)
			for _, port := range slice.Ports {
				if name, ok := d.merged.PortNames[slice.Cluster][port.Name]; ok {
					offers = append(offers, preference.Offer{Port: preference.Port{Name: name, Family: slice.AddressType}, Level: level, Availability: availability})
				}
			}
		}
	}
	for _, slice := range d.kept {
		availability := preference.AvailabilityOfMirrored(slice.Endpoints)
		for port, level := range r.servedBy(d.merged, slice) {
			offers = append(offers, preference.Offer{Port: port, Level: level, Availability: availability})
		}
	}
	inUse := map[preference.Port]int{}
	for _, slice := range v.mirrored {
		for port, level := range r.servedBy(d.merged, slice) {
			if used, ok := inUse[port]; !ok || level < used {
				inUse[port] = level
			}
		}
	}
	return preference.Choose(offers, inUse, r.available)
}

// servedBy returns the ports of a mirrored slice, without withheld ones, and its level for each; nothing if the policy does not match
// its cluster.
func (r routing) servedBy(m merge.Merged, slice *discoveryv1.EndpointSlice) map[preference.Port]int {
	level, ok := r.clusters.Level(r.sources, sourceOf(slice))
	if !ok {
		return nil
	}
	result := map[preference.Port]int{}
	for _, name := range mergedPorts(m, slice.Ports) {
		result[preference.Port{Name: name, Family: slice.AddressType}] = level
	}
	return result
}

// restrict returns the slices of a decision with only the ports that their levels serve. Slices without a port are left out, except
// those of gateways, which record the listening ports, and kept ones, which store the withheld ports.
func (r routing) restrict(d decision) (used []clusterset.Slice, kept []*discoveryv1.EndpointSlice) {
	for _, slice := range d.slices {
		level, ok := r.clusters.Level(r.sources, slice.Cluster)
		restricted := preference.WithPorts(slice, d.merged.PortNames[slice.Cluster], func(name string) bool {
			return ok && d.choice.Serves(preference.Port{Name: name, Family: slice.AddressType}, level)
		})
		if len(restricted.Ports) > 0 || restricted.Listen != nil {
			used = append(used, restricted)
		}
	}
	for _, slice := range d.kept {
		var names []string
		for port, level := range r.servedBy(d.merged, slice) {
			if d.choice.Serves(port, level) {
				names = append(names, port.Name)
			}
		}
		kept = append(kept, render.Withhold(slice, render.SliceNames(d.merged, names)))
	}
	return used, kept
}

// condition returns the condition of an import that says which of the policy's sources serve.
func (r routing) condition(d decision) metav1.Condition {
	serving := map[int][]clusterset.ClusterID{}
	add := func(id clusterset.ClusterID) {
		if level, ok := r.clusters.Level(r.sources, id); ok {
			serving[level] = append(serving[level], id)
		}
	}
	for _, slice := range d.slices {
		if len(slice.Ports) > 0 && preference.AvailabilityOf(slice.Endpoints) > preference.Unavailable {
			add(slice.Cluster)
		}
	}
	for _, slice := range d.kept {
		if len(slice.Ports) > 0 && preference.AvailabilityOfMirrored(slice.Endpoints) > preference.Unavailable {
			add(sourceOf(slice))
		}
	}
	return conditions.Preferred(r.policy, d.choice, serving, r.unmatched)
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
