// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/reach"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
)

// portsConfigMap stores the ports.State, in the namespace of the agent.
const (
	portsConfigMap = "tombolo-gateway-ports"
	cursorKey      = "cursor"
	freeKey        = "free"
)

// GatewayPorts allocates the listening ports of this cluster's gateways.
type GatewayPorts struct {
	Namespace string
	// Live reads from the API server, Cached from the cache of the mirrored slices.
	Live, Cached client.Reader
	Writer       apply.Writer
	Clock        clock.PassiveClock

	mu        sync.Mutex
	allocator *ports.Allocator
	stored    *corev1.ConfigMap
}

// assign returns the listening ports of the wanted owners of a service, and releases those of its others. The result lacks the owners
// for which no port is free.
func (g *GatewayPorts) assign(ctx context.Context, service clusterset.ServiceKey, wanted []ports.Owner) (map[ports.Owner]int32, error) {
	if g == nil {
		return nil, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.allocator == nil {
		if len(wanted) == 0 { // a cluster without gateways stores no state
			return nil, nil
		}
		if err := g.load(ctx); err != nil {
			return nil, err
		}
	}
	return g.allocator.Assign(service, wanted, g.Clock.Now(), func(s ports.State) error { return g.store(ctx, s) })
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

// recent returns which of the owners got their ports less than a time ago, and how long that is so for some of them.
func (g *GatewayPorts) recent(owners iter.Seq[ports.Owner], within time.Duration) (sets.Set[ports.Owner], time.Duration) {
	if g == nil {
		return nil, 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.allocator == nil {
		return nil, 0
	}
	result, longest := sets.New[ports.Owner](), time.Duration(0)
	for owner := range owners {
		if left := within - g.Clock.Since(g.allocator.Allocated(owner)); left > 0 {
			result.Insert(owner)
			longest = max(longest, left)
		}
	}
	return result, longest
}

// services returns the services to which listening ports lead.
func (g *GatewayPorts) services(numbers sets.Set[int32]) sets.Set[clusterset.ServiceKey] {
	result := sets.New[clusterset.ServiceKey]()
	if g == nil {
		return result
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.allocator == nil { // no import has read what the gateways report
		return result
	}
	for number := range numbers {
		if owner, ok := g.allocator.Owner(number); ok {
			result.Insert(owner.Service)
		}
	}
	return result
}

// retryAfter returns the time after which an owner for which no port was free may get one.
func (g *GatewayPorts) retryAfter() time.Duration {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.allocator == nil { // another service could not store the state
		return time.Second
	}
	now := g.Clock.Now()
	return max(g.allocator.NextFree(now).Sub(now), time.Second)
}

// load reads the State and the ports that all mirrored slices record. Slices that were created earlier keep a port that two record.
func (g *GatewayPorts) load(ctx context.Context) error {
	stored := &corev1.ConfigMap{}
	err := g.Live.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: portsConfigMap}, stored)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the state of the gateways' ports: %w", err)
	}
	list := &discoveryv1.EndpointSliceList{}
	if err := g.Cached.List(ctx, list, client.MatchingLabels{clusterset.LabelGateway: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the mirrored EndpointSlices of gateways: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b discoveryv1.EndpointSlice) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	state := ports.ParseState(stored.Data[cursorKey], stored.Data[freeKey])
	recordsPorts := func(s discoveryv1.EndpointSlice) bool { return len(portsOf(&s)) > 0 } // those that lead to virtual IPs record none
	if apierrors.IsNotFound(err) && !slices.ContainsFunc(list.Items, recordsPorts) {
		state = ports.Unused()
	}
	allocator := ports.New(state, g.Clock.Now())
	for i := range list.Items {
		for owner, port := range portsOf(&list.Items[i]) {
			allocator.Adopt(owner, port)
		}
	}
	g.allocator = allocator
	if err == nil {
		g.stored = stored
	}
	return nil
}

// store writes the State.
func (g *GatewayPorts) store(ctx context.Context, state ports.State) error {
	desired := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: portsConfigMap, Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy},
		},
		Data: map[string]string{cursorKey: strconv.Itoa(int(state.Cursor)), freeKey: state.FormatFree()},
	}
	written, err := apply.Do(ctx, g.Writer, plan.ConfigMap(desired, g.stored))
	if err != nil {
		g.allocator, g.stored = nil, nil    // read it again: another replica may have written it
		if errors.Is(err, apply.ErrStale) { // which is not retried, but no event of the ConfigMap enqueues the service again
			err = errors.New(err.Error())
		}
		return fmt.Errorf("store the state of the gateways' ports: %w", err)
	}
	if len(written) > 0 {
		g.stored = written[0]
	}
	return nil
}

// readOpenPorts sets which gateways do not listen on which of the import's ports, and which ports wait until one does (G8).
func (v *view) readOpenPorts(known *reach.Reach, allocated *GatewayPorts) {
	if v.sources.Gateways == nil {
		return
	}
	recent, lag := allocated.recent(maps.Keys(v.ports), listenLag)
	closed, waits := known.Closed(v.sources.Gateways.Slices, v.ports, recent)
	for owner := range recent {
		if !v.servesDirectly(owner.Cluster) {
			continue
		}
		waits = true
		for _, numbers := range closed { // the gateways of its cluster learn of those of this cluster meanwhile (W3)
			numbers.Insert(v.ports[owner])
		}
	}
	v.closed, v.unopened = closed, sets.New[ports.Owner]()
	for owner, number := range v.ports {
		if !v.via(owner.Cluster, owner.Hostname).Listens(number) {
			v.unopened.Insert(owner)
		}
	}
	opening, left := allocated.recent(maps.Keys(v.unopened), openingTime)
	v.opening = opening
	if waits && len(recent) > 0 {
		left = lag
	}
	if v.portsAfter == 0 {
		v.portsAfter = left
	}
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
func (v view) servesDirectly(source clusterset.ClusterID) bool {
	return slices.ContainsFunc(v.mirrored, func(s *discoveryv1.EndpointSlice) bool {
		return !isGatewaySlice(s) && sourceOf(s) == source && len(s.Endpoints) > 0
	})
}

// awaitsGateways reports whether no gateway is listed for a source cluster yet, because none listens.
func (v view) awaitsGateways(source clusterset.ClusterID) bool {
	isListed := slices.ContainsFunc(v.mirrored, func(s *discoveryv1.EndpointSlice) bool {
		return isGatewaySlice(s) && sourceOf(s) == source && len(s.Ports) > 0
	})
	return !isListed && slices.ContainsFunc(v.opening.UnsortedList(), func(owner ports.Owner) bool { return owner.Cluster == source })
}

// portsOf returns the listening ports that a slice records, by their owners; nil if it records none, or another user has edited it.
func portsOf(slice *discoveryv1.EndpointSlice) map[ports.Owner]int32 {
	result, _ := caches.ListeningPorts(slice)
	return result
}
