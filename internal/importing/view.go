// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"iter"
	"maps"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// view is an observation with what follows from it before the decision.
type view struct {
	Observed
	// missing are the imported records that the hub lacks and whose deletion is not confirmed.
	missing map[clusterset.ClusterID]sources.Missing
	// states are the States, with Silent for members that no gateway reaches.
	states map[clusterset.ClusterID]liveness.State
	// path says how this cluster reaches the other exporters, and obstacles why it cannot reach some of them.
	path      map[clusterset.ClusterID]reach.Path
	obstacles []error
	// headless are the exports that the import reaches, or could reach, through virtual IPs.
	headless map[clusterset.ClusterID]clusterset.Export
	// gateways are the EndpointSlices of this cluster's gateways, with those to use for each source cluster.
	gateways map[clusterset.ClusterID][]clusterset.Slice
	// closed are the listening ports on which a gateway does not listen.
	closed reach.Closed
	// unopened are the owners on whose ports no gateway listens that can be used for them, and opening those that got their ports so lately
	// that one soon may. portsAfter is the time until then, or until more ports may be free; 0 if there is nothing to wait for.
	unopened, opening sets.Set[ports.Owner]
	portsAfter        time.Duration
}

// viewOf returns the view of an observation whose numbers are reserved.
func viewOf(o Observed) view {
	v := pathsOf(o)
	v.chooseGateways()
	v.readOpenPorts()
	return v
}

// pathsOf returns the view of an observation as far as it is known before numbers are reserved.
func pathsOf(o Observed) view {
	v := view{Observed: o, missing: maps.Clone(o.Sources.Hub.Missing), states: maps.Clone(o.States)}
	if v.knowsOwnExport() {
		delete(v.missing, o.Cluster)
	}
	v.choosePaths()
	return v
}

const (
	// listenLag is the time in which older gateways, which do not report on which ports they listen, listen on a port after it was
	// allocated, and connect to its source cluster. The slice records the port shortly after it was allocated, and each gateway reads the
	// slice by itself, as each kube-proxy does. For at least so long, the addresses of a source that moves to another network stay.
	listenLag = time.Second
	// openingTime is the time in which gateways that work listen on a new port. For so long, the addresses of a source that moves to another
	// network stay (W3), and after it the import reports the port.
	openingTime = 5 * time.Second
)

// readOpenPorts sets which gateways do not listen on which of the import's ports, and which ports wait until one does (G8).
func (v *view) readOpenPorts() {
	wanted := v.wantedPorts()
	if slices.ContainsFunc(wanted, func(owner ports.Owner) bool { return v.Numbers.Ports[owner] == 0 }) {
		v.portsAfter = v.Numbers.Retry
	}
	if v.Sources.Gateways == nil {
		return
	}
	recent, lag := v.recent(maps.Keys(v.Numbers.Ports), listenLag)
	closed, waits := v.Reach.Closed(v.Sources.Gateways.Slices, v.Numbers.Ports, recent)
	for owner := range recent {
		if !v.servesDirectly(owner.Cluster) {
			continue
		}
		waits = true
		for _, numbers := range closed { // the gateways of its cluster learn of those of this cluster meanwhile (W3)
			numbers.Insert(v.Numbers.Ports[owner])
		}
	}
	v.closed, v.unopened = closed, sets.New[ports.Owner]()
	for owner, number := range v.Numbers.Ports {
		if !v.via(owner.Cluster, owner.Hostname).Listens(number) {
			v.unopened.Insert(owner)
		}
	}
	opening, left := v.recent(maps.Keys(v.unopened), openingTime)
	v.opening = opening
	if waits && len(recent) > 0 {
		left = lag
	}
	if v.portsAfter == 0 {
		v.portsAfter = left
	}
}

// recent returns which of the owners got their ports less than a time ago, and how long that is so for some of them.
func (o Observed) recent(owners iter.Seq[ports.Owner], within time.Duration) (sets.Set[ports.Owner], time.Duration) {
	result, longest := sets.New[ports.Owner](), time.Duration(0)
	for owner := range owners {
		if left := within - o.Now.Sub(o.Numbers.Since[owner]); left > 0 {
			result.Insert(owner)
			longest = max(longest, left)
		}
	}
	return result, longest
}

func numbersOf(listed []discoveryv1.EndpointPort) []int32 {
	var result []int32
	for _, port := range listed {
		result = append(result, ptr.Deref(port.Port, 0))
	}
	return result
}

// servesDirectly reports whether the addresses of a source cluster are in the import: then it moves to another network, if it needs
// gateways now.
func (o Observed) servesDirectly(source clusterset.ClusterID) bool {
	return slices.ContainsFunc(o.Mirrored, func(s *discoveryv1.EndpointSlice) bool {
		return !IsGatewaySlice(s) && SourceOf(s) == source && len(s.Endpoints) > 0
	})
}

// awaitsGateways reports whether no gateway is listed for a source cluster yet, because none listens.
func (v view) awaitsGateways(source clusterset.ClusterID) bool {
	isListed := slices.ContainsFunc(v.Mirrored, func(s *discoveryv1.EndpointSlice) bool {
		return IsGatewaySlice(s) && SourceOf(s) == source && len(s.Ports) > 0
	})
	return !isListed && slices.ContainsFunc(v.opening.UnsortedList(), func(owner ports.Owner) bool { return owner.Cluster == source })
}

// portsOf returns the listening ports that a slice records, by their owners; nil if it records none, or another user has edited it.
func portsOf(slice *discoveryv1.EndpointSlice) map[ports.Owner]int32 {
	result, _ := render.ListeningPorts(slice)
	return result
}
