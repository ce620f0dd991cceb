// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestSilentMember: the endpoints of a member that is gone leave a service that others serve too, and return with it.
// Its exports count all the while, and what only it serves, or gives names to, stays.
//
// spec: D9, I2, I3
func TestSilentMember(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	kill := a.start(t)
	b.start(t)
	ns := namespace(t, a, b)
	both, alone, headless := key{Namespace: ns, Name: "both"}, key{Namespace: ns, Name: "alone"}, key{Namespace: ns, Name: "headless"}
	for i, m := range []*member{a, b} {
		service := clusterIPService(both, port("http", 80))
		m.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, fmt.Sprintf("10.%d.0.1", i+1)))
		pets := headlessService(headless, port("http", 80))
		m.exportService(t, pets, slice(pets, "v4", discoveryv1.AddressTypeIPv4, fmt.Sprintf("10.%d.0.2", i+1)))
	}
	service := clusterIPService(alone, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.3"))
	b.endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	b.endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080")
	b.endpoints(t, alone, "a 10.1.0.3:http:8080")
	a.condition(t, both, conflict, metav1.ConditionFalse, "NoConflicts")
	w.settled(t) // the status may come after the slices
	before, _ := b.imported(t, both)
	b.gauge(t, "tombolo_member_live", 1)

	kill()
	b.gauge(t, "tombolo_member_live", 0)
	b.endpoints(t, both, "b 10.2.0.1:http:8080")
	b.endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080")
	b.endpoints(t, alone, "a 10.1.0.3:http:8080")
	after, _ := b.imported(t, both)
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Errorf("the status changed (-before +after):\n%s", diff)
	}
	b.condition(t, both, conflict, metav1.ConditionFalse, "NoConflicts")

	local := slice(clusterIPService(both, port("http", 80)), "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1")
	local.Endpoints[0].Conditions.Ready = new(false)
	must(t, b.Update(t.Context(), local))
	b.endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080") // the silent one is the last resort
	local.ResourceVersion = ""
	local.Endpoints[0].Conditions.Ready = new(true)
	must(t, b.Update(t.Context(), local))
	b.endpoints(t, both, "b 10.2.0.1:http:8080")

	a.start(t)
	b.gauge(t, "tombolo_member_live", 1)
	b.endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
}

// TestFrozenHubAgesNobody: while the hub does not move, nobody's silence means anything.
//
// spec: D9
func TestFrozenHubAgesNobody(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.start(t)
	b.start(t)
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	servedByBoth(t, k, a, b)
	mirrored, err := b.mirrored(t.Context(), k)
	must(t, err)
	cluster, err := b.cluster.Client(nil)
	must(t, err)
	watch, err := cluster.Watch(t.Context(), &discoveryv1.EndpointSliceList{}, client.InNamespace(k.Namespace))
	must(t, err)
	defer watch.Stop()
	for range len(mirrored) + 1 { // what is there: these, and b's own
		<-watch.ResultChan()
	}

	must(t, w.hub.APIServer.Freeze())
	timer := time.NewTimer(8 * time.Second) // twice the grace period
	defer timer.Stop()
	select {
	case event := <-watch.ResultChan():
		t.Errorf("while the hub was frozen: %+v", event)
	case <-timer.C:
	}
	must(t, w.hub.APIServer.Thaw())
	before := b.renewed(t, w)
	for range 6 { // more than the grace period of new heartbeats
		eventually(t, func(context.Context) error {
			last := before
			if before = b.renewed(t, w); before == last {
				return errors.New("b has not renewed its heartbeat")
			}
			return nil
		})
	}
	select {
	case event := <-watch.ResultChan():
		t.Errorf("after the hub was thawed: %+v", event)
	default:
	}
	b.endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
}

// TestSlowHeartbeats: a member whose heartbeats come more slowly than ours is given the time that it announces.
//
// spec: D9
func TestSlowHeartbeats(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.startWith(t, func(o *agent.Options) { o.HeartbeatInterval = 15 * time.Second })
	b.start(t)
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	servedByBoth(t, k, a, b)
	for range 8 { // twice the grace period that b gives to those who announce nothing
		b.beats(t, w)
	}
	b.endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	b.gauge(t, "tombolo_member_live", 1)
}

// servedByBoth has a and b export a service, and returns when b uses the endpoints of both.
func servedByBoth(t *testing.T, k key, a, b *member) {
	t.Helper()
	for i, m := range []*member{a, b} {
		service := clusterIPService(k, port("http", 80))
		m.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, fmt.Sprintf("10.%d.0.1", i+1)))
	}
	b.endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
}

// renewed returns the version of the member's last heartbeat.
func (m *member) renewed(t *testing.T, w *world) string {
	t.Helper()
	heartbeat := &hubv1alpha1.Heartbeat{}
	must(t, w.hubKube.Get(t.Context(), key{Namespace: "member-" + m.id, Name: hubv1alpha1.HeartbeatName}, heartbeat))
	return heartbeat.ResourceVersion
}
