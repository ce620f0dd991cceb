// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
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
		g.allocator, g.stored = nil, nil // read it again: another replica may have written it
		return fmt.Errorf("store the state of the gateways' ports: %w", err)
	}
	if len(written) > 0 {
		g.stored = written[0]
	}
	return nil
}
