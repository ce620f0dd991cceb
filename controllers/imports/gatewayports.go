// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"fmt"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
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

// held sets the listening ports of a service.
func (g *GatewayPorts) held(service clusterset.ServiceKey, into *importing.Numbers) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.allocator != nil {
		into.Ports, into.Since = g.allocator.Of(service)
	}
}

// assign sets the listening ports of the wanted owners of a service, and releases those of its others. An owner for which no port is free gets
// none.
func (g *GatewayPorts) assign(ctx context.Context, service clusterset.ServiceKey, wanted []ports.Owner, into *importing.Numbers) error {
	into.PortsFor = append([]ports.Owner{}, wanted...)
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.allocator == nil {
		if err := g.load(ctx); err != nil {
			return err
		}
	}
	now := g.Clock.Now()
	if _, err := g.allocator.Assign(service, wanted, now, func(s ports.State) error { return g.store(ctx, s) }); err != nil {
		return err
	}
	if into.Ports, into.Since = g.allocator.Of(service); len(into.Ports) < len(wanted) {
		into.Retry = max(g.allocator.NextFree(now).Sub(now), time.Second)
	}
	return nil
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
	recordsPorts := func(s discoveryv1.EndpointSlice) bool { return len(listeningPorts(&s)) > 0 } // those that lead to virtual IPs record none
	if apierrors.IsNotFound(err) && !slices.ContainsFunc(list.Items, recordsPorts) {
		state = ports.Unused()
	}
	allocator := ports.New(state, g.Clock.Now())
	for i := range list.Items {
		for owner, port := range listeningPorts(&list.Items[i]) {
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

// listeningPorts returns the listening ports that a slice records, by their owners; nil if it records none, or another user has edited it.
func listeningPorts(slice *discoveryv1.EndpointSlice) map[ports.Owner]int32 {
	result, _ := render.ListeningPorts(slice)
	return result
}
