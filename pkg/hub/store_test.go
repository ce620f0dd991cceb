// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/breaker"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// fill is a hub as a test writes it, for a Store that belongs to member "own".
type fill struct {
	*Store
	t      *testing.T
	events []Event
	signs  []Sign
}

func newFill(t *testing.T) *fill {
	t.Helper()
	f := &fill{Store: NewStore("own", clusterset.Fence{}), t: t}
	f.Subscribe(func(e Event) { f.events = append(f.events, e) })
	f.Listen(func(s Sign) { f.signs = append(f.signs, s) })
	return f
}

func (f *fill) list(k kind, objects ...any) {
	f.t.Helper()
	if err := (table{f.Store, k}).Replace(objects, ""); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fill) watch(k kind, change func(table, any) error, object any) {
	f.t.Helper()
	if err := change(table{f.Store, k}, object); err != nil {
		f.t.Fatal(err)
	}
	table{f.Store, k}.UpdateResourceVersion(object.(client.Object).GetResourceVersion()) // as a reflector does
}

func memberOf(id clusterset.ClusterID) *hubv1alpha1.Member {
	return &hubv1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName},
		Spec:       hubv1alpha1.MemberSpec{ClusterID: string(id), PodCIDRs: []hubv1alpha1.CIDR{"10.1.0.0/16"}},
	}
}

func heartbeatOf(id clusterset.ClusterID, version string, p hubv1alpha1.Publication) *hubv1alpha1.Heartbeat {
	return &hubv1alpha1.Heartbeat{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.HeartbeatName, ResourceVersion: version},
		Spec:       hubv1alpha1.HeartbeatSpec{Publication: p},
	}
}

func recordOf(id clusterset.ClusterID, k clusterset.ServiceKey) *hubv1alpha1.PublishedService {
	return &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: serviceRecordName(k)}}
}

func endpointsOf(id clusterset.ClusterID, k clusterset.ServiceKey, slice string) *hubv1alpha1.PublishedEndpoints {
	return &hubv1alpha1.PublishedEndpoints{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: serviceRecordName(k) + "." + slice}}
}

// services returns n service keys.
func services(n int) []clusterset.ServiceKey {
	var keys []clusterset.ServiceKey
	for i := range n {
		keys = append(keys, clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprintf("svc-%02d", i)})
	}
	return keys
}

// judge lets the store judge what was listed, for a cluster that has imported these services of member a.
func (f *fill) judge(now time.Time, imported []clusterset.ServiceKey) []Hold {
	f.t.Helper()
	return f.judgeAll(now, map[clusterset.ClusterID][]breaker.Record{"a": exportsOf(imported)})
}

// judgeAll is judge for a cluster that has these records of members.
func (f *fill) judgeAll(now time.Time, imported map[clusterset.ClusterID][]breaker.Record) []Hold {
	f.t.Helper()
	found, err := f.Judge(now, func() (map[clusterset.ClusterID][]breaker.Record, error) { return imported, nil })
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

// exportsOf returns the records that stand for exports of these services.
func exportsOf(keys []clusterset.ServiceKey) []breaker.Record {
	var records []breaker.Record
	for _, k := range keys {
		records = append(records, breaker.Record{Key: k})
	}
	return records
}

func (f *fill) want(step string, k clusterset.ServiceKey, want Knowledge) {
	f.t.Helper()
	if got := f.Service(k, "a").Knowledge["a"]; got != want {
		f.t.Fatalf("%s: what is known of a's %s is %s, want %s", step, k.Name, got, want)
	}
}

// TestEvents: an event says whose record has changed, and whether it is one of endpoints.
func TestEvents(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	key := services(1)[0]
	for _, change := range []func(table, any) error{table.Add, table.Update, table.Delete} {
		for _, id := range []clusterset.ClusterID{"a", "own"} {
			f.events = nil
			f.watch(kindService, change, recordOf(id, key))
			f.watch(kindEndpoints, change, endpointsOf(id, key, "0123456789"))
			who := id
			if id == "own" {
				who = ""
			}
			want := []Event{{Key: key, Cluster: who}, {Key: key, Cluster: who, Endpoints: true}}
			if diff := cmp.Diff(want, f.events); diff != "" {
				t.Errorf("records of %s (-want +got):\n%s", id, diff)
			}
		}
	}
}

// TestKnowledge: the absence of a record means nothing until all has been listed and judged, our own Member is there,
// and the source says that it has published everything.
//
// spec: E3
func TestKnowledge(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	k := services(1)[0]
	f.want("at first", k, Unknown)
	f.list(kindService)
	f.list(kindEndpoints)
	f.list(kindHeartbeat, heartbeatOf("a", "1", hubv1alpha1.PublicationComplete))
	f.judge(time.Time{}, nil)
	f.want("before Members are listed", k, Unknown)
	f.list(kindMember, memberOf("a"))
	f.judge(time.Time{}, nil)
	f.want("without a Member of our own", k, Unknown)
	f.list(kindMember, memberOf("a"), memberOf("own"))
	f.want("before the lists are judged", k, Unknown)
	f.judge(time.Time{}, nil)
	f.want("when all is there", k, Complete)
	f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "2", hubv1alpha1.PublicationPartial))
	f.want("while a publishes", k, Unknown)
	f.watch(kindHeartbeat, table.Delete, heartbeatOf("a", "2", hubv1alpha1.PublicationPartial))
	f.want("without a heartbeat", k, Unknown)
	f.watch(kindMember, table.Delete, memberOf("a"))
	f.want("when a has left", k, Gone)
	f.list(kindService)
	f.want("after another list", k, Unknown)
}

// synced returns a store that has seen a hub on which member a publishes these services.
func synced(t *testing.T, keys []clusterset.ServiceKey) *fill {
	t.Helper()
	f := newFill(t)
	var records []any
	for _, k := range keys {
		records = append(records, recordOf("a", k))
	}
	f.list(kindMember, memberOf("a"), memberOf("own"))
	f.list(kindHeartbeat, heartbeatOf("a", "1", hubv1alpha1.PublicationComplete))
	f.list(kindService, records...)
	f.list(kindEndpoints)
	if found := f.judge(time.Time{}, keys); found != nil {
		t.Fatalf("held at first: %+v", found)
	}
	return f
}

// TestHold: what a list lacks is held, if it is much, until it returns or is released.
func TestHold(t *testing.T) {
	t.Parallel()
	keys, now := services(30), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := synced(t, keys)
	f.list(kindService)
	found := f.judge(now, keys)
	if len(found) != 1 || found[0].Member != "a" || !found[0].Since.Equal(now) || found[0].Total() != 30 {
		t.Fatalf("held: %+v, want 30 records of a", found)
	}
	for _, k := range keys {
		f.want("held", k, Unknown)
	}
	if diff := cmp.Diff([]clusterset.ClusterID{"a"}, f.Service(keys[3]).Held); diff != "" {
		t.Errorf("members held for a service (-want +got):\n%s", diff)
	}
	f.list(kindService)
	if again := f.judge(now.Add(time.Hour), keys); again != nil || !f.Holds()[0].Since.Equal(now) {
		t.Errorf("after another list: new %+v, all %+v; want the old one", again, f.Holds())
	}

	f.watch(kindService, table.Add, recordOf("a", keys[0]))
	f.want("returned", keys[0], Complete)
	f.want("not returned", keys[1], Unknown)
	if total := f.Holds()[0].Total(); total != 29 {
		t.Errorf("%d records are held, want 29", total)
	}

	f.events = nil
	f.Release("a")
	f.want("released", keys[1], Complete)
	if len(f.events) != 29 || len(f.Holds()) != 0 {
		t.Errorf("the release told of %d services and left %+v", len(f.events), f.Holds())
	}
}

// TestEachMemberIsJudgedByItself: what is missing of a member is compared with what that member had, 20 records and half of them, not
// with what all have.
//
// spec: E3
func TestEachMemberIsJudgedByItself(t *testing.T) {
	t.Parallel()
	type loss struct{ had, lost int }
	for name, test := range map[string]struct {
		losses map[clusterset.ClusterID]loss
		held   []clusterset.ClusterID
	}{
		"half of each":                         {losses: map[clusterset.ClusterID]loss{"a": {30, 15}, "b": {30, 15}}},
		"all but one of each, which are few":   {losses: map[clusterset.ClusterID]loss{"a": {16, 15}, "b": {16, 15}}},
		"most of one, and nothing of another":  {losses: map[clusterset.ClusterID]loss{"a": {30, 25}, "b": {30, 0}}, held: []clusterset.ClusterID{"a"}},
		"most of one, and a little of another": {losses: map[clusterset.ClusterID]loss{"a": {30, 2}, "b": {30, 25}}, held: []clusterset.ClusterID{"b"}},
		"all of one small, beside a large one": {losses: map[clusterset.ClusterID]loss{"a": {21, 21}, "b": {100, 50}}, held: []clusterset.ClusterID{"a"}},
		"20 of 20, and half of 50":             {losses: map[clusterset.ClusterID]loss{"a": {20, 20}, "b": {50, 25}}},
		"21 of 21, and more than half of 50":   {losses: map[clusterset.ClusterID]loss{"a": {21, 21}, "b": {50, 26}}, held: []clusterset.ClusterID{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, keys := newFill(t), services(100)
			imported, left := map[clusterset.ClusterID][]breaker.Record{}, []any{}
			for id, l := range test.losses {
				imported[id] = exportsOf(keys[:l.had])
				for _, k := range keys[l.lost:l.had] {
					left = append(left, recordOf(id, k))
				}
			}
			f.list(kindMember, memberOf("a"), memberOf("b"), memberOf("own"))
			f.list(kindHeartbeat, heartbeatOf("a", "1", hubv1alpha1.PublicationComplete), heartbeatOf("b", "1", hubv1alpha1.PublicationComplete))
			f.list(kindService, left...)
			f.list(kindEndpoints)
			var held []clusterset.ClusterID
			for _, hold := range f.judgeAll(time.Time{}, imported) {
				held = append(held, hold.Member)
				if want := test.losses[hold.Member].lost; hold.Total() != want {
					t.Errorf("%d records of %s are held, want %d", hold.Total(), hold.Member, want)
				}
			}
			if diff := cmp.Diff(test.held, held); diff != "" {
				t.Errorf("members of which records are held (-want +got):\n%s", diff)
			}
			for id := range test.losses {
				want := map[bool]Knowledge{true: Unknown, false: Complete}[slices.Contains(test.held, id)]
				if got := f.Service(keys[0], id).Knowledge[id]; got != want {
					t.Errorf("what is known of the first service of %s is %s, want %s", id, got, want)
				}
			}
		})
	}
}

// TestLossShowsInTheFirstList: the hub's kinds are listed one after the other. Of a loss that shows in the exports alone, or in the
// slices alone, nothing is believed before the other list has come.
//
// spec: E3
func TestLossShowsInTheFirstList(t *testing.T) {
	t.Parallel()
	keys := services(15)
	for name, order := range map[string][]kind{"exports first": {kindService, kindEndpoints}, "slices first": {kindEndpoints, kindService}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, have := synced(t, keys), exportsOf(keys)
			var slices []any
			for _, k := range keys {
				slices = append(slices, endpointsOf("a", k, "0123456789"))
				have = append(have, breaker.Record{Key: k, Slice: "0123456789"})
			}
			f.list(kindEndpoints, slices...)
			imported := map[clusterset.ClusterID][]breaker.Record{"a": have}
			if found := f.judgeAll(time.Time{}, imported); found != nil {
				t.Fatalf("held at first: %+v", found)
			}
			for i, k := range order {
				f.list(k)
				f.judgeAll(time.Time{}, imported)
				if holds := f.Holds(); len(holds) != 1 || holds[0].Total() != (i+1)*len(keys) {
					t.Fatalf("after the list of %s, held are %+v", k, holds)
				}
				for _, k := range keys {
					f.want("lost", k, Unknown)
				}
			}
		})
	}
}

// TestReplacedSlicesAreBelieved: slices that have made room for others are no sign that their services are lost.
//
// spec: E3, D7
func TestReplacedSlicesAreBelieved(t *testing.T) {
	t.Parallel()
	keys := services(30)
	f, have := synced(t, keys), exportsOf(keys)
	var others []any
	for _, k := range keys {
		have = append(have, breaker.Record{Key: k, Slice: "0123456789"})
		others = append(others, endpointsOf("a", k, "9876543210"))
	}
	f.list(kindEndpoints, others...)
	if found := f.judgeAll(time.Time{}, map[clusterset.ClusterID][]breaker.Record{"a": have}); found != nil {
		t.Errorf("held: %+v", found)
	}
}

// TestSlicesGoWithTheirExport: the slices of exports that were seen to be deleted are no loss where a list lacks them.
//
// spec: E3
func TestSlicesGoWithTheirExport(t *testing.T) {
	t.Parallel()
	keys := services(30)
	f, have := synced(t, keys), exportsOf(keys)
	for _, k := range keys {
		have = append(have, breaker.Record{Key: k, Slice: "0123456789"})
		f.watch(kindEndpoints, table.Add, endpointsOf("a", k, "0123456789"))
	}
	for _, k := range keys {
		f.watch(kindService, table.Delete, recordOf("a", k))
	}
	f.list(kindEndpoints)
	if found := f.judgeAll(time.Time{}, map[clusterset.ClusterID][]breaker.Record{"a": have}); found != nil {
		t.Errorf("held: %+v", found)
	}
	f.want("after the list", keys[0], Complete)
	f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "2", hubv1alpha1.PublicationPartial))
	f.list(kindEndpoints)
	f.judgeAll(time.Time{}, map[clusterset.ClusterID][]breaker.Record{"a": have[len(keys):]})
	f.list(kindEndpoints)
	f.judgeAll(time.Time{}, map[clusterset.ClusterID][]breaker.Record{"a": have[len(keys):]})
	f.want("while its slices are not gone here", keys[0], Complete)
}

// TestWatchedDeletionsAreBelieved: what was seen to be deleted is gone, however much it is.
func TestWatchedDeletionsAreBelieved(t *testing.T) {
	t.Parallel()
	keys := services(30)
	f := synced(t, keys)
	for _, k := range keys {
		f.watch(kindService, table.Delete, recordOf("a", k))
		f.want("deleted", k, Complete)
	}
	f.list(kindService)
	if found := f.judge(time.Time{}, keys); found != nil {
		t.Errorf("held: %+v", found)
	}
}

// TestPartialMemberWithdraws: what a member was seen to delete is gone, though it never says that its publication is complete. What a list
// of the hub lacks of it may come yet.
//
// spec: E3
func TestPartialMemberWithdraws(t *testing.T) {
	t.Parallel()
	keys := services(3)
	deleted, missing, slice := keys[0], keys[1], breaker.Record{Key: keys[2], Slice: "0123456789"}
	have := map[clusterset.ClusterID][]breaker.Record{"a": append(exportsOf(keys), slice, breaker.Record{Key: keys[2], Slice: "another"})}
	f := synced(t, keys)
	want := func(step string, ofDeleted, ofMissing Knowledge, withdrawn bool) {
		t.Helper()
		f.want(step, deleted, ofDeleted)
		f.want(step, missing, ofMissing)
		if got := f.Withdrawn("a", slice.Key, slice.Slice); got != withdrawn {
			t.Fatalf("%s: whether the slice is withdrawn is %v, want %v", step, got, withdrawn)
		}
		if f.Withdrawn("a", slice.Key, "another") || f.Withdrawn("b", slice.Key, slice.Slice) {
			t.Fatalf("%s: another slice is taken for withdrawn", step)
		}
	}
	f.list(kindService, recordOf("a", deleted), recordOf("a", keys[2]))
	f.list(kindEndpoints, endpointsOf("a", slice.Key, slice.Slice))
	f.judgeAll(time.Time{}, have)
	f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "2", hubv1alpha1.PublicationPartial))
	f.watch(kindService, table.Delete, recordOf("a", deleted))
	f.watch(kindEndpoints, table.Delete, endpointsOf("a", slice.Key, slice.Slice))
	want("deleted", Complete, Unknown, true)
	f.list(kindEndpoints)
	f.list(kindService)
	want("before the lists are judged", Unknown, Unknown, false)
	f.judgeAll(time.Time{}, have)
	want("after lists", Complete, Unknown, true)
	f.list(kindMember, memberOf("a"))
	want("on a hub that does not know us", Unknown, Unknown, false)
	f.list(kindMember, memberOf("a"), memberOf("own"))
	f.judgeAll(time.Time{}, have)
	want("on one that does again", Complete, Unknown, true)

	f.watch(kindService, table.Add, recordOf("a", deleted))
	f.watch(kindEndpoints, table.Add, endpointsOf("a", slice.Key, slice.Slice))
	f.list(kindService)
	f.list(kindEndpoints)
	f.judgeAll(time.Time{}, have)
	want("back, and lost", Unknown, Unknown, false)

	f.watch(kindService, table.Delete, recordOf("a", deleted))
	f.watch(kindEndpoints, table.Delete, endpointsOf("a", slice.Key, slice.Slice))
	f.list(kindService)
	f.judgeAll(time.Time{}, map[clusterset.ClusterID][]breaker.Record{"a": exportsOf(keys[1:])})
	want("when they are gone here, too", Unknown, Unknown, false)
	if w := f.holds.withdrawn["a"]; w != nil {
		t.Errorf("deletions that have taken effect are remembered: %+v", w)
	}
}

// TestReleasedWhilePartial: the administrator's word ends a hold, whatever the member says of its publication.
//
// spec: E3
func TestReleasedWhilePartial(t *testing.T) {
	t.Parallel()
	keys := services(30)
	f := synced(t, keys)
	f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "2", hubv1alpha1.PublicationPartial))
	f.list(kindService)
	f.judge(time.Time{}, keys)
	f.want("held", keys[0], Unknown)
	f.Release("a")
	f.want("released", keys[0], Complete)
}

// TestRefusedIsNotMissing: a record that is there and not accepted is no export that may come yet, however far the member's publication
// has come. What its slices are, beside one that is accepted, is another matter.
//
// spec: E3
func TestRefusedIsNotMissing(t *testing.T) {
	t.Parallel()
	k := ownWeb().Key
	f := synced(t, nil)
	f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "2", hubv1alpha1.PublicationPartial))
	f.want("without a record", k, Unknown)
	export := ownWeb()
	export.Cluster = "a"
	f.watch(kindService, table.Add, onTheHub(t, EncodeService(export)))
	f.want("with one that is accepted", k, Unknown)
	fenced := memberOf("a")
	fenced.Spec.Namespaces = []hubv1alpha1.NamespaceName{"another"}
	f.watch(kindMember, table.Update, fenced)
	f.want("with one that its Member does not allow", k, Complete)
	f.watch(kindMember, table.Update, memberOf("a"))
	f.want("with one that it allows again", k, Unknown)
	f.list(kindService)
	f.judge(time.Time{}, nil)
	f.want("when a list lacks it", k, Unknown)
}

// TestBelievedOnce: what was held and is believed now is not held again by a list that comes before it is gone from this cluster.
//
// spec: E3
func TestBelievedOnce(t *testing.T) {
	t.Parallel()
	for name, believe := range map[string]func(*fill){
		"released": func(f *fill) { f.Release("a") },
		"left":     func(f *fill) { f.watch(kindMember, table.Delete, memberOf("a")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := services(30)
			f := synced(t, keys)
			f.list(kindService)
			f.judge(time.Time{}, keys)
			f.want("held", keys[0], Unknown)
			believe(f)
			f.list(kindService)
			if found := f.judge(time.Time{}, keys); found != nil || len(f.Holds()) > 0 {
				t.Errorf("held again: %+v", f.Holds())
			}
		})
	}
}

// TestDeletionsAreForgotten: a member that publishes and deletes ever new records does not fill this cluster's memory, nor does it
// make this cluster forget what another has withdrawn.
func TestDeletionsAreForgotten(t *testing.T) {
	t.Parallel()
	keys := services(30)
	f := synced(t, keys)
	for _, k := range keys {
		f.watch(kindService, table.Delete, recordOf("a", k))
	}
	for i := range 5 * remembered {
		f.watch(kindService, table.Delete, recordOf("b", clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprintf("x-%d", i)}))
	}
	if w := f.holds.withdrawn["b"]; len(w.recent)+len(w.older) > 2*remembered || !w.has(breaker.Record{Key: clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprintf("x-%d", 4*remembered)}}) {
		t.Errorf("%d deletions are remembered, want the last %d", len(w.recent)+len(w.older), remembered)
	}
	f.list(kindService)
	if found := f.judge(time.Time{}, keys); found != nil {
		t.Errorf("held: %+v", found)
	}
}

// TestAllReturns: a hold of which all records have returned is over.
func TestAllReturns(t *testing.T) {
	t.Parallel()
	keys := services(30)
	f := synced(t, keys)
	f.list(kindService)
	f.judge(time.Time{}, keys)
	for _, k := range keys {
		f.watch(kindService, table.Add, recordOf("a", k))
	}
	if holds := f.Holds(); len(holds) > 0 {
		t.Errorf("still held: %+v", holds)
	}
}

// TestReturnsOneByOne: of a service whose records are held, each is held until it returns itself. Neither another one nor
// the same one once more stands for it.
//
// spec: E3
func TestReturnsOneByOne(t *testing.T) {
	t.Parallel()
	k := services(1)[0]
	f := synced(t, []clusterset.ServiceKey{k})
	have := []breaker.Record{{Key: k}}
	for i := range 24 {
		have = append(have, breaker.Record{Key: k, Slice: fmt.Sprintf("%010d", i)})
	}
	f.list(kindService)
	f.judgeAll(time.Time{}, map[clusterset.ClusterID][]breaker.Record{"a": have})
	for range have {
		f.watch(kindService, table.Update, recordOf("a", k))
	}
	for _, r := range have[2:] {
		f.watch(kindEndpoints, table.Update, endpointsOf("a", k, r.Slice))
	}
	f.watch(kindEndpoints, table.Add, endpointsOf("a", k, "another"))
	f.want("without the last one", k, Unknown)
	f.watch(kindEndpoints, table.Add, endpointsOf("a", k, have[1].Slice))
	f.want("with all", k, Complete)
}

// TestPartReturned: when the hub is listed while a part of what it lost has returned, the rest is held on.
//
// spec: E3
func TestPartReturned(t *testing.T) {
	t.Parallel()
	keys := services(30)
	f := synced(t, keys)
	f.list(kindService)
	f.judge(time.Time{}, keys)
	var returned []any
	for _, k := range keys[5:] {
		returned = append(returned, recordOf("a", k))
	}
	f.list(kindService, returned...)
	f.judge(time.Time{}, keys)
	for i, k := range keys {
		f.want("after another list", k, map[bool]Knowledge{true: Unknown, false: Complete}[i < 5])
	}
}

// TestSigns: a heartbeat that was never seen may be old; one that has moved since is a sign of life, over a list too; one that was
// restored with the hub is none, and the next is.
func TestSigns(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	f.list(kindMember, memberOf("a"))
	f.list(kindHeartbeat, heartbeatOf("a", "1", hubv1alpha1.PublicationPartial))
	f.list(kindHeartbeat, heartbeatOf("a", "1", hubv1alpha1.PublicationPartial))
	f.list(kindHeartbeat, heartbeatOf("a", "2", hubv1alpha1.PublicationPartial))
	f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "10", hubv1alpha1.PublicationPartial))
	f.list(kindHeartbeat, heartbeatOf("a", "1", hubv1alpha1.PublicationPartial))
	f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "4", hubv1alpha1.PublicationPartial))
	f.list(kindMember)
	want := []Sign{{"a", Exists}, {"a", Exists}, {"a", Renewed}, {"a", Renewed}, {"a", Renewed}, {"a", Left}}
	if diff := cmp.Diff(want, f.signs); diff != "" {
		t.Errorf("signs (-want +got):\n%s", diff)
	}
}

// TestOwnHeartbeatLost: whoever writes this cluster's heartbeat is told that it is gone, whatever it said. Of another's there is nothing to
// do: its silence will tell.
func TestOwnHeartbeatLost(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	f.list(kindMember, memberOf("own"), memberOf("a"))
	lost := []*hubv1alpha1.Heartbeat{heartbeatOf("own", "1", hubv1alpha1.PublicationPartial), heartbeatOf("a", "1", hubv1alpha1.PublicationComplete)}
	f.list(kindHeartbeat, lost[0], lost[1])
	f.signs = nil
	for _, heartbeat := range lost {
		f.watch(kindHeartbeat, table.Delete, heartbeat)
	}
	if diff := cmp.Diff([]Sign{{"own", Exists}}, f.signs); diff != "" {
		t.Errorf("signs (-want +got):\n%s", diff)
	}
}

// TestForeignNamespaces: what lies in no member's namespace is not seen.
func TestForeignNamespaces(t *testing.T) {
	t.Parallel()
	f := synced(t, nil)
	stray := recordOf("a", services(1)[0])
	stray.Namespace = "default"
	f.events = nil
	f.watch(kindService, table.Add, stray)
	f.list(kindService, stray)
	if keys := f.Keys(); len(keys) > 0 {
		t.Errorf("services: %v", keys)
	}
}

// TestCompleteOvertakes: a heartbeat that says that all is published means nothing until the records of which it speaks have been
// seen, which are watched by themselves.
//
// spec: E3
func TestCompleteOvertakes(t *testing.T) {
	t.Parallel()
	f, keys := newFill(t), services(2)
	list := func(k kind, version string, objects ...any) {
		if err := (table{f.Store, k}).Replace(objects, version); err != nil {
			t.Fatal(err)
		}
	}
	list(kindMember, "10", memberOf("own"), memberOf("a"))
	list(kindHeartbeat, "11")
	list(kindService, "12")
	list(kindEndpoints, "13")
	f.judge(time.Time{}, nil)
	beat := heartbeatOf("a", "22", hubv1alpha1.PublicationComplete)
	beat.Spec.ServicesVersion, beat.Spec.EndpointsVersion = "20", "21"
	f.watch(kindHeartbeat, table.Add, beat)
	f.want("with the heartbeat alone", keys[0], Unknown)
	if p := f.Publication("a"); p != hubv1alpha1.PublicationPartial {
		t.Errorf("the publication is %s, of which nothing has been seen", p)
	}
	service := recordOf("a", keys[1])
	service.ResourceVersion = "20"
	f.watch(kindService, table.Add, service)
	f.want("without the slice", keys[0], Unknown)
	f.events = nil
	slice := endpointsOf("a", keys[1], "0123456789")
	slice.ResourceVersion = "100" // the one of the heartbeat has changed since
	f.watch(kindEndpoints, table.Add, slice)
	f.want("with both", keys[0], Complete)
	if !slices.Contains(f.events, Event{All: true, Backlog: true}) {
		t.Errorf("nobody is told: %+v", f.events)
	}
	f.events = nil
	f.watch(kindEndpoints, table.Update, slice)
	if slices.Contains(f.events, Event{All: true, Backlog: true}) {
		t.Error("it is told again")
	}
	list(kindService, "15", service) // a hub that was restored, whose heartbeat is not
	f.judge(time.Time{}, nil)
	f.want("with a list that is older", keys[0], Unknown)
	f.events = nil
	table{f.Store, kindService}.UpdateResourceVersion("22") // a bookmark
	f.want("when the watch has come as far", keys[0], Complete)
	if !slices.Contains(f.events, Event{All: true, Backlog: true}) {
		t.Errorf("nobody is told when a list that came after the heartbeat is caught up with: %+v", f.events)
	}
}

// TestKeysByChange: the services whose records were written last come first, whoever wrote them and whatever the record is of.
func TestKeysByChange(t *testing.T) {
	t.Parallel()
	f, keys := newFill(t), services(4)
	record := func(id clusterset.ClusterID, k clusterset.ServiceKey, version string) any {
		o := recordOf(id, k)
		o.ResourceVersion = version
		return o
	}
	slice := endpointsOf("b", keys[2], "0123456789")
	slice.ResourceVersion = "1000"
	f.list(kindService, record("a", keys[0], "9"), record("b", keys[0], "8"), record("a", keys[1], "10"), record("b", keys[2], "7"), record("a", keys[3], "999"))
	f.list(kindEndpoints, slice)
	if diff := cmp.Diff([]clusterset.ServiceKey{keys[2], keys[3], keys[1], keys[0]}, f.Keys()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRecordsTakeNoMoreThanTheyHold: a record of endpoints is held without the room that decoding leaves behind its addresses.
func TestRecordsTakeNoMoreThanTheyHold(t *testing.T) {
	t.Parallel()
	f, key := newFill(t), services(1)[0]
	record := endpointsOf("a", key, "0123456789")
	addresses := append(make([]hubv1alpha1.IPAddress, 0, 150), "10.1.0.1", "10.1.0.2")
	hostnames := append(make([]hubv1alpha1.Hostname, 0, 150), "web-0", "web-1")
	record.Spec.Groups = append(make([]hubv1alpha1.EndpointGroup, 0, 150), hubv1alpha1.EndpointGroup{Addresses: addresses, Hostnames: hostnames})
	want := record.DeepCopy()
	f.list(kindEndpoints, record)
	got := f.endpoints[key]["a"][record.Name]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record has changed (-want +got):\n%s", diff)
	}
	if groups := got.Spec.Groups; cap(groups) > 2 || cap(groups[0].Addresses) > 4 || cap(groups[0].Hostnames) > 4 {
		t.Errorf("there is room for %d groups, %d addresses and %d hostnames", cap(groups), cap(groups[0].Addresses), cap(groups[0].Hostnames))
	}
}

// TestHeartbeatInterval: what a member announces is bounded, whatever schema the hub has.
func TestHeartbeatInterval(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int32]time.Duration{0: 0, 1: time.Second, 60: time.Minute, 301: 5 * time.Minute, math.MaxInt32: 5 * time.Minute, -1: 0} {
		f, heartbeat := newFill(t), heartbeatOf("a", "1", hubv1alpha1.PublicationComplete)
		heartbeat.Spec.IntervalSeconds = seconds
		f.list(kindHeartbeat, heartbeat)
		if got := f.HeartbeatInterval("a"); got != want {
			t.Errorf("%d s are taken for %s, want %s", seconds, got, want)
		}
	}
	if got := newFill(t).HeartbeatInterval("a"); got != 0 {
		t.Errorf("without a heartbeat: %s", got)
	}
}
