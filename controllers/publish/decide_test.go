// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	web     = clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	created = metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	member  = &hubv1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: hubv1alpha1.MemberName},
		Spec:       hubv1alpha1.MemberSpec{ClusterID: "a", PodCIDRs: []hubv1alpha1.CIDR{"10.1.0.0/16"}},
	}
	offered = clusterset.Export{
		Cluster: "a", Key: web, Age: created.UTC(), Type: mcsv1beta1.ClusterSetIP, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		Ports: []clusterset.Port{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
	}
)

// exported returns the sources of web if cluster a exports it, and the hub has these records.
func exported(stored sources.Hub) sources.Sources {
	stored.LocalMember = member
	younger := offered // the hub has bounded the age: the record must still claim the age of the ServiceExport
	younger.Age = created.Add(time.Hour)
	return sources.Sources{
		Key: web, Hub: stored, Local: &younger,
		Export: &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name, CreationTimestamp: created}},
	}
}

// refused returns the sources of web if its ServiceExport exports nothing, for this reason.
func refused(reason mcsv1beta1.ServiceExportConditionReason, stored *hubv1alpha1.PublishedService) sources.Sources {
	result := exported(sources.Hub{Local: stored})
	result.Local, result.Rejection = nil, &export.Rejection{Reason: reason}
	return result
}

func slice(id string, addresses ...string) clusterset.Slice {
	result := clusterset.Slice{
		Cluster: "a", ID: id, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []clusterset.EndpointPort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 8080}},
	}
	for _, address := range addresses {
		result.Endpoints = append(result.Endpoints, clusterset.Endpoint{Addresses: []string{address}, Ready: clusterset.True})
	}
	return result
}

func pods(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("10.1.%d.%d", i/250, 1+i%250))
	}
	return all
}

var httpID = clusterset.PortID{Protocol: corev1.ProtocolTCP, Port: 80}

func with(s sources.Sources, change func(*sources.Sources)) sources.Sources {
	change(&s)
	return s
}

// forbidding is the Member that does not allow the namespace of web.
var forbidding = &hubv1alpha1.Member{
	ObjectMeta: member.ObjectMeta, Spec: hubv1alpha1.MemberSpec{ClusterID: "a", PodCIDRs: member.Spec.PodCIDRs, Namespaces: []hubv1alpha1.NamespaceName{"other"}},
}

func forbidden(s *sources.Sources) { s.Hub.LocalMember = forbidding }

func inCloud(s clusterset.Slice) clusterset.Slice {
	s.Network = "cloud"
	return s
}

func terminating(s clusterset.Slice) clusterset.Slice {
	for i := range s.Endpoints {
		s.Endpoints[i].Ready, s.Endpoints[i].Serving, s.Endpoints[i].Terminating = clusterset.False, clusterset.True, clusterset.True
	}
	return s
}

// TestDecide: which records the hub should have of a service, and what is reported as left out.
//
// spec: E3, E6, R8, W2, W3, A1
func TestDecide(t *testing.T) {
	t.Parallel()
	stored := record.EncodeService(offered)
	stored.ResourceVersion = "7"
	inactive := stored.DeepCopy()
	inactive.Spec.Inactive = true
	want := record.EncodeService(offered)
	toSome := offered
	toSome.GrantedTo = []clusterset.ClusterID{"b"}
	granted := record.EncodeService(toSome)
	ungranted := granted.DeepCopy()
	ungranted.Spec.GrantedTo = nil
	endpoints := func(slices ...clusterset.Slice) (all []*hubv1alpha1.PublishedEndpoints) {
		for _, s := range slices {
			all = append(all, record.EncodeEndpoints(web, s))
		}
		return all
	}
	large := []clusterset.Slice{slice("1", pods(9_000)...), slice("2", pods(1_001)...)}
	for name, test := range map[string]struct {
		known   sources.Sources
		slices  []clusterset.Slice
		want    records
		outcome Outcome
	}{
		"exported": {
			known: exported(sources.Hub{}), slices: []clusterset.Slice{slice("1", "10.1.0.1")},
			want: records{want, endpoints(slice("1", "10.1.0.1"))},
		},
		"without endpoints": {known: exported(sources.Hub{Local: stored}), want: records{want, nil}},
		"an address outside of the ranges": {
			known: exported(sources.Hub{}), slices: []clusterset.Slice{slice("1", "10.1.0.1", "192.0.2.1")},
			want:    records{want, endpoints(slice("1", "10.1.0.1"))},
			outcome: Outcome{LeftOut: []string{"192.0.2.1 is outside the cluster's pod and node CIDRs"}},
		},
		"too many endpoints": {
			known: exported(sources.Hub{}), slices: large,
			want: records{want, endpoints(large[0])},
			outcome: Outcome{
				Surplus: "1 of 2 slices: a cluster contributes at most 1000 slices and 10000 endpoints to a service, and these have 10001",
			},
		},
		"with a gateway": {
			known: with(exported(sources.Hub{}), func(s *sources.Sources) { s.Gateways = &sources.Gateways{} }), slices: []clusterset.Slice{slice("1", "10.1.0.1")},
			want: records{record.WithAvailability(want, clusterset.Availability{httpID: 1}, nil), endpoints(slice("1", "10.1.0.1"))},
		},
		"with a gateway, and terminating endpoints only": {
			known: with(exported(sources.Hub{}), func(s *sources.Sources) { s.Gateways = &sources.Gateways{} }), slices: []clusterset.Slice{terminating(slice("1", "10.1.0.1"))},
			want: records{
				record.WithAvailability(want, clusterset.Availability{httpID: 1}, map[clusterset.PortID]bool{httpID: true}),
				endpoints(terminating(slice("1", "10.1.0.1"))),
			},
		},
		"without addresses": {
			known: with(exported(sources.Hub{}), func(s *sources.Sources) {
				s.Hub.LocalMember = &hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{Publish: hubv1alpha1.PublishAvailability}}
			}),
			slices: []clusterset.Slice{slice("1", "10.1.0.1", "192.0.2.1", "192.0.2.2")},
			want:   records{record.WithAvailability(want, clusterset.Availability{httpID: 2}, nil), nil},
		},
		"in a network of its own": {
			known: with(exported(sources.Hub{}), func(s *sources.Sources) { s.Hub.LocalNetwork = "cloud" }), slices: []clusterset.Slice{slice("1", "10.1.0.1")},
			want: records{want, endpoints(inCloud(slice("1", "10.1.0.1")))},
		},
		"granted to some": {
			known: with(exported(sources.Hub{}), func(s *sources.Sources) { s.Local.GrantedTo = []clusterset.ClusterID{"b"} }), slices: []clusterset.Slice{slice("1", "10.1.0.1")},
			want: records{granted, endpoints(slice("1", "10.1.0.1"))},
		},
		"granted to some, and the Service does not exist any more": {
			known: refused(mcsv1beta1.ServiceExportReasonNoService, granted), want: records{ungranted, nil},
		},
		"no ServiceExport":           {known: sources.Sources{Key: web, Hub: sources.Hub{Local: stored, LocalMember: member}}},
		"the Service does not exist": {known: refused(mcsv1beta1.ServiceExportReasonNoService, stored), want: records{inactive, nil}},
		"it never existed":           {known: refused(mcsv1beta1.ServiceExportReasonNoService, nil)},
		"its namespace is reserved":  {known: refused(export.ReasonNamespaceReserved, stored)},
		"its namespace is forbidden": {known: with(exported(sources.Hub{}), forbidden), slices: []clusterset.Slice{slice("1", "10.1.0.1")}},
		"its namespace is forbidden, and the hub stores it": {
			known:  with(exported(sources.Hub{Local: stored, LocalEndpoints: endpoints(slice("1", "10.1.0.1"))}), forbidden),
			slices: []clusterset.Slice{slice("1", "10.1.0.2")},
			want:   records{stored, endpoints(slice("1", "10.1.0.1"))},
		},
		"its namespace is forbidden, and it is withdrawn": {
			known: sources.Sources{Key: web, Hub: sources.Hub{Local: stored, LocalMember: forbidding}},
		},
		"the Member is suspended": {
			known: with(exported(sources.Hub{}), func(s *sources.Sources) {
				s.Hub.LocalMember = member.DeepCopy()
				s.Hub.LocalMember.Spec.Suspended = true
			}),
			want: records{want, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, outcome := (&Reconciler{}).decide(test.known, test.slices)
			check.Equal(t, "records", test.want, got, cmp.AllowUnexported(records{}))
			check.Equal(t, "outcome", test.outcome, outcome)
		})
	}
}

// TestFreesQuota: only a service whose records become fewer frees quota for others.
//
// spec: E3
func TestFreesQuota(t *testing.T) {
	t.Parallel()
	service, one := record.EncodeService(offered), record.EncodeEndpoints(web, slice("1", "10.1.0.1"))
	for name, test := range map[string]struct {
		desired  records
		existing sources.Hub
		want     bool
	}{
		"new":              {records{service, nil}, sources.Hub{}, false},
		"unchanged":        {records{service, []*hubv1alpha1.PublishedEndpoints{one}}, sources.Hub{Local: service, LocalEndpoints: []*hubv1alpha1.PublishedEndpoints{one}}, false},
		"fewer slices":     {records{service, nil}, sources.Hub{Local: service, LocalEndpoints: []*hubv1alpha1.PublishedEndpoints{one}}, true},
		"withdrawn":        {records{}, sources.Hub{Local: service}, true},
		"nothing was left": {records{}, sources.Hub{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "freesQuota", test.want, test.desired.freesQuota(test.existing))
		})
	}
}

// TestHighest: a heartbeat names the highest versions among the records that exist and those that were just written.
//
// spec: E3
func TestHighest(t *testing.T) {
	t.Parallel()
	service := func(version string) *hubv1alpha1.PublishedService {
		return &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	endpoints := func(version string) *hubv1alpha1.PublishedEndpoints {
		return &hubv1alpha1.PublishedEndpoints{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	existing := sources.Hub{Local: service("9"), LocalEndpoints: []*hubv1alpha1.PublishedEndpoints{endpoints("8"), endpoints("10")}}
	for name, test := range map[string]struct {
		existing sources.Hub
		services []*hubv1alpha1.PublishedService
		slices   []*hubv1alpha1.PublishedEndpoints
		want     hub.Versions
	}{
		"nothing":  {},
		"existing": {existing: existing, want: hub.Versions{Services: "9", Endpoints: "10"}},
		"written":  {existing: existing, services: []*hubv1alpha1.PublishedService{service("12")}, slices: []*hubv1alpha1.PublishedEndpoints{endpoints("11")}, want: hub.Versions{Services: "12", Endpoints: "11"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "highest", test.want, highest(test.existing, test.services, test.slices))
		})
	}
}

// TestUnstored: a hub of an earlier version removes grantedTo from what it stores.
//
// spec: A1
func TestUnstored(t *testing.T) {
	t.Parallel()
	toSome := offered
	toSome.GrantedTo = []clusterset.ClusterID{"b"}
	all, granted := record.EncodeService(offered), record.EncodeService(toSome)
	pruned := granted.DeepCopy()
	pruned.Spec.GrantedTo = nil
	for name, test := range map[string]struct {
		desired *hubv1alpha1.PublishedService
		written []*hubv1alpha1.PublishedService
		want    bool
	}{
		"withdrawn":      {},
		"for all":        {all, []*hubv1alpha1.PublishedService{all}, false},
		"stored":         {granted, []*hubv1alpha1.PublishedService{granted}, false},
		"stored before":  {granted, nil, false},
		"an earlier hub": {granted, []*hubv1alpha1.PublishedService{pruned}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "unstored", test.want, unstored(test.desired, test.written) != "")
		})
	}
}
