// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// If an import lacks virtual IPs, others give up those that they do not use, and it gets them.
// spec: G9
func TestUnusedVirtualIPsAreFreed(t *testing.T) {
	t.Parallel()
	var notified []string
	quota := &VirtualIPs{imports: map[clusterset.ServiceKey]virtualIPCount{}}
	quota.Subscribe(func(key clusterset.ServiceKey) { notified = append(notified, key.Name) })
	ips := func(name string, n int) []clusterset.VirtualIP {
		var result []clusterset.VirtualIP
		for i := range n {
			id := clusterset.ClusterID(fmt.Sprint(name, i/50))
			result = append(result, clusterset.VirtualIP{Service: clusterset.ServiceKey{Namespace: "shop", Name: name}, Cluster: id})
		}
		return result
	}
	for i, step := range []struct {
		name                 string
		used, unused, want   int
		wantNotified, reason string
	}{
		{"a", 600, 100, 700, "[]", "there is room"},
		{"b", 250, 100, 300, "[]", "unused ones get what is left"},
		{"c", 20, 0, 0, "[a b]", "a and b have unused ones"},
		{"a", 600, 100, 680, "[c]", "a gives up as many as c lacks"},
		{"c", 20, 0, 20, "[]", "c gets them"},
		{"a", 600, 80, 680, "[]", "no other import lacks any"},
		{"a", 0, 0, 0, "[]", "it is withdrawn"},
	} {
		notified = []string{}
		key := clusterset.ServiceKey{Namespace: "shop", Name: step.name}
		var numbers importing.Numbers
		err := quota.assign(t.Context(), key, importing.VirtualIPRequest{Used: ips(step.name, step.used), Unused: ips(step.name, step.unused)}, &numbers)
		got := numbers.VirtualIPs
		slices.Sort(notified)
		if len(got) != step.want || err != nil || fmt.Sprint(notified) != step.wantNotified {
			t.Errorf("step %d, %s: %s has %d, %v, and %v are notified; want %d and %s", i, step.reason, step.name, len(got), err, notified, step.want, step.wantNotified)
		}
	}
}

// One cluster leaves a quarter of the virtual IPs to the others, which have their share of it. It keeps those that it has, and gets more when
// others give up theirs.
// spec: G9
func TestVirtualIPShare(t *testing.T) {
	t.Parallel()
	var notified []string
	quota := &VirtualIPs{imports: map[clusterset.ServiceKey]virtualIPCount{}}
	quota.Subscribe(func(key clusterset.ServiceKey) { notified = append(notified, key.Name) })
	ips := func(name string, id clusterset.ClusterID, n int) []clusterset.VirtualIP {
		return slices.Repeat([]clusterset.VirtualIP{{Service: clusterset.ServiceKey{Namespace: "shop", Name: name}, Cluster: id}}, n)
	}
	for i, step := range []struct {
		name         string
		used         []clusterset.VirtualIP
		want         int
		wantNotified string
	}{
		{"a", ips("a", "greedy", 600), 600, "[]"},
		{"b", ips("b", "greedy", 200), 150, "[]"},
		{"c", slices.Concat(ips("c", "east", 10), ips("c", "greedy", 10), ips("c", "west", 100)), 10 + 62, "[]"},
		{"d", ips("d", "east", 100), 62 - 10, "[]"},
		{"a", ips("a", "greedy", 600), 600, "[]"},
		{"a", ips("a", "greedy", 550), 550, "[b c d]"},
		{"b", ips("b", "greedy", 200), 150, "[]"}, // 824 are in use
		{"a", ips("a", "greedy", 300), 300, "[b c d]"},
		{"b", ips("b", "greedy", 200), 200, "[]"},
	} {
		notified = []string{}
		var numbers importing.Numbers
		err := quota.assign(t.Context(), clusterset.ServiceKey{Namespace: "shop", Name: step.name}, importing.VirtualIPRequest{Used: step.used}, &numbers)
		got := numbers.VirtualIPs
		slices.Sort(notified)
		if len(got) != step.want || err != nil || fmt.Sprint(notified) != step.wantNotified {
			t.Errorf("step %d: %s has %d, %v, and %v are notified; want %d and %s", i, step.name, len(got), err, notified, step.want, step.wantNotified)
		}
	}
}

// The controller does not begin before the gateways were probed once. spec: G8
func TestFirstProbe(t *testing.T) {
	t.Parallel()
	known := &reach.Reach{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (firstProbe{known}).WaitForSync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("before the first probe: %v", err)
	}
	known.Observe(nil, sets.New("10.9.0.1"))
	check.Must(t, firstProbe{known}.WaitForSync(t.Context()))
}
