// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// TestSilentMember: the endpoints of a member that is gone leave a service that others serve too, port by port and family by family,
// and return with it. Its exports count all the while, and what only it serves, or gives names to, stays.
//
// spec: D9, I2, I3
func TestSilentMember(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	kill := a.Start(t)
	b.Start(t)
	ns := world.Namespace(t, a, b)
	both, alone, headless := key{Namespace: ns, Name: "both"}, key{Namespace: ns, Name: "alone"}, key{Namespace: ns, Name: "headless"}
	for i, m := range []*member{a, b} {
		m.ExportWeb(t, both, fmt.Sprintf("10.%d.0.1", i+1))
		pets := world.Headless(headless, world.Port("http", 80))
		m.ExportService(t, pets, world.Slice(pets, "v4", fmt.Sprintf("10.%d.0.2", i+1)))
	}
	a.ExportWeb(t, alone, "10.1.0.3")
	inPart := partlyServed(t, key{Namespace: ns, Name: "in-part"}, a, b)
	b.Endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	b.Endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080")
	b.Endpoints(t, alone, "a 10.1.0.3:http:8080")
	b.Endpoints(t, inPart, "a 10.1.0.4:http:8080", "a 10.1.0.4:admin:8081", "a fd00:1::4:http:8080", "a fd00:1::4:admin:8081",
		"b 10.2.0.4:http:8080", "b fd00:2::4:admin:8081")
	a.Condition(t, both, conflict, metav1.ConditionFalse, "NoConflicts")
	w.settled(t) // the status may come after the slices
	before, _ := b.Imported(t, both)
	b.Gauge(t, "tombolo_member_live", 1)

	kill()
	b.Gauge(t, "tombolo_member_live", 0)
	b.Endpoints(t, both, "b 10.2.0.1:http:8080")
	b.Endpoints(t, inPart, "a 10.1.0.4:admin:8081", "a fd00:1::4:http:8080", "b 10.2.0.4:http:8080", "b fd00:2::4:admin:8081")
	more := world.Slice(world.Headless(headless, world.Port("http", 80)), "more", "10.2.0.3")
	lab.Must(t, b.Create(t.Context(), more)) // b looks at it again, and at the other
	b.Endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080", "b 10.2.0.3:http:8080")
	b.Endpoints(t, alone, "a 10.1.0.3:http:8080")
	after, _ := b.Imported(t, both)
	lab.Equal(t, "the status changed", before.Status, after.Status)
	b.Condition(t, both, conflict, metav1.ConditionFalse, "NoConflicts")

	local := world.Slice(world.Service(both, world.Port("http", 80)), "v4", "10.2.0.1")
	local.Endpoints[0].Conditions.Ready = new(false)
	lab.Must(t, b.Update(t.Context(), local))
	b.Endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080") // the silent one is the last resort
	local.ResourceVersion = ""
	local.Endpoints[0].Conditions.Ready = new(true)
	lab.Must(t, b.Update(t.Context(), local))
	b.Endpoints(t, both, "b 10.2.0.1:http:8080")
	b.Endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080", "b 10.2.0.3:http:8080")
	b.Endpoints(t, alone, "a 10.1.0.3:http:8080")

	a.Start(t)
	b.Gauge(t, "tombolo_member_live", 1)
	b.Endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	b.Endpoints(t, inPart, "a 10.1.0.4:http:8080", "a 10.1.0.4:admin:8081", "a fd00:1::4:http:8080", "a fd00:1::4:admin:8081",
		"b 10.2.0.4:http:8080", "b fd00:2::4:admin:8081")
	b.Endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080", "b 10.2.0.3:http:8080")
	b.allButOneSilent(t, w, key{Namespace: ns, Name: "many"})
}

// partlyServed has a export two ports in both families, and b the same of which its pods serve one port in each family.
func partlyServed(t *testing.T, k key, a, b *member) key {
	t.Helper()
	service := func() *corev1.Service { return world.Service(k, world.Port("http", 80), world.Port("admin", 81)) }
	a.ExportService(t, service(), world.Slice(service(), "v4", "10.1.0.4"),
		world.Slice(service(), "v6", "fd00:1::4"))
	v4 := world.Slice(service(), "v4", "10.2.0.4")
	v6 := world.Slice(service(), "v6", "fd00:2::4")
	v4.Ports, v6.Ports = v4.Ports[:1], v6.Ports[1:]
	b.ExportService(t, service(), v4, v6)
	return k
}

// allButOneSilent: of five members that serve a service four fall silent in one moment. However many these are, their endpoints
// leave, and the one that lives serves for all. They still count as exporters.
func (m *member) allButOneSilent(t *testing.T, w *env, k key) {
	t.Helper()
	var all []string
	ids := []string{"c", "d", "e", "f", "g"}
	for i, id := range ids {
		address := fmt.Sprintf("10.99.0.%d", i+1)
		w.Enroll(t, id)
		w.Publish(t, id, k, nil, address)
		all = append(all, fmt.Sprintf("%s %s:http:8080", id, address))
	}
	world.Eventually(t, func(ctx context.Context) error {
		for _, id := range ids {
			if err := w.Renew(ctx, id); err != nil {
				return err
			}
		}
		return m.HasGauge("tombolo_member_live", float64(len(ids)+1))
	})
	m.Endpoints(t, k, all...)
	before, _ := m.Imported(t, k)

	world.Eventually(t, func(ctx context.Context) error {
		return errors.Join(w.Renew(ctx, "g"), m.HasGauge("tombolo_member_live", 2), m.HasEndpoints(ctx, k, all[4]))
	})
	after, _ := m.Imported(t, k)
	lab.Equal(t, "the status changed", before.Status, after.Status)
}
