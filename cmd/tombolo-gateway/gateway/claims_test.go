// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ofSlices is what claims must lead to.
type ofSlices struct {
	Leads    map[int32]ports.Owner
	Clusters []clusterset.ClusterID
	LeftOut  []string
}

// fromNothing returns what slices lead to, without the state of former slices.
func fromNothing(t *rapid.T, all []*discoveryv1.EndpointSlice) ofSlices {
	result := ofSlices{Leads: map[int32]ports.Owner{}}
	leftOut := func(format string, values ...any) {
		result.LeftOut = append(result.LeftOut, fmt.Sprintf(format, values...))
	}
	clusters, firsts := map[clusterset.ClusterID]bool{}, map[int32]string{}
	slices.SortFunc(all, func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	owners := map[int32]ports.Owner{}
	for _, slice := range all {
		if slice.Labels[clusterset.LabelGateway] != "true" {
			continue
		}
		listen, err := render.ListeningPorts(slice)
		if err != nil {
			leftOut("EndpointSlice shop/%s is not as the agent has written it: %v", slice.Name, err)
		}
		for _, owner := range slices.SortedFunc(maps.Keys(listen), func(a, b ports.Owner) int { return cmp.Compare(a.Port, b.Port) }) {
			number := listen[owner]
			first, taken := owners[number]
			if taken && first != owner {
				leftOut("EndpointSlice shop/%s has port %d, which EndpointSlice shop/%s had before", slice.Name, number, firsts[number])
			}
			if taken {
				continue
			}
			owners[number], firsts[number] = owner, slice.Name
			if number < ports.First || number > ports.Last {
				leftOut("EndpointSlice shop/%s has port %d, which is none of gateways", slice.Name, number)
				continue
			}
			result.Leads[number], clusters[owner.Cluster] = owner, true
		}
	}
	result.Clusters = slices.Sorted(maps.Keys(clusters))
	slices.Sort(result.LeftOut)
	return result
}

// After any events, also those of a restart, the listening ports lead where the slices say that exist then. spec: G2
func TestClaims(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var (
			c        *claims
			handler  toolscache.ResourceEventHandler
			notified bool
			applied  map[int32]ports.Owner
		)
		existing := map[string]*discoveryv1.EndpointSlice{}
		restart := func() {
			c, applied = newClaims(func() { notified = true }), map[int32]ports.Owner{}
			handler = follow(c.observe)
			for _, name := range rapid.Permutation(slices.Sorted(maps.Keys(existing))).Draw(t, "initial list") {
				handler.OnAdd(existing[name], true)
			}
		}
		compare := func() {
			news, clusters, leftOut := c.take()
			maps.Copy(applied, news)
			maps.DeleteFunc(applied, func(_ int32, owner ports.Owner) bool { return owner == ports.Owner{} })
			check.Equal(t, "state", fromNothing(t, slices.Collect(maps.Values(existing))), ofSlices{applied, clusters, check.Messages(leftOut)})
			notified = false
		}
		restart()
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "slice")
			before, exists := existing[name]
			switch rapid.SampledFrom([]string{"write", "write", "write", "delete", "compare", "restart"}).Draw(t, "event") {
			case "write":
				slice := anySlice(t, name)
				if existing[name] = slice; exists {
					handler.OnUpdate(before, slice)
				} else {
					handler.OnAdd(slice, false)
				}
			case "delete":
				var last any = before
				if rapid.Bool().Draw(t, "the event of the deletion is missed") {
					last = toolscache.DeletedFinalStateUnknown{Key: "shop/" + name, Obj: anySlice(t, name)}
				}
				delete(existing, name)
				if exists {
					handler.OnDelete(last)
				}
			case "compare":
				compare()
			case "restart":
				restart()
			}
			if pending := len(c.news) > 0; pending && !notified {
				t.Fatal("a change without a notification")
			}
		}
		compare()
	})
}

// anySlice returns a slice that may claim ports which others claim, or is not valid, or not of gateways.
func anySlice(t *rapid.T, name string) *discoveryv1.EndpointSlice {
	var listen []string
	for _, port := range rapid.SliceOfNDistinct(rapid.IntRange(80, 82), 0, 3, rapid.ID).Draw(t, "ports") {
		number := rapid.SampledFrom([]int32{ports.First, ports.First + 1, ports.First + 2, ports.Last, ports.Last + 1}).Draw(t, "number")
		listen = append(listen, fmt.Sprintf("%d=%d", port, number))
	}
	slice := mirrored(name, rapid.IntRange(0, 2).Draw(t, "age"), strings.Join(listen, ","))
	label := func(key string, values ...string) { slice.Labels[key] = rapid.SampledFrom(values).Draw(t, key) }
	label(mcsv1beta1.LabelServiceName, "web", "web", "db")
	label(mcsv1beta1.LabelSourceCluster, "west", "west", "north", "-")
	label(clusterset.LabelGateway, "true", "true", "true", "")
	return &slice
}
