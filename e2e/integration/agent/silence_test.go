// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// TestSilentMember: the endpoints of a member that is gone leave a service that others serve too, and return with it. Its exports count
// all the while, and what only it serves, or gives names to, stays. (pkg/liveness.TestServing: port by port and family by family, however
// many are silent.)
//
// spec: D9, I2, I3
func TestSilentMember(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
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
	b.Endpoints(t, both, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	b.Endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080")
	b.Endpoints(t, alone, "a 10.1.0.3:http:8080")
	a.Condition(t, both, conflict, metav1.ConditionFalse, "NoConflicts")
	w.settled(t) // the status may come after the slices
	before, _ := b.Imported(t, both)
	b.Gauge(t, "tombolo_member_live", 1)

	kill()
	b.Gauge(t, "tombolo_member_live", 0)
	b.Endpoints(t, both, "b 10.2.0.1:http:8080")
	more := world.Slice(world.Headless(headless, world.Port("http", 80)), "more", "10.2.0.3")
	lab.Must(t, b.Create(t.Context(), more)) // b reconciles it again, and the other
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
	b.Endpoints(t, headless, "a 10.1.0.2:http:8080", "b 10.2.0.2:http:8080", "b 10.2.0.3:http:8080")
}
