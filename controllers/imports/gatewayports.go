// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"fmt"
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
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/preference"
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

// listenLag is the time in which all gateways listen on a port after it was allocated, and connect to its source cluster. The slice records
// the port shortly after it was allocated, and each gateway reads the slice by itself, as each kube-proxy does.
const listenLag = time.Second

// opening returns which of the owners got their ports less than listenLag ago, and the time until that is over for all of them.
func (g *GatewayPorts) opening(owners []ports.Owner) (sets.Set[ports.Owner], time.Duration) {
	if g == nil {
		return nil, 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.allocator == nil {
		return nil, 0
	}
	result, longest := sets.New[ports.Owner](), time.Duration(0)
	for _, owner := range owners {
		if left := listenLag - g.Clock.Since(g.allocator.Allocated(owner)); left > 0 {
			result.Insert(owner)
			longest = max(longest, left)
		}
	}
	return result, longest
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

// unlisted returns the owners of listening ports that no slice of the import lists, if others of its slices serve. Until the gateways
// listen on them, those serve alone: a connection to a gateway that does not listen is refused.
func (v view) unlisted() []ports.Owner {
	if len(v.ports) == 0 || v.importType() == mcsv1beta1.Headless {
		return nil
	}
	assigned := sets.New(slices.Collect(maps.Values(v.ports))...)
	listed, isServed := sets.New[int32](), false
	for _, slice := range v.mirrored {
		serves := len(slice.Ports) > 0 && preference.AvailabilityOfMirrored(slice.Endpoints) > preference.Unavailable
		if isGatewaySlice(slice) {
			numbers := numbersOf(slice.Ports)
			listed.Insert(numbers...)
			serves = serves && assigned.HasAll(numbers...) // none was released
		}
		isServed = isServed || serves
	}
	var result []ports.Owner
	for owner, number := range v.ports {
		if isServed && !listed.Has(number) {
			result = append(result, owner)
		}
	}
	return result
}

func numbersOf(listed []discoveryv1.EndpointPort) []int32 {
	var result []int32
	for _, port := range listed {
		result = append(result, ptr.Deref(port.Port, 0))
	}
	return result
}

// awaitsGateways reports whether no gateway is listed for a source cluster yet, because it may not listen.
func (v view) awaitsGateways(source clusterset.ClusterID) bool {
	isListed := slices.ContainsFunc(v.mirrored, func(s *discoveryv1.EndpointSlice) bool {
		return isGatewaySlice(s) && sourceOf(s) == source && len(s.Ports) > 0
	})
	return !isListed && slices.ContainsFunc(v.opening.UnsortedList(), func(owner ports.Owner) bool { return owner.Cluster == source })
}

// listening returns the availability of an export without the ports on which gateways may not listen yet.
func (v view) listening(export clusterset.Export) clusterset.Availability {
	result := maps.Clone(export.Available)
	for _, port := range export.Ports {
		if v.opening.Has(ports.Owner{Service: export.Key, Cluster: export.Cluster, Port: port.Port}) {
			delete(result, port.ID())
		}
	}
	return result
}

// portsOf returns the listening ports that a slice records, by their owners; nil if it records none, or another user has edited it.
func portsOf(slice *discoveryv1.EndpointSlice) map[ports.Owner]int32 {
	result, _ := caches.ListeningPorts(slice)
	return result
}
