// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// fill is a Store of member "own", with methods that act as the reflectors do.
type fill struct {
	*Store
	t            *testing.T
	events       []Event
	memberEvents []MemberEvent
}

func newFill(t *testing.T) *fill {
	t.Helper()
	f := &fill{Store: NewStore("own", clusterset.AddressRanges{}), t: t}
	f.Subscribe(func(e Event) { f.events = append(f.events, e) })
	f.SubscribeMembers(func(s MemberEvent) { f.memberEvents = append(f.memberEvents, s) })
	return f
}

func (f *fill) list(k kind, objects ...any) {
	f.t.Helper()
	check.Must(f.t, (table{f.Store, k}).Replace(objects, ""))
}

func (f *fill) watch(k kind, change func(table, any) error, object any) {
	f.t.Helper()
	check.Must(f.t, change(table{f.Store, k}, object))
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
	return &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: record.ServiceName(k)}}
}

func endpointsOf(id clusterset.ClusterID, k clusterset.ServiceKey, slice string) *hubv1alpha1.PublishedEndpoints {
	return &hubv1alpha1.PublishedEndpoints{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: record.EndpointsName(k, slice)}}
}

// services returns n service keys.
func services(n int) []clusterset.ServiceKey {
	var keys []clusterset.ServiceKey
	for i := range n {
		keys = append(keys, clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprintf("svc-%02d", i)})
	}
	return keys
}

// TestEvents: an event contains the member whose record has changed, whether it is a PublishedEndpoints, and whether it was deleted.
func TestEvents(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	key := services(1)[0]
	for i, change := range []func(table, any) error{table.Add, table.Update, table.Delete} {
		deleted := i == 2
		for _, id := range []clusterset.ClusterID{"a", "own"} {
			f.events = nil
			f.watch(kindService, change, recordOf(id, key))
			f.watch(kindEndpoints, change, endpointsOf(id, key, "0123456789"))
			want := []Event{{Key: key, Cluster: id, Deleted: deleted}, {Key: key, Cluster: id, Endpoints: true, Deleted: deleted}}
			check.Equal(t, fmt.Sprintf("records of %s", id), want, f.events)
		}
	}
}

// TestMemberEvents: the first heartbeat that is read may be old. A later version is a renewal, also in a list. The version that a restored
// hub has is not, but the next one is. A Member leaves only by a watched deletion.
func TestMemberEvents(t *testing.T) {
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
	f.watch(kindMember, table.Delete, memberOf("a"))
	want := []MemberEvent{{"a", MemberSeen}, {"a", MemberSeen}, {"a", HeartbeatRenewed}, {"a", HeartbeatRenewed}, {"a", HeartbeatRenewed}, {"a", MemberLeft}}
	check.Equal(t, "memberEvents", want, f.memberEvents)
}

// TestLocalHeartbeatLost: the deletion of the local heartbeat sends an event, so that it is created again. That of another member's
// heartbeat sends none: the member becomes silent.
func TestLocalHeartbeatLost(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	f.list(kindMember, memberOf("own"), memberOf("a"))
	lost := []*hubv1alpha1.Heartbeat{heartbeatOf("own", "1", hubv1alpha1.PublicationPartial), heartbeatOf("a", "1", hubv1alpha1.PublicationComplete)}
	f.list(kindHeartbeat, lost[0], lost[1])
	f.memberEvents = nil
	for _, heartbeat := range lost {
		f.watch(kindHeartbeat, table.Delete, heartbeat)
	}
	check.Equal(t, "memberEvents", []MemberEvent{{"own", MemberSeen}}, f.memberEvents)
}

// TestForeignNamespaces: objects outside of the members' namespaces are ignored.
func TestForeignNamespaces(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	stray := recordOf("a", services(1)[0])
	stray.Namespace = "default"
	f.events = nil
	f.watch(kindService, table.Add, stray)
	f.list(kindService, stray)
	check.Equal(t, "services", []clusterset.ServiceKey{}, f.Keys(), cmpopts.EquateEmpty())
}

// TestKeysByChange: services with the latest records come first, whichever member wrote them, and so do those with the latest
// endpoints: versions of two kinds are not compared.
func TestKeysByChange(t *testing.T) {
	t.Parallel()
	f, keys := newFill(t), services(4)
	record := func(id clusterset.ClusterID, k clusterset.ServiceKey, version string) any {
		o := recordOf(id, k)
		o.ResourceVersion = version
		return o
	}
	slice := endpointsOf("b", keys[2], "0123456789")
	slice.ResourceVersion = "1" // the latest of its kind
	f.list(kindService, record("a", keys[0], "9"), record("b", keys[0], "8"), record("a", keys[1], "10"), record("b", keys[2], "7"), record("a", keys[3], "999"))
	f.list(kindEndpoints, slice)
	got := f.Keys()
	slices.SortFunc(got[:2], func(a, b clusterset.ServiceKey) int { return strings.Compare(a.Name, b.Name) }) // the first of each kind
	check.Equal(t, "keys", []clusterset.ServiceKey{keys[2], keys[3], keys[1], keys[0]}, got)
}

// TestKeysIn: the services of a namespace are returned as long as there is a record of either kind.
func TestKeysIn(t *testing.T) {
	t.Parallel()
	f, key := newFill(t), services(1)[0]
	other := clusterset.ServiceKey{Namespace: "other", Name: "x"}
	want := func(step string, want ...clusterset.ServiceKey) {
		t.Helper()
		check.Equal(t, step, want, f.KeysIn(key.Namespace))
	}
	f.list(kindService, recordOf("a", key), recordOf("b", key), recordOf("a", other))
	f.list(kindEndpoints, endpointsOf("a", key, "0123456789"))
	want("listed", key)
	f.list(kindService)
	want("with endpoints alone", key)
	f.watch(kindService, table.Add, recordOf("a", key))
	f.watch(kindEndpoints, table.Delete, endpointsOf("a", key, "0123456789"))
	want("with the service alone", key)
	f.watch(kindService, table.Delete, recordOf("a", key))
	want("without records")
	if len(f.records[key.Namespace]) > 0 {
		t.Errorf("the store has %v", f.records)
	}
}

// TestRecordsTakeNoMoreThanTheyHold: records are stored without the spare capacity that decoding leaves in their lists.
func TestRecordsTakeNoMoreThanTheyHold(t *testing.T) {
	t.Parallel()
	f, key := newFill(t), services(1)[0]
	record := endpointsOf("a", key, "0123456789")
	addresses := append(make([]hubv1alpha1.IPAddress, 0, 150), "10.1.0.1", "10.1.0.2")
	hostnames := append(make([]hubv1alpha1.Hostname, 0, 150), "web-0", "web-1")
	record.Spec.Groups = append(make([]hubv1alpha1.EndpointGroup, 0, 150), hubv1alpha1.EndpointGroup{Addresses: addresses, Hostnames: hostnames})
	want := record.DeepCopy()
	f.list(kindEndpoints, record)
	got := f.records.of(key).endpointsOf("a")[0]
	check.Equal(t, "the record has changed", want, got)
	if groups := got.Spec.Groups; cap(groups) > 2 || cap(groups[0].Addresses) > 4 || cap(groups[0].Hostnames) > 4 {
		t.Errorf("there is room for %d groups, %d addresses and %d hostnames", cap(groups), cap(groups[0].Addresses), cap(groups[0].Hostnames))
	}
}

// TestHeartbeatInterval: a member's interval is bounded, even if the schema of the hub does not bound it.
func TestHeartbeatInterval(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int32]time.Duration{0: 0, 1: time.Second, 60: time.Minute, 301: 5 * time.Minute, math.MaxInt32: 5 * time.Minute, -1: 0} {
		f, heartbeat := newFill(t), heartbeatOf("a", "1", hubv1alpha1.PublicationComplete)
		heartbeat.Spec.IntervalSeconds = seconds
		f.list(kindHeartbeat, heartbeat)
		check.Equal(t, fmt.Sprintf("%d s are taken for", seconds), want, f.HeartbeatInterval("a"))
	}
	check.Equal(t, "without a heartbeat", time.Duration(0), newFill(t).HeartbeatInterval("a"))
}

// The properties of a member are known until it has left; a list that lacks its Member changes nothing.
//
// spec: A5
func TestProperties(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	region := func(id clusterset.ClusterID, name string) *hubv1alpha1.Member {
		member := memberOf(id)
		member.Spec.Properties = map[string]hubv1alpha1.PropertyValue{"region": hubv1alpha1.PropertyValue(name), "clusterset.k8s.io": "x"}
		return member
	}
	type properties = map[clusterset.ClusterID]map[string]string
	check.Equal(t, "before the list", properties{}, f.Properties())
	f.list(kindMember, memberOf("own"), region("b", "eu"))
	check.Equal(t, "listed", properties{"own": {}, "b": {"region": "eu"}}, f.Properties())
	f.watch(kindMember, table.Update, region("b", "us"))
	check.Equal(t, "changed", properties{"own": {}, "b": {"region": "us"}}, f.Properties())
	f.list(kindMember, memberOf("own"))
	check.Equal(t, "missing", properties{"own": {}, "b": {"region": "us"}}, f.Properties())
	f.watch(kindMember, table.Update, region("b", "us"))
	f.watch(kindMember, table.Delete, region("b", "us"))
	check.Equal(t, "left", properties{"own": {}}, f.Properties())
}
