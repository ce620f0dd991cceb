// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	complete = hubv1alpha1.PublicationComplete
	partial  = hubv1alpha1.PublicationPartial
)

// beatOf returns a heartbeat with the number of the member's PublishedServices and the versions of its records.
func beatOf(id clusterset.ClusterID, version string, count int32, services, endpoints string) *hubv1alpha1.Heartbeat {
	beat := heartbeatOf(id, version, complete)
	beat.Spec.Services, beat.Spec.ServicesVersion, beat.Spec.EndpointsVersion = count, services, endpoints
	return beat
}

// synced returns a store in which member a publishes these services and is confirmed.
func synced(t *testing.T, keys ...clusterset.ServiceKey) *fill {
	t.Helper()
	f := newFill(t)
	var records []any
	for _, k := range keys {
		records = append(records, publishedBy("a", k))
	}
	f.list(kindMember, memberOf("a"), memberOf("own"))
	f.list(kindHeartbeat, heartbeatOf("a", "1", complete))
	f.list(kindService, records...)
	f.list(kindEndpoints)
	f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "2", complete))
	return f
}

// publishedBy returns a member's record of a service that importers accept.
func publishedBy(id clusterset.ClusterID, key clusterset.ServiceKey) *hubv1alpha1.PublishedService {
	export := ownWeb()
	export.Cluster, export.Key = id, key
	return onTheHub(record.EncodeService(export))
}

// missingOf returns which records of member a are missing for a service that was imported with one slice: all, slice or nothing.
func (f *fill) missingOf(key clusterset.ServiceKey) string {
	f.t.Helper()
	m, ok := f.Import(key, sources.Imported{"a": {"0123456789"}}).Missing["a"]
	switch {
	case !ok:
		return "nothing"
	case m.Export && len(m.Slices) == 1:
		return "all"
	case !m.Export && len(m.Slices) == 1:
		return "slice"
	}
	f.t.Fatalf("unexpected: %+v", m)
	return ""
}

func (f *fill) want(step string, key clusterset.ServiceKey, want string) {
	f.t.Helper()
	if got := f.missingOf(key); got != want {
		f.t.Fatalf("%s: missing of a's %s is %s, want %s", step, key.Name, got, want)
	}
}

// TestMissing: a record that a list lacks is missing, not deleted, until the member's heartbeat was renewed after that list with a
// complete publication, and all records that it names were read.
//
// spec: E3
func TestMissing(t *testing.T) {
	t.Parallel()
	k := services(2)
	lists := func(f *fill) {
		f.list(kindService, publishedBy("a", k[1]))
		f.list(kindEndpoints)
		f.list(kindMember, memberOf("a"), memberOf("own"))
		f.list(kindHeartbeat, heartbeatOf("a", "5", complete))
		f.seen[kindService], f.seen[kindEndpoints] = "5", "5"
	}
	beat := func(beat *hubv1alpha1.Heartbeat) func(*fill) {
		return func(f *fill) { f.watch(kindHeartbeat, table.Update, beat) }
	}
	type steps []func(*fill)
	for name, test := range map[string]struct {
		steps steps
		want  string
	}{
		"nothing is listed":                     {steps{}, "all"},
		"all is listed":                         {steps{lists}, "all"},
		"the heartbeat is renewed":              {steps{lists, beat(heartbeatOf("a", "6", complete))}, "nothing"},
		"it was renewed before the last list":   {steps{lists, beat(heartbeatOf("a", "6", complete)), func(f *fill) { f.list(kindEndpoints) }}, "all"},
		"the watch repeats the listed one":      {steps{lists, beat(heartbeatOf("a", "5", complete))}, "all"},
		"it reports Partial":                    {steps{lists, beat(heartbeatOf("a", "6", partial))}, "all"},
		"it reports Complete, and then Partial": {steps{lists, beat(heartbeatOf("a", "6", complete)), beat(heartbeatOf("a", "7", partial))}, "nothing"},
		"another member's is renewed":           {steps{lists, beat(heartbeatOf("b", "6", complete))}, "all"},
		"it names a later service":              {steps{lists, beat(beatOf("a", "6", 1, "7", ""))}, "all"},
		"it names later endpoints":              {steps{lists, beat(beatOf("a", "6", 1, "", "7"))}, "all"},
		"and the watches come as far":           {steps{lists, beat(beatOf("a", "6", 1, "7", "7")), seen(kindService, "7"), seen(kindEndpoints, "8")}, "nothing"},
		"it names more services":                {steps{lists, beat(beatOf("a", "6", 2, "", ""))}, "all"},
		"and another one arrives":               {steps{lists, beat(beatOf("a", "6", 2, "", "")), func(f *fill) { f.watch(kindService, table.Add, publishedBy("a", services(3)[2])) }, seen(kindService, "7")}, "nothing"},
		"the heartbeat is deleted":              {steps{lists, beat(heartbeatOf("a", "6", complete)), func(f *fill) { f.watch(kindHeartbeat, table.Delete, heartbeatOf("a", "6", complete)) }}, "nothing"},
		"a heartbeat appears":                   {steps{lists, func(f *fill) { f.list(kindHeartbeat) }, beat(heartbeatOf("a", "1", complete))}, "nothing"},
		"our own Member is missing":             {steps{lists, func(f *fill) { f.list(kindMember, memberOf("a")) }, beat(heartbeatOf("a", "6", complete))}, "all"},
		"its Member is missing":                 {steps{lists, func(f *fill) { f.list(kindMember, memberOf("own")) }, beat(heartbeatOf("a", "6", complete))}, "all"},
		"its Member is seen to be deleted":      {steps{lists, func(f *fill) { f.watch(kindMember, table.Delete, memberOf("a")) }}, "nothing"},
		"and a list comes after that":           {steps{lists, func(f *fill) { f.watch(kindMember, table.Delete, memberOf("a")) }, func(f *fill) { f.list(kindMember, memberOf("own")) }}, "nothing"},
		"and it is a member again":              {steps{lists, func(f *fill) { f.watch(kindMember, table.Delete, memberOf("a")) }, func(f *fill) { f.watch(kindMember, table.Add, memberOf("a")) }}, "all"},
		"its Member is suspended, by the watch": {steps{lists, func(f *fill) { f.watch(kindMember, table.Update, suspended("a")) }}, "nothing"},
		"its Member is suspended, by a list":    {steps{lists, func(f *fill) { f.list(kindMember, memberOf("own"), suspended("a")) }}, "nothing"},
		"it was absent for too long":            {steps{lists, func(f *fill) { f.list(kindMember, memberOf("own")) }, func(f *fill) { f.MarkLeft("a") }}, "nothing"},
		"it is expelled and there":              {steps{lists, func(f *fill) { f.MarkLeft("a") }}, "all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFill(t)
			for _, step := range test.steps {
				step(f)
			}
			f.want("in the end", k[0], test.want)
		})
	}
}

func seen(k kind, version string) func(*fill) {
	return func(f *fill) { table{f.Store, k}.UpdateResourceVersion(version) } // as a bookmark does
}

func suspended(id clusterset.ClusterID) *hubv1alpha1.Member {
	m := memberOf(id)
	m.Spec.Suspended = true
	return m
}

// TestManyMissingRecords: the number of missing records makes no difference.
//
// spec: E3
func TestManyMissingRecords(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3, 19, 21, 2000} {
		keys := services(n)
		f := synced(t, keys...)
		f.list(kindService)
		for _, k := range keys {
			f.want("lost", k, "all")
		}
		check.Equal(t, fmt.Sprintf("%d records: services that wait", n), map[clusterset.ClusterID]int{"a": n}, f.Unconfirmed())
		f.events = nil
		f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "3", complete))
		check.Equal(t, fmt.Sprintf("%d records: services that are reconciled", n), n, len(f.events))
		f.want("confirmed", keys[0], "nothing")
	}
}

// TestKindsOneAfterTheOther: the kinds are listed one after the other. A slice is missing until both its service and the slice are
// listed.
//
// spec: E3
func TestKindsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	k := services(1)[0]
	f := newFill(t)
	f.list(kindMember, memberOf("a"), memberOf("own"))
	f.list(kindEndpoints, endpointsOf("a", k, "0123456789"))
	f.want("endpoints alone", k, "all")
	f.list(kindHeartbeat, heartbeatOf("a", "1", complete))
	f.list(kindService, publishedBy("a", k))
	f.want("both", k, "nothing")
	f.list(kindEndpoints)
	f.want("the slice is lost", k, "slice")
}

// TestWatchedDeletion: a record whose deletion was watched is not missing, even if the member's publication is never complete, and
// after later lists. It is missing again if it was created again and lost.
//
// spec: E3
func TestWatchedDeletion(t *testing.T) {
	t.Parallel()
	k := services(2)
	for name, unconfirmed := range map[string]func(*fill){
		"a complete member": func(*fill) {},
		"a partial member":  func(f *fill) { f.list(kindHeartbeat, heartbeatOf("a", "3", partial)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := synced(t, k...)
			f.list(kindEndpoints, endpointsOf("a", k[0], "0123456789"), endpointsOf("a", k[1], "0123456789"))
			unconfirmed(f)
			f.watch(kindService, table.Delete, publishedBy("a", k[0]))
			f.want("the export", k[0], "nothing")
			f.watch(kindEndpoints, table.Delete, endpointsOf("a", k[1], "0123456789"))
			f.want("a slice", k[1], "nothing")
			f.list(kindEndpoints)
			f.list(kindService, publishedBy("a", k[1]))
			f.want("the export, after lists", k[0], "nothing")
			f.want("the slice, after lists", k[1], "nothing")
			f.watch(kindService, table.Add, publishedBy("a", k[0]))
			f.list(kindService, publishedBy("a", k[1]))
			f.want("the export, back and lost", k[0], "all")
		})
	}
}

// TestWatchedDeletionBeforeAList: the kinds are watched and listed independently. A deletion that was watched while the member was
// confirmed holds after a list of another kind, until the record is read again.
//
// spec: E3
func TestWatchedDeletionBeforeAList(t *testing.T) {
	t.Parallel()
	k := services(2)
	f := synced(t, k...)
	f.watch(kindEndpoints, table.Add, endpointsOf("a", k[0], "0123456789"))
	f.watch(kindEndpoints, table.Add, endpointsOf("a", k[1], "0123456789"))
	f.watch(kindEndpoints, table.Delete, endpointsOf("a", k[0], "0123456789"))
	f.watch(kindService, table.Delete, publishedBy("a", k[0]))
	f.watch(kindEndpoints, table.Delete, endpointsOf("a", k[1], "0123456789"))
	f.list(kindMember, memberOf("a"), memberOf("own"))
	f.want("the export", k[0], "nothing")
	f.want("a slice", k[1], "nothing")
	f.watch(kindService, table.Add, publishedBy("a", k[0]))
	f.list(kindService, publishedBy("a", k[1]))
	f.want("the export, back and lost", k[0], "all")
}

// TestNotUsedIsNotMissing: an inactive or refused record is not missing, whether the member is confirmed or not.
//
// spec: E3, E6
func TestNotUsedIsNotMissing(t *testing.T) {
	t.Parallel()
	k := services(1)[0]
	f := newFill(t)
	f.list(kindMember, memberOf("a"), memberOf("own"))
	f.list(kindHeartbeat, heartbeatOf("a", "1", complete))
	f.list(kindEndpoints)
	f.list(kindService, publishedBy("a", k))
	f.want("accepted", k, "slice")
	inactive := publishedBy("a", k)
	inactive.Spec.Inactive = true
	f.watch(kindService, table.Update, inactive)
	f.want("inactive", k, "nothing")
	check.Equal(t, "exports of an inactive record", []clusterset.Export(nil), f.Service(k).Exports)
	f.watch(kindService, table.Update, publishedBy("a", k))
	changed := memberOf("a")
	changed.Spec.Namespaces = []hubv1alpha1.NamespaceName{"another"}
	f.watch(kindMember, table.Update, changed)
	f.want("refused", k, "nothing")
}

// TestUngrantedIsWithdrawn: an export that is no longer granted to this cluster is not imported, and not missing, whether the member is
// confirmed or not; conflicts are still computed with it.
//
// spec: A1, E3
func TestUngrantedIsWithdrawn(t *testing.T) {
	t.Parallel()
	k := services(1)[0]
	f := newFill(t)
	f.list(kindMember, memberOf("a"), memberOf("own"))
	f.list(kindHeartbeat, heartbeatOf("a", "1", complete))
	f.list(kindEndpoints, onTheHub(record.EncodeEndpoints(k, clusterset.Slice{Cluster: "a", ID: "0000000000", AddressType: discoveryv1.AddressTypeIPv4})))
	grantedTo := func(clusters ...hubv1alpha1.GrantedCluster) *hubv1alpha1.PublishedService {
		granted := publishedBy("a", k)
		granted.Spec.Inactive, granted.Spec.GrantedTo = true, &hubv1alpha1.GrantedTo{Clusters: clusters}
		return granted
	}
	see := func(step, missing string, imported, ungranted int) {
		t.Helper()
		f.want(step, k, missing)
		known := f.Service(k)
		if len(known.Exports) != imported || len(known.Slices) != imported || len(known.Exporters) != imported || len(known.Ungranted) != ungranted {
			t.Errorf("%s: exports %v, slices %v, exporters %v, not granted %v", step, known.Exports, known.Slices, known.Exporters, known.Ungranted)
		}
	}
	f.list(kindService, grantedTo("b", "own"))
	see("granted", "slice", 1, 0)
	f.watch(kindService, table.Update, grantedTo("b"))
	see("not granted", "nothing", 0, 1)
	f.watch(kindService, table.Update, grantedTo("own"))
	see("granted again", "slice", 1, 0)
	f.watch(kindService, table.Update, grantedTo())
	see("granted to none", "nothing", 0, 1)
	f.watch(kindService, table.Update, publishedBy("a", k))
	see("exported to all", "slice", 1, 0)
	f.list(kindService)
	f.list(kindEndpoints)
	see("missing", "all", 0, 0)
}

// TestSuspended: records of a suspended member are ignored, and exports of a suspended local cluster are refused.
func TestSuspended(t *testing.T) {
	t.Parallel()
	k := services(1)[0]
	f := synced(t, k)
	check.Equal(t, "number of exports at first", 1, len(f.Service(k).Exports))
	f.events = nil
	f.watch(kindMember, table.Update, suspended("a"))
	check.Equal(t, "number of exports that are used", 0, len(f.Service(k).Exports))
	check.Equal(t, "events", []Event{{Key: k, Backlog: true}}, f.events)
	f.watch(kindMember, table.Update, suspended("own"))
	check.Equal(t, "a suspended cluster may publish", false, f.Service(k).NotAllowed == nil)
}

// TestWaiting: a service is enqueued if the state changes of a member for which it waits, and only then.
func TestWaiting(t *testing.T) {
	t.Parallel()
	k := services(3)
	f := synced(t, k...)
	f.list(kindService, publishedBy("a", k[2]))
	f.want("lost", k[0], "all")
	f.want("lost", k[1], "all")
	f.Import(k[2], sources.Imported{"a": nil})
	f.RemoveWaiting(k[1])
	want := func(step string, change func(), want ...Event) {
		t.Helper()
		f.events = nil
		change()
		check.Equal(t, step, want, f.events)
	}
	want("another member", func() { f.watch(kindHeartbeat, table.Update, heartbeatOf("b", "9", complete)) })
	want("partial", func() { f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "9", partial)) })
	want("its state", func() { f.RefreshMember("a") }, Event{Key: k[0], Backlog: true}, Event{Key: k[2], Backlog: true})
	want("confirmed", func() { f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "10", complete)) }, Event{Key: k[0], Backlog: true})
	f.want("confirmed", k[0], "nothing")
	want("renewed", func() { f.watch(kindHeartbeat, table.Update, heartbeatOf("a", "11", complete)) })
}

// TestAbsent: clusters for which services wait and that have no Member are absent, unless they have left.
func TestAbsent(t *testing.T) {
	t.Parallel()
	k := services(1)[0]
	f := synced(t, k)
	want := func(step string, want ...clusterset.ClusterID) {
		t.Helper()
		f.Import(k, sources.Imported{"a": nil, "ghost": nil, "own": nil})
		check.Equal(t, step, want, f.Absent())
	}
	want("at first", "ghost")
	f.list(kindMember, memberOf("own"))
	want("a is missing", "a", "ghost")
	f.events = nil
	f.MarkLeft("ghost")
	check.Equal(t, "events", []Event{{Key: k, Backlog: true}}, f.events)
	want("the ghost is expelled", "a")
	f.list(kindMember, memberOf("a"))
	want("the hub does not know us")
}

// TestDeletionsAreBounded: the store does not grow without limit if a member publishes and deletes new records again and again, and
// keeps the last deletions.
func TestDeletionsAreBounded(t *testing.T) {
	t.Parallel()
	f := synced(t)
	var last clusterset.ServiceKey
	for i := range maxDeleted + 1 {
		last = clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprintf("x-%d", i)}
		f.watch(kindService, table.Add, recordOf("a", last))
		f.watch(kindService, table.Delete, recordOf("a", last))
	}
	check.Equal(t, "number of deletions that are stored", maxDeleted, f.deleted.Len())
	f.list(kindEndpoints)
	f.want("the last", last, "nothing")
	f.want("the first", clusterset.ServiceKey{Namespace: "shop", Name: "x-0"}, "all")
}
