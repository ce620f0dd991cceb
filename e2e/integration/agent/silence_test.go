// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestSilentMember: the endpoints of a member that is gone leave a service that others serve too, port by port and family by family,
// and return with it. Its exports count all the while, and what only it serves, or gives names to, stays.
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
	inPart := partlyServed(t, key{Namespace: ns, Name: "in-part"}, a, b)
	b.endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	b.endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080")
	b.endpoints(t, alone, "a 10.1.0.3:http:8080")
	b.endpoints(t, inPart, "a 10.1.0.4:http:8080", "a 10.1.0.4:admin:8081", "a fd00:1::4:http:8080", "a fd00:1::4:admin:8081",
		"b 10.2.0.4:http:8080", "b fd00:2::4:admin:8081")
	a.condition(t, both, conflict, metav1.ConditionFalse, "NoConflicts")
	w.settled(t) // the status may come after the slices
	before, _ := b.imported(t, both)
	b.gauge(t, "tombolo_member_live", 1)

	kill()
	b.gauge(t, "tombolo_member_live", 0)
	b.endpoints(t, both, "b 10.2.0.1:http:8080")
	b.endpoints(t, inPart, "a 10.1.0.4:admin:8081", "a fd00:1::4:http:8080", "b 10.2.0.4:http:8080", "b fd00:2::4:admin:8081")
	more := slice(headlessService(headless, port("http", 80)), "more", discoveryv1.AddressTypeIPv4, "10.2.0.3")
	lab.Must(t, b.Create(t.Context(), more)) // b looks at it again, and at the other
	b.endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080", "b 10.2.0.3:http:8080")
	b.endpoints(t, alone, "a 10.1.0.3:http:8080")
	after, _ := b.imported(t, both)
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Errorf("the status changed (-before +after):\n%s", diff)
	}
	b.condition(t, both, conflict, metav1.ConditionFalse, "NoConflicts")

	local := slice(clusterIPService(both, port("http", 80)), "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1")
	local.Endpoints[0].Conditions.Ready = new(false)
	lab.Must(t, b.Update(t.Context(), local))
	b.endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080") // the silent one is the last resort
	local.ResourceVersion = ""
	local.Endpoints[0].Conditions.Ready = new(true)
	lab.Must(t, b.Update(t.Context(), local))
	b.endpoints(t, both, "b 10.2.0.1:http:8080")
	b.endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080", "b 10.2.0.3:http:8080")
	b.endpoints(t, alone, "a 10.1.0.3:http:8080")

	a.start(t)
	b.gauge(t, "tombolo_member_live", 1)
	b.endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	b.endpoints(t, inPart, "a 10.1.0.4:http:8080", "a 10.1.0.4:admin:8081", "a fd00:1::4:http:8080", "a fd00:1::4:admin:8081",
		"b 10.2.0.4:http:8080", "b fd00:2::4:admin:8081")
	b.endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080", "b 10.2.0.3:http:8080")
	b.allButOneSilent(t, w, key{Namespace: ns, Name: "many"})
}

// partlyServed has a export two ports in both families, and b the same of which its pods serve one port in each family.
func partlyServed(t *testing.T, k key, a, b *member) key {
	t.Helper()
	service := func() *corev1.Service { return clusterIPService(k, port("http", 80), port("admin", 81)) }
	a.exportService(t, service(), slice(service(), "v4", discoveryv1.AddressTypeIPv4, "10.1.0.4"),
		slice(service(), "v6", discoveryv1.AddressTypeIPv6, "fd00:1::4"))
	v4 := slice(service(), "v4", discoveryv1.AddressTypeIPv4, "10.2.0.4")
	v6 := slice(service(), "v6", discoveryv1.AddressTypeIPv6, "fd00:2::4")
	v4.Ports, v6.Ports = v4.Ports[:1], v6.Ports[1:]
	b.exportService(t, service(), v4, v6)
	return k
}

// allButOneSilent: of five members that serve a service four fall silent in one moment. However many these are, their endpoints
// leave, and the one that lives serves for all. They still count as exporters.
func (m *member) allButOneSilent(t *testing.T, w *world, k key) {
	t.Helper()
	var all []string
	beats := map[string]*hubv1alpha1.Heartbeat{}
	for i, id := range []string{"c", "d", "e", "f", "g"} {
		w.enroll(t, id, hubv1alpha1.ClaimedAgesBounded)
		createRecord(t, w.hubKube, claim(id, k, time.Now()))
		address := fmt.Sprintf("10.99.0.%d", i+1)
		lab.Must(t, w.hubKube.Create(t.Context(), &hubv1alpha1.PublishedEndpoints{
			ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + id, Name: k.Namespace + "." + k.Name + ".0123456789"},
			Spec: hubv1alpha1.PublishedEndpointsSpec{
				Namespace: hubv1alpha1.NamespaceName(k.Namespace), Service: hubv1alpha1.ServiceName(k.Name), AddressType: "IPv4",
				Ports:  []hubv1alpha1.PublishedEndpointPort{{Name: "http", Protocol: "TCP", Port: 8080}},
				Groups: []hubv1alpha1.EndpointGroup{{Addresses: []hubv1alpha1.IPAddress{hubv1alpha1.IPAddress(address)}}},
			},
		}))
		beats[id] = &hubv1alpha1.Heartbeat{
			ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + id, Name: hubv1alpha1.HeartbeatName},
			Spec:       hubv1alpha1.HeartbeatSpec{RenewTime: metav1.NowMicro(), Publication: hubv1alpha1.PublicationComplete},
		}
		lab.Must(t, w.hubKube.Create(t.Context(), beats[id]))
		all = append(all, fmt.Sprintf("%s %s:http:8080", id, address))
	}
	beat := func(ctx context.Context, heartbeat *hubv1alpha1.Heartbeat) error {
		heartbeat.Spec.RenewTime = metav1.NowMicro()
		return w.hubKube.Update(ctx, heartbeat)
	}
	eventually(t, func(ctx context.Context) error {
		for _, heartbeat := range beats {
			if err := beat(ctx, heartbeat); err != nil {
				return err
			}
		}
		return m.knowsLive(len(beats) + 1)
	})
	m.endpoints(t, k, all...)
	before, _ := m.imported(t, k)

	eventually(t, func(ctx context.Context) error {
		return errors.Join(beat(ctx, beats["g"]), m.knowsLive(2), m.uses(ctx, k, all[4]))
	})
	after, _ := m.imported(t, k)
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Errorf("the status changed (-before +after):\n%s", diff)
	}
}

// knowsLive returns nil where the member's agent takes so many others for alive.
func (m *member) knowsLive(want int) error {
	families, err := m.registry.Gather()
	if err != nil {
		return err
	}
	live := 0.
	for _, family := range families {
		if family.GetName() == "tombolo_member_live" {
			for _, metric := range family.GetMetric() {
				live += metric.GetGauge().GetValue()
			}
		}
	}
	if live != float64(want) {
		return fmt.Errorf("%s takes %v others for alive, want %d", m.id, live, want)
	}
	return nil
}

// TestFrozenHubAgesNobody: while the hub does not move, or cannot decide on anything, nobody's silence means anything.
//
// spec: D9
func TestFrozenHubAgesNobody(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.start(t)
	var unanswered attempts
	b.startWith(t, func(o *agent.Options) { o.Hub = unanswered.of(o.Hub, "/namespaces/member-b/heartbeats") })
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	servedByBoth(t, k, a, b)
	mirrored, err := b.mirrored(t.Context(), k)
	lab.Must(t, err)
	cluster, err := b.cluster.Client(nil)
	lab.Must(t, err)
	events, err := cluster.Watch(t.Context(), &discoveryv1.EndpointSliceList{}, client.InNamespace(k.Namespace))
	lab.Must(t, err)
	defer events.Stop()
	for range len(mirrored) + 1 { // what is there: these, and b's own
		<-events.ResultChan()
	}

	for _, process := range []*lab.Process{w.hub.APIServer, w.hub.Etcd} {
		lab.Must(t, process.Freeze())
		before := unanswered.load()
		eventually(t, func(context.Context) error {
			if n := unanswered.load() - before; n < 5 { // more than the grace period
				return fmt.Errorf("%d heartbeats of b are unanswered", n)
			}
			return nil
		})
		b.writesNoSlice(t, events, k, fmt.Sprintf("while %s was frozen", process))
		lab.Must(t, process.Thaw())
		for range 5 { // more than the grace period of new heartbeats
			b.beats(t, w)
		}
		b.writesNoSlice(t, events, k, fmt.Sprintf("after %s was thawed", process))
	}
	b.endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
}

// writesNoSlice fails the test if any slice was written in a namespace. A slice of the test's own tells where what was written until
// now ends.
func (m *member) writesNoSlice(t *testing.T, events watch.Interface, k key, when string) {
	t.Helper()
	last := slice(clusterIPService(key{Namespace: k.Namespace, Name: "witness"}), "v4", discoveryv1.AddressTypeIPv4)
	lab.Must(t, m.Create(t.Context(), last))
	lab.Must(t, m.Delete(t.Context(), last.DeepCopy()))
	for event := range events.ResultChan() {
		written, ok := event.Object.(*discoveryv1.EndpointSlice)
		switch {
		case !ok || written.Name != last.Name:
			t.Errorf("%s: %s %+v", when, event.Type, event.Object)
		case written.UID == last.UID && event.Type == watch.Deleted:
			return
		}
	}
	t.Fatalf("%s: the watch has ended", when)
}

// attempts counts the requests of an agent that it gives up since nobody has answered them in time.
type attempts struct{ n atomic.Int64 }

func (a *attempts) load() int64 { return a.n.Load() }

// of returns the configuration of a client whose requests of a path are counted.
func (a *attempts) of(config *rest.Config, path string) *rest.Config {
	result := rest.CopyConfig(config)
	result.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if strings.Contains(request.URL.Path, path) && request.Context().Err() != nil {
				a.n.Add(1)
			}
			return response, err
		})
	})
	return result
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
