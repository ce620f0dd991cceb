// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"maps"
	"slices"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Reach is what is known of the gateways of this cluster, by their addresses. The zero value knows nothing, and then every gateway is
// used. It is safe for concurrent use.
type Reach struct {
	mu          sync.Mutex
	reports     map[string]gatewayv1alpha1.GatewayReport // by the name of the pod
	unreachable map[clusterset.ClusterID]sets.Set[string]
	unanswering sets.Set[string]
	subscribers []func(clusterset.ClusterID)
	listening
}

// EveryCluster is passed to subscribers if a gateway answers no more, or again.
const EveryCluster clusterset.ClusterID = ""

// Subscribe calls changed with the cluster to which the usable gateways may have changed. changed must not block.
func (r *Reach) Subscribe(changed func(clusterset.ClusterID)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, changed)
}

// Report replaces what a gateway reports; nil if its GatewayStatus was deleted.
func (r *Reach) Report(pod string, report *gatewayv1alpha1.GatewayReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reports == nil {
		r.reports = map[string]gatewayv1alpha1.GatewayReport{}
	}
	if report == nil {
		delete(r.reports, pod)
	} else {
		r.reports[pod] = *report
	}
	before := r.unreachable
	r.unreachable = unreachableBy(r.reports)
	for _, id := range slices.Sorted(maps.Keys(union(before, r.unreachable))) {
		if !before[id].Equal(r.unreachable[id]) {
			r.notify(id)
		}
	}
}

func union(a, b map[clusterset.ClusterID]sets.Set[string]) map[clusterset.ClusterID]sets.Set[string] {
	result := maps.Clone(a)
	if result == nil {
		return b
	}
	maps.Copy(result, b)
	return result
}

// unreachableBy returns the addresses of the gateways that do not reach a cluster, by its ID.
func unreachableBy(reports map[string]gatewayv1alpha1.GatewayReport) map[clusterset.ClusterID]sets.Set[string] {
	result := map[clusterset.ClusterID]sets.Set[string]{}
	for _, report := range reports {
		for _, cluster := range report.Clusters {
			if id := clusterset.ClusterID(cluster.Cluster); !cluster.Reachable {
				result[id] = result[id].Union(sets.New(report.Addresses...))
			}
		}
	}
	return result
}

func (r *Reach) notify(id clusterset.ClusterID) {
	for _, changed := range r.subscribers {
		changed(id)
	}
}

// Seen is what a Reach knows at one time. The zero value knows nothing. Its maps must not be changed.
type Seen struct {
	unreachable map[clusterset.ClusterID]sets.Set[string]
	unanswering sets.Set[string]
	open        map[string]ports.Open
}

// Seen returns what is known now.
func (r *Reach) Seen() Seen {
	if r == nil {
		return Seen{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return Seen{r.unreachable, r.unanswering, r.open} // each of the maps is replaced, never changed
}

// Usable returns the gateways through which this cluster reaches another one, out of the EndpointSlices of its gateways, and whether it
// reaches it. Gateways that do not answer are left out, unless none of their IP family answers: then the agent itself may be cut off. If no
// gateway reaches the cluster, all of the others are returned.
func (s Seen) Usable(gateways []clusterset.Slice, to clusterset.ClusterID) (usable []clusterset.Slice, reached bool) {
	answering, _ := without(gateways, s.unanswering)
	families := sets.New[discoveryv1.AddressType]()
	for _, slice := range answering {
		if isSome(slice) {
			families.Insert(slice.AddressType)
		}
	}
	for i, slice := range gateways {
		if !families.Has(slice.AddressType) {
			answering[i] = slice
		}
	}
	if reaching, some := without(answering, s.unreachable[to]); some {
		return reaching, true
	}
	_, ready := without(answering, nil)
	return answering, !ready
}

// without returns slices without some addresses, and whether a ready endpoint is left.
func without(gateways []clusterset.Slice, addresses sets.Set[string]) (result []clusterset.Slice, some bool) {
	for _, slice := range gateways {
		slice.Endpoints = slices.DeleteFunc(slices.Clone(slice.Endpoints), func(e clusterset.Endpoint) bool {
			return addresses.HasAny(e.Addresses...)
		})
		some = some || isSome(slice)
		result = append(result, slice)
	}
	return result, some
}

// isSome reports whether a slice has a ready endpoint.
func isSome(slice clusterset.Slice) bool {
	return slices.ContainsFunc(slice.Endpoints, clusterset.Endpoint.IsReady)
}
