// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// webKey returns the key of a service.
func webKey() clusterset.ServiceKey { return clusterset.ServiceKey{Namespace: "shop", Name: "web"} }

// withoutState reads a cluster with these slices in which no State is stored.
type withoutState []*discoveryv1.EndpointSlice

func (withoutState) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(corev1.Resource("configmaps"), key.Name)
}

func (r withoutState) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	for _, slice := range r {
		into.(*discoveryv1.EndpointSliceList).Items = append(into.(*discoveryv1.EndpointSliceList).Items, *slice)
	}
	return nil
}

// The first listening ports of a cluster are free at once, also if it has imported a headless service before of which no hostname was
// available: its slices record no port. If a slice records one, the State is lost, and all ports are in quarantine.
// spec: G2, G9
func TestFirstListeningPorts(t *testing.T) {
	t.Parallel()
	owner := ports.Owner{Service: webKey(), Cluster: "b", Hostname: "db-0", Port: 80}
	for name, test := range map[string]struct {
		recorded map[int32]int32
		free     bool
	}{
		"no hostname was available": {nil, true},
		"one was":                   {map[int32]int32{80: ports.First}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ip := clusterset.VirtualIP{Service: webKey(), Cluster: "b", Hostname: "db-1"}
			gateways := withoutState(render.VirtualEndpoints(ip, []clusterset.Slice{{AddressType: "IPv4", Listen: test.recorded}}))
			g := &GatewayPorts{Live: gateways, Cached: gateways, Clock: clock.RealClock{}}
			check.Must(t, g.load(t.Context()))
			got, err := g.allocator.Assign(webKey(), []ports.Owner{owner}, time.Now(), func(ports.State) error { return nil })
			if free := got[owner] != 0; free != test.free || err != nil {
				t.Errorf("port %d, %v; want that one is free: %t", got[owner], err, test.free)
			}
		})
	}
}

// conflicting is a cluster in which another replica has just changed each object.
type conflicting struct{ client.Client }

func (conflicting) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	return apierrors.NewConflict(corev1.Resource("configmaps"), object.GetName(), nil)
}

// The state of the ports is written again if another replica has changed it: no watch event triggers that.
// spec: G2
func TestStoredByAnother(t *testing.T) {
	t.Parallel()
	existing := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: portsConfigMap, ResourceVersion: "7", Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy},
	}}
	g := &GatewayPorts{Writer: apply.ToMember(conflicting{}, nil), stored: existing}
	if err := g.store(t.Context(), ports.State{}); err == nil || errors.Is(err, apply.ErrStale) {
		t.Errorf("got %v, want an error that is retried", err)
	}
	if g.stored != nil {
		t.Error("the state is not read again")
	}
}

// The services of changed ports are their present owners. spec: G8
func TestServicesOfPorts(t *testing.T) {
	t.Parallel()
	numbers := sets.New[int32](ports.First, ports.First+1)
	g := &GatewayPorts{}
	check.Equal(t, "services before a port is read", 0, len(g.services(numbers))+len((*GatewayPorts)(nil).services(numbers)))
	g.allocator = ports.New(ports.Unused(), time.Unix(0, 0))
	g.allocator.Adopt(ports.Owner{Service: webKey(), Cluster: "a", Port: 80}, ports.First)
	check.Equal(t, "services", []clusterset.ServiceKey{webKey()}, g.services(numbers).UnsortedList())
}
