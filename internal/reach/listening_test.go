// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// The listening ports of a service.
const firstPort, secondPort = ports.First, ports.First + 1

var (
	service = clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	wanted  = map[ports.Owner]int32{ownerOf(80): firstPort, ownerOf(443): secondPort}
)

func ownerOf(port int32) ports.Owner { return ports.Owner{Service: service, Cluster: "b", Port: port} }

// openPorts returns open ports, of which one is that of another owner if it is negative.
func openPorts(numbers ...int32) ports.Open {
	result := ports.Open{}
	for owner, number := range wanted {
		switch {
		case slices.Contains(numbers, number):
			result[number] = ports.DigestOf(owner)
		case slices.Contains(numbers, -number):
			result[number] = ports.DigestOf(ports.Owner{Service: service, Cluster: "former", Port: owner.Port})
		}
	}
	return result
}

// What is known of each gateway decides on which ports it listens: its last answer; of an older one, which does not report its ports, and if
// none of an IP family has answered, the time of the allocation; and nothing while it has not answered and another one has.
// spec: G2, G8
func TestClosed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open    map[string]ports.Open
		unready []string
		recent  []ports.Owner
		want    map[string][]int32
		guessed bool
	}{
		"all listen": {
			open: map[string]ports.Open{one: openPorts(firstPort, secondPort), two: openPorts(firstPort, secondPort), oneSix: openPorts(firstPort, secondPort)},
			want: map[string][]int32{one: nil, two: nil, oneSix: nil},
		},
		"a new port": {
			open:   map[string]ports.Open{one: openPorts(firstPort, secondPort), two: openPorts(firstPort), oneSix: openPorts(firstPort)},
			recent: []ports.Owner{ownerOf(443)},
			want:   map[string][]int32{one: nil, two: {secondPort}, oneSix: {secondPort}},
		},
		"a port that has moved": {
			open: map[string]ports.Open{one: openPorts(firstPort, secondPort), two: openPorts(-firstPort, secondPort), oneSix: openPorts(firstPort, secondPort)},
			want: map[string][]int32{one: nil, two: {firstPort}, oneSix: nil},
		},
		"one has no port": {
			open: map[string]ports.Open{one: openPorts(firstPort, secondPort), two: {}, oneSix: openPorts(firstPort, secondPort)},
			want: map[string][]int32{one: nil, two: {firstPort, secondPort}, oneSix: nil},
		},
		"one has not answered yet": {
			open: map[string]ports.Open{one: openPorts(firstPort, secondPort), oneSix: openPorts(firstPort, secondPort)},
			want: map[string][]int32{one: nil, two: {firstPort, secondPort}, oneSix: nil},
		},
		"the other is not ready": {
			open:    map[string]ports.Open{one: openPorts(firstPort), oneSix: openPorts(firstPort)},
			unready: []string{two},
			want:    map[string][]int32{one: {secondPort}, oneSix: {secondPort}},
		},
		"one is older": {
			open: map[string]ports.Open{one: openPorts(firstPort), two: nil, oneSix: openPorts(firstPort)}, guessed: true,
			want: map[string][]int32{one: {secondPort}, two: nil, oneSix: {secondPort}},
		},
		"one is older, and a port is recent": {
			open: map[string]ports.Open{one: openPorts(firstPort), two: nil, oneSix: openPorts(firstPort)}, guessed: true,
			recent: []ports.Owner{ownerOf(80)},
			want:   map[string][]int32{one: {secondPort}, two: {firstPort}, oneSix: {secondPort}},
		},
		"none of a family has answered": {
			open: map[string]ports.Open{one: openPorts(firstPort), two: openPorts(firstPort, secondPort)}, guessed: true,
			recent: []ports.Owner{ownerOf(80)},
			want:   map[string][]int32{one: {secondPort}, two: nil, oneSix: {firstPort}},
		},
		"nothing is known": {guessed: true, want: map[string][]int32{one: nil, two: nil, oneSix: nil}},
		"only gateways that are gone have answered": {
			open: map[string]ports.Open{"10.9.0.9": openPorts(firstPort)}, guessed: true, want: map[string][]int32{one: nil, two: nil, oneSix: nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Reach{}
			r.Observe(test.open, nil)
			closed, guessed := r.Seen().Closed(gateways(test.unready...), wanted, sets.New(test.recent...))
			got := map[string][]int32{}
			for address, numbers := range closed {
				got[address] = nil
				for _, number := range sets.List(numbers) {
					got[address] = append(got[address], number)
					check.Equal(t, fmt.Sprintf("%s is closed at %s", fmt.Sprint(number), address), true, closed.Has(address, number))
				}
			}
			check.Equal(t, "closed ports", test.want, got)
			check.Equal(t, "guessed", test.guessed, guessed)
		})
	}
}

// A service that needs no port asks for nothing. spec: G2
func TestClosedWithoutPorts(t *testing.T) {
	t.Parallel()
	closed, guessed := Seen{}.Closed(gateways(), nil, nil)
	if len(closed) > 0 || guessed || closed.Has(one, firstPort) {
		t.Errorf("closed %v, guessed %t", closed, guessed)
	}
}

// A change of the ports of a gateway is reported with these ports, and a gateway that answers for the first time, no more, or in another
// version, as a change for every cluster. spec: G8
func TestSubscribePorts(t *testing.T) {
	t.Parallel()
	r := &Reach{}
	var clusters []clusterset.ClusterID
	var numbers []int32
	r.Subscribe(func(id clusterset.ClusterID) { clusters = append(clusters, id) })
	r.SubscribePorts(func(changed sets.Set[int32]) { numbers = append(numbers, sets.List(changed)...) })
	observe := func(what string, open map[string]ports.Open, wantClusters []clusterset.ClusterID, wantNumbers ...int32) {
		t.Helper()
		clusters, numbers = nil, nil
		r.Observe(maps.Clone(open), nil)
		check.Equal(t, what+": clusters", wantClusters, clusters)
		check.Equal(t, what+": ports", wantNumbers, numbers)
	}
	every := []clusterset.ClusterID{EveryCluster}
	observe("the first answer", map[string]ports.Open{one: openPorts(firstPort)}, every)
	observe("the same", map[string]ports.Open{one: openPorts(firstPort)}, nil)
	observe("a new port", map[string]ports.Open{one: openPorts(firstPort, secondPort)}, nil, secondPort)
	observe("a port with another owner", map[string]ports.Open{one: openPorts(-firstPort, secondPort)}, nil, firstPort)
	observe("a closed port", map[string]ports.Open{one: openPorts(-firstPort)}, nil, secondPort)
	observe("another gateway", map[string]ports.Open{one: openPorts(-firstPort), two: {}}, every)
	observe("an older one", map[string]ports.Open{one: openPorts(-firstPort), two: nil}, every)
	observe("no answer", map[string]ports.Open{one: openPorts(-firstPort)}, every)
}

// Nothing is decided before the first probe. spec: G8
func TestProbed(t *testing.T) {
	t.Parallel()
	r := &Reach{}
	select {
	case <-r.Probed():
		t.Error("probed before the first probe")
	default:
	}
	r.Observe(nil, nil)
	r.Observe(nil, nil)
	<-r.Probed()
	r.Await()
	r.Await() // does not block
	<-r.Awaited()
}
