// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func service(name string) clusterset.ServiceKey {
	return clusterset.ServiceKey{Namespace: "shop", Name: name}
}

func owners(key clusterset.ServiceKey, cluster clusterset.ClusterID, numbers ...int32) []Owner {
	var result []Owner
	for _, number := range numbers {
		result = append(result, Owner{Service: key, Cluster: cluster, Port: number})
	}
	return result
}

// from returns a State in which all ports are free.
func from(cursor int32) State { return State{cursor, Unused().Free} }

func assign(t check.T, a *Allocator, key clusterset.ServiceKey, now time.Time, wanted ...Owner) map[Owner]int32 {
	stores := 0
	got, err := a.Assign(key, wanted, now, func(State) error {
		stores++
		if stores > number/Block+1 {
			return errors.New("stored more often than there are blocks")
		}
		return nil
	})
	check.Must(t, err)
	return got
}

// spec: G2
func TestOwnersKeepTheirPorts(t *testing.T) {
	t.Parallel()
	a, web, api := New(Unused(), epoch), service("web"), service("api")
	first := assign(t, a, web, epoch, owners(web, "berlin", 80, 443)...)
	want := map[Owner]int32{{Service: web, Cluster: "berlin", Port: 80}: First, {Service: web, Cluster: "berlin", Port: 443}: First + 1}
	check.Equal(t, "ports", want, first)
	assign(t, a, api, epoch, owners(api, "berlin", 80)...)
	second := assign(t, a, web, epoch.Add(time.Hour), slices.Concat(owners(web, "berlin", 443), owners(web, "paris", 443))...)
	want = map[Owner]int32{{Service: web, Cluster: "berlin", Port: 443}: First + 1, {Service: web, Cluster: "paris", Port: 443}: First + 3}
	check.Equal(t, "port 443 of berlin keeps its port, and that of port 80 is not next: ports", want, second)
	check.Equal(t, "ports of a service without sources", map[Owner]int32{}, assign(t, a, web, epoch), cmpopts.EquateEmpty())
}

// spec: G2
func TestAdoptedPortsAreNotGivenTwice(t *testing.T) {
	t.Parallel()
	a, web := New(Unused(), epoch), service("web")
	berlin, paris := Owner{Service: web, Cluster: "berlin", Port: 80}, Owner{Service: web, Cluster: "paris", Port: 80}
	for _, step := range []struct {
		owner Owner
		port  int32
		want  bool
	}{
		{berlin, First, true}, {berlin, First, true}, {berlin, First + 1, false}, {paris, First, false}, {paris, First - 1, false}, {paris, Last + 1, false}, {paris, Last, true},
	} {
		check.Equal(t, fmt.Sprintf("adopt %d for %s", step.port, step.owner.Cluster), step.want, a.Adopt(step.owner, step.port))
	}
	rome := Owner{Service: web, Cluster: "rome", Port: 80}
	check.Equal(t, "ports", map[Owner]int32{berlin: First, paris: Last, rome: First + 1}, assign(t, a, web, epoch, berlin, paris, rome))
}

// spec: G2
func TestReleasedPortsAreQuarantined(t *testing.T) {
	t.Parallel()
	a, web, all := New(Unused(), epoch), service("web"), service("all")
	assign(t, a, web, epoch, owners(web, "berlin", 80)...)
	assign(t, a, web, epoch)
	every := everyPort(all)
	within := assign(t, a, all, epoch.Add(Quarantine-1), every...)
	if len(within) != len(every)-1 || slices.Contains(slices.Collect(maps.Values(within)), First) {
		t.Fatalf("%d ports, want all but the released one", len(within))
	}
	after := assign(t, a, all, epoch.Add(Quarantine), every...)
	check.Equal(t, "number of ports after the quarantine", len(every), len(after))
	more := assign(t, a, web, epoch.Add(Quarantine), owners(web, "berlin", 80)...)
	check.Equal(t, "ports although none is free", map[Owner]int32{}, more, cmpopts.EquateEmpty())
}

// After a restart, ports whose slices were lost are not allocated again until all others were.
// spec: G2
func TestLostPortsAreNotGivenAgain(t *testing.T) {
	t.Parallel()
	state := Unused()
	reserve := func(next State) error { state = next; return nil }
	used := map[int32]bool{}
	for restart := range (Last - First + 1) / Block {
		a, web := New(state, epoch), service(fmt.Sprint("web", restart))
		got, err := a.Assign(web, owners(web, "berlin", 80, 443), epoch, reserve)
		if err != nil || len(got) != 2 {
			t.Fatal(got, err)
		}
		for _, port := range got {
			if used[port] {
				t.Fatalf("port %d is allocated again after restart %d", port, restart)
			}
			used[port] = true
		}
	}
}

// After a restart, a port that was released shortly before is in quarantine, although the cursor may be there. So is one whose slice was
// lost, and each one if nothing is stored.
// spec: G2
func TestRestartKeepsQuarantine(t *testing.T) {
	t.Parallel()
	state := Unused()
	reserve := func(next State) error { state = next; return nil }
	a, old, web := New(state, epoch), service("old"), service("web")
	released := int32(First + Block + 1) // just behind the cursor that the next block stores
	a.Adopt(Owner{Service: old, Cluster: "berlin", Port: 80}, released)
	_, err := a.Assign(web, owners(web, "berlin", 80), epoch, reserve)
	check.Must(t, err)
	assign(t, a, old, epoch.Add(time.Minute))
	restarted := epoch.Add(2 * time.Minute)
	wanted := owners(service("new"), "berlin", 1, 2)
	first, second := New(state, restarted), New(state, restarted)
	want := map[Owner]int32{wanted[0]: released - 1, wanted[1]: released + 1}
	check.Equal(t, "ports after the restart", want, assign(t, first, service("new"), restarted, wanted...))
	after := assign(t, second, service("new"), restarted.Add(Quarantine), wanted...)
	check.Equal(t, "second port after the quarantine", released, after[wanted[1]])
	for port := int32(First); port < First+Block; port++ { // the slices that recorded them may be lost
		if state.isFree(port) {
			t.Fatalf("port %d of the block that was used counts as free", port)
		}
	}
	unknown := assign(t, New(ParseState("", ""), restarted), web, restarted.Add(Quarantine-1), owners(web, "berlin", 80)...)
	check.Equal(t, "ports although nothing is known", map[Owner]int32{}, unknown, cmpopts.EquateEmpty())
}

func TestStateAsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := State{Cursor: rapid.Int32Range(First, Last).Draw(t, "cursor")}
		for _, port := range slices.Sorted(slices.Values(rapid.SliceOfDistinct(rapid.Int32Range(First, First+50), rapid.ID[int32]).Draw(t, "free"))) {
			want.add(port)
		}
		check.Equal(t, "state", want, ParseState(fmt.Sprint(want.Cursor), want.FormatFree()))
	})
	edited := ParseState("x", "10000-10002,x,7,10010-,10020-10020,")
	check.Equal(t, "state edited by hand", State{Free: []Range{{10000, 10002}, {10020, 10020}}}, edited)
	var many State
	for port := int32(First); port <= Last; port += 2 {
		many.add(port)
	}
	check.Equal(t, "number of ranges", maxRanges, len(many.Free))
	check.Equal(t, "number of ranges that are read", maxRanges, len(ParseState("", many.FormatFree()+",29998-29999").Free))
}

// The cursor is stored before a block is used, and goes from the last port to the first.
// spec: G2
func TestBlocks(t *testing.T) {
	t.Parallel()
	for cursor, want := range map[int32]struct{ ports, stored []int32 }{
		First - 1:           {[]int32{First, First + 1}, []int32{First + Block}},
		First:               {[]int32{First, First + 1}, []int32{First + Block}},
		Last:                {[]int32{Last, First}, []int32{First + Block - 1}},
		Last + 1:            {[]int32{First, First + 1}, []int32{First + Block}},
		Last - Block + 1:    {[]int32{Last - Block + 1, Last - Block + 2}, []int32{First}},
		Last - Block/2 + 10: {[]int32{Last - Block/2 + 10, Last - Block/2 + 11}, []int32{First + Block/2 + 9}},
	} {
		var cursors []int32
		reserve := func(next State) error { cursors = append(cursors, next.Cursor); return nil }
		a, web := New(from(cursor), epoch), service("web")
		wanted := owners(web, "berlin", 80, 443)
		got, err := a.Assign(web, wanted, epoch, reserve)
		check.Must(t, err)
		check.Equal(t, fmt.Sprintf("from %d: ports", cursor), want.ports, []int32{got[wanted[0]], got[wanted[1]]})
		check.Equal(t, fmt.Sprintf("from %d: stored", cursor), want.stored, cursors)
	}
	var cursors []int32
	a, web := New(Unused(), epoch), service("web")
	reserve := func(next State) error { cursors = append(cursors, next.Cursor); return nil }
	_, err := a.Assign(web, owners(web, "berlin", upTo(Block+1)...), epoch, reserve)
	check.Must(t, err)
	check.Equal(t, "stored for one port more than a block", []int32{First + Block, First + 2*Block}, cursors)
}

// everyPort returns as many owners as there are ports, each cluster with less than its share.
func everyPort(key clusterset.ServiceKey) []Owner {
	var result []Owner
	for cluster := range number / 1000 {
		result = append(result, owners(key, clusterset.ClusterID(fmt.Sprint("cluster-", cluster)), upTo(1000)...)...)
	}
	return result
}

// upTo returns the numbers from 1 to n.
func upTo(n int32) []int32 {
	var result []int32
	for i := range n {
		result = append(result, i+1)
	}
	return result
}

// The only free port is found, although it is the last that is tried.
// spec: G2
func TestLastFreePort(t *testing.T) {
	t.Parallel()
	a, web, all := New(from(First+1), epoch), service("web"), service("all")
	for port := int32(First + 1); port <= Last; port++ {
		a.Adopt(Owner{Service: all, Cluster: "berlin", Port: port}, port)
	}
	paris := owners(web, "paris", 80)
	check.Equal(t, "ports", map[Owner]int32{paris[0]: First}, assign(t, a, web, epoch, paris...))
}

// One cluster, whether it uses ports or has released them, leaves a quarter of them to the others. These have their share of it, and no
// more.
// spec: G2
func TestShare(t *testing.T) {
	t.Parallel()
	for name, churn := range map[string]bool{"uses them": false, "releases them": true} {
		a, greedy, web := New(Unused(), epoch), service("greedy"), service("web")
		first := owners(web, "paris", 80)
		assign(t, a, web, epoch, first...)
		wanted := owners(greedy, "berlin", upTo(number)...)
		check.Equal(t, name+": number of ports of one cluster", number*3/4-1, len(assign(t, a, greedy, epoch, wanted...)))
		if churn {
			assign(t, a, greedy, epoch)
			check.Equal(t, name+": number of further ports", 0, len(assign(t, a, greedy, epoch, wanted...)))
		}
		others := slices.Concat(first, owners(web, "rome", upTo(2*share)...), owners(web, "oslo", 80))
		if got := assign(t, a, web, epoch, others...); len(got) != share+2 || got[first[0]] != First || got[others[len(others)-1]] == 0 {
			t.Errorf("%s: two other clusters get %d ports, want %d", name, len(got)-1, share+1)
		}
		left := number - reserve - 1 - map[bool]int{true: share + 1}[churn]
		after := assign(t, a, greedy, epoch.Add(Quarantine), wanted...)
		check.Equal(t, name+": number of ports of the first cluster after the quarantine", left, len(after))
	}
}

// A cluster with its share gets as many ports of the reserve as it has released, when their quarantine is over.
// spec: G2
func TestShareAfterQuarantine(t *testing.T) {
	t.Parallel()
	a, greedy, web := New(Unused(), epoch), service("greedy"), service("web")
	assign(t, a, greedy, epoch, owners(greedy, "paris", upTo(number-reserve)...)...)
	wanted := owners(web, "berlin", upTo(2*share)...)
	check.Equal(t, "ports of its share", share, len(assign(t, a, web, epoch, wanted...)))
	check.Equal(t, "ports that it keeps", share/2, len(assign(t, a, web, epoch, wanted[:share/2]...)))
	check.Equal(t, "ports in the quarantine", share/2, len(assign(t, a, web, epoch.Add(Quarantine-1), wanted...)))
	check.Equal(t, "ports after it", share, len(assign(t, a, web, epoch.Add(Quarantine), wanted...)))
}

// A port that is taken counts as one of its block.
// spec: G2
func TestBlockWithTakenPort(t *testing.T) {
	t.Parallel()
	a, stores := New(Unused(), epoch), 0
	a.Adopt(Owner{Service: service("taken"), Cluster: "berlin", Port: 80}, First+1)
	for i := range 2*Block - 1 {
		key := service(fmt.Sprint(i))
		_, err := a.Assign(key, owners(key, "berlin", 80), epoch, func(State) error {
			stores++
			return nil
		})
		check.Must(t, err)
		check.Equal(t, fmt.Sprintf("after %d ports: stored", i+1), 1+(i+1)/Block, stores)
	}
}

// If no port is free, nothing is stored, however often it is tried, and NextFree says when it is worth another attempt.
// spec: G2
func TestExhausted(t *testing.T) {
	t.Parallel()
	a, web, all := New(Unused(), epoch), service("web"), service("all")
	every := everyPort(all)
	assign(t, a, all, epoch, every...)
	late := epoch.Add(time.Hour)
	got, err := a.Assign(web, owners(web, "berlin", 80), late, func(State) error { return errors.New("stored") })
	if len(got) != 0 || err != nil {
		t.Errorf("ports %v, %v although none is free", got, err)
	}
	check.Equal(t, "the next port is free at", late.Add(Quarantine), a.NextFree(late))
	assign(t, a, all, late.Add(2*time.Minute), every[1:]...)
	assign(t, a, all, late.Add(3*time.Minute), every[2:]...)
	end := late.Add(2*time.Minute + Quarantine)
	check.Equal(t, "the next port is free at", end, a.NextFree(late.Add(5*time.Minute)))
	berlin := owners(web, "berlin", 80)
	check.Equal(t, "ports", map[Owner]int32{berlin[0]: First}, assign(t, a, web, end, berlin...))
}

func TestReserveFails(t *testing.T) {
	t.Parallel()
	a, web := New(Unused(), epoch), service("web")
	berlin, failure := owners(web, "berlin", 80), errors.New("no answer")
	if _, err := a.Assign(web, berlin, epoch, func(State) error { return failure }); !errors.Is(err, failure) {
		t.Fatalf("error %v, want %v", err, failure)
	}
	check.Equal(t, "ports, of which none was used before", map[Owner]int32{berlin[0]: First}, assign(t, a, web, epoch, berlin...))
}

// At no time do two owners have one port, owners keep theirs, and a port that was released less than ten minutes ago has no owner.
// spec: G2
func TestPortsAreUnique(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := New(from(rapid.Int32Range(0, Last+1).Draw(t, "cursor")), epoch)
		now, current, released := epoch, map[Owner]int32{}, map[int32]time.Time{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			key := service(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "service"))
			cluster := rapid.SampledFrom([]clusterset.ClusterID{"berlin", "paris"}).Draw(t, "cluster")
			wanted := owners(key, cluster, rapid.SliceOfNDistinct(rapid.Int32Range(1, 5), 0, 5, rapid.ID).Draw(t, "ports")...)
			got := assign(t, a, key, now, wanted...)
			check.Equal(t, "number of ports", len(wanted), len(got))
			for owner, port := range current {
				if owner.Service == key && got[owner] == 0 {
					released[port] = now
					delete(current, owner)
				}
			}
			for owner, port := range got {
				if had, ok := current[owner]; ok && had != port {
					t.Fatalf("%v had port %d and has %d", owner, had, port)
				}
				if at, was := released[port]; was && current[owner] != port && now.Sub(at) < 10*time.Minute {
					t.Fatalf("port %d is allocated %s after its release", port, now.Sub(at))
				}
				current[owner] = port
			}
			seen := map[int32]Owner{}
			for owner, port := range current {
				if other, twice := seen[port]; twice || port < First || port > Last {
					t.Fatalf("port %d of %v and %v", port, owner, other)
				}
				seen[port] = owner
			}
		}
	})
}
