// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func gatewayOf(t *testing.T, id clusterset.ClusterID, host string) *hubv1alpha1.PublishedGateway {
	t.Helper()
	authority, err := identity.NewAuthority(id, time.Now())
	check.Must(t, err)
	return &hubv1alpha1.PublishedGateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.GatewayName},
		Spec: hubv1alpha1.PublishedGatewaySpec{
			Addresses: []hubv1alpha1.GatewayAddress{{Host: host, Port: 443}}, Bundle: identity.EncodeBundle([]identity.Authority{authority}), Versions: []int32{1},
		},
	}
}

func gatewayMember(id clusterset.ClusterID, change ...func(*hubv1alpha1.MemberSpec)) *hubv1alpha1.Member {
	member := memberOf(id)
	member.Spec.GatewayCIDRs = []hubv1alpha1.CIDR{"198.51.100.0/24", "10.1.0.0/16"}
	for _, c := range change {
		c(&member.Spec)
	}
	return member
}

// Records are usable, refused, revoked or missing. A list never revokes one, and each change of a Member or a record decides again.
//
// spec: G4, G5
func TestGateways(t *testing.T) {
	t.Parallel()
	const good, pod, foreign = "198.51.100.1", "10.1.0.1", "203.0.113.1"
	suspended := gatewayMember("a", func(s *hubv1alpha1.MemberSpec) { s.Suspended = true })
	moved := gatewayMember("a", func(s *hubv1alpha1.MemberSpec) { s.GatewayCIDRs = []hubv1alpha1.CIDR{"203.0.113.0/24"} })
	record := gatewayOf(t, "a", good)
	for name, test := range map[string]struct {
		after func(*fill)
		want  string // usable, refused: and why, revoked, or empty
	}{
		"usable":                     {func(*fill) {}, "usable"},
		"suspended":                  {func(f *fill) { f.watch(kindMember, table.Update, suspended) }, "revoked"},
		"suspended in a list":        {func(f *fill) { f.list(kindMember, memberOf("own"), suspended) }, "revoked"},
		"suspended no more":          {func(f *fill) { f.list(kindMember, suspended); f.list(kindMember, gatewayMember("a")) }, "usable"},
		"the Member is deleted":      {func(f *fill) { f.watch(kindMember, table.Delete, gatewayMember("a")) }, "revoked"},
		"the Member is missing":      {func(f *fill) { f.list(kindMember, memberOf("own")) }, ""},
		"the record is deleted":      {func(f *fill) { f.watch(kindGateway, table.Delete, record) }, "revoked"},
		"the record is missing":      {func(f *fill) { f.list(kindGateway) }, "usable"},
		"deleted and missing":        {func(f *fill) { f.watch(kindGateway, table.Delete, record); f.list(kindGateway) }, "revoked"},
		"deleted and published":      {func(f *fill) { f.watch(kindGateway, table.Delete, record); f.list(kindGateway, record) }, "usable"},
		"the Member does not allow":  {func(f *fill) { f.watch(kindMember, table.Update, moved) }, "refused: 198.51.100.1 is not in the gatewayCIDRs of the Member"},
		"another address":            {func(f *fill) { f.watch(kindGateway, table.Update, gatewayOf(t, "a", foreign)) }, "refused: 203.0.113.1 is not in the gatewayCIDRs of the Member"},
		"an address of our own pods": {func(f *fill) { f.watch(kindGateway, table.Update, gatewayOf(t, "a", pod)) }, "refused: the address of a gateway: 10.1.0.1 is in a range of the importing cluster's own"},
		"an address of our own pods, and our Member is missing": {func(f *fill) {
			f.list(kindMember, gatewayMember("a"))
			f.watch(kindGateway, table.Update, gatewayOf(t, "a", pod))
		}, "refused: the address of a gateway: 10.1.0.1 is in a range of the importing cluster's own"},
		"allowed after all": {func(f *fill) {
			f.watch(kindGateway, table.Update, gatewayOf(t, "a", foreign))
			f.watch(kindMember, table.Update, moved)
		}, "usable"},
	} {
		f := newFill(t)
		f.list(kindMember, gatewayMember("a"), memberOf("own"))
		f.list(kindGateway, record)
		test.after(f)
		got := f.Gateways()
		var states []string
		if got.Usable["a"] != nil {
			states = append(states, "usable")
		}
		if got.Revoked.Has("a") {
			states = append(states, "revoked")
		}
		if err := got.Refused["a"].Reason; err != nil {
			states = append(states, "refused: "+err.Error())
		}
		check.Equal(t, name, test.want, strings.Join(states, " "))
	}
}

// The record of this cluster is written again if a list lacks it.
func TestOwnGateway(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	if got := f.Gateways(); got.Listed || got.Own != nil {
		t.Errorf("before the list: %+v", got)
	}
	own := gatewayOf(t, "own", "198.51.100.1")
	f.list(kindMember, gatewayMember("own"))
	f.list(kindGateway, own)
	if got := f.Gateways(); !got.Listed || got.Own != own || len(got.Usable)+len(got.Refused)+len(got.Revoked) > 0 {
		t.Errorf("after the list: %+v", got)
	}
	f.memberEvents = nil
	f.list(kindGateway)
	check.Equal(t, "own record, which the hub has lost", (*hubv1alpha1.PublishedGateway)(nil), f.Gateways().Own)
	check.Equal(t, "memberEvents", []MemberEvent{{"own", GatewayChanged}}, f.memberEvents)
}

// Clusters that gateways know and that have no Member count as absent, until they are marked as left.
//
// spec: G5
func TestAbsentGateways(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	f.KeepGateways([]clusterset.ClusterID{"a", "b"})
	check.Equal(t, "absent before the lists", []clusterset.ClusterID(nil), f.Absent())
	for _, k := range kinds {
		f.list(k)
	}
	f.list(kindMember, memberOf("own"), memberOf("a"))
	check.Equal(t, "absent", []clusterset.ClusterID{"b"}, f.Absent())
	f.MarkLeft("b")
	check.Equal(t, "absent after it was marked as left", []clusterset.ClusterID(nil), f.Absent())
	check.Equal(t, "revoked", sets.New[clusterset.ClusterID]("b"), f.Gateways().Revoked)
}
