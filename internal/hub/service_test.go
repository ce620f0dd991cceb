// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/record"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	testKey = clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	epoch   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// onTheHub returns the record with the creation time that the hub sets.
func onTheHub[T metav1.Object](record T) T {
	record.SetCreationTimestamp(metav1.NewTime(epoch))
	return record
}

func ownWeb() clusterset.Export {
	return clusterset.Export{
		Cluster: "own", Key: testKey, Age: epoch.Add(-time.Hour),
		Type: mcsv1beta1.ClusterSetIP, Ports: []clusterset.Port{{Name: "http", Protocol: "TCP", Port: 80}},
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Affinity: clusterset.Affinity{Mode: corev1.ServiceAffinityNone},
		Labels: map[string]string{"team": "blue"},
	}
}

// TestLocalExport: the local record is decoded as importers decode it, including the effective age.
//
// spec: C7, R7, R8
func TestLocalExport(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	own := record.EncodeService(ownWeb())
	own.CreationTimestamp = metav1.NewTime(epoch)
	see := func(step string, want *clusterset.Export) {
		t.Helper()
		check.Equal(t, step, want, f.Service(testKey).LocalExport, cmpopts.EquateEmpty())
	}
	see("without a record", nil)
	f.list(kindService, own)
	see("without a Member", nil)
	f.list(kindMember, memberOf("own"))
	want := ownWeb()
	want.Age = epoch.Add(-10 * time.Minute)
	see("with both", &want)
	refused := own.DeepCopy()
	refused.Spec.Labels = map[string]hubv1alpha1.LabelValue{"not a label!": ""}
	f.watch(kindService, table.Update, refused)
	see("with a record that others refuse", nil)
	other := memberOf("own")
	other.Spec.ClusterID = "another"
	f.watch(kindService, table.Update, own)
	f.watch(kindMember, table.Update, other)
	see("with a Member of another", nil)
}

// TestNotAllowed: the local Member may not allow an export, whatever records the hub already stores.
//
// spec: C7, R7
func TestNotAllowed(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	see := func(step, want string) {
		t.Helper()
		known := f.Service(testKey)
		check.Equal(t, step+": not allowed because", want, check.Message(known.NotAllowed))
		if want != "" && known.LocalExport != nil {
			t.Errorf("%s: others take %+v", step, known.LocalExport)
		}
	}
	see("without a Member", "")
	own := record.EncodeService(ownWeb())
	f.list(kindService, own)
	f.list(kindMember, memberOf("own"))
	see("any namespace", "")
	member := memberOf("own")
	member.Spec.Namespaces = []hubv1alpha1.NamespaceName{"bank", "shop"}
	f.watch(kindMember, table.Update, member.DeepCopy())
	see("this namespace among others", "")
	member.Spec.Namespaces = []hubv1alpha1.NamespaceName{"bank"}
	f.watch(kindMember, table.Update, member.DeepCopy())
	see("another namespace", "the Member of cluster own does not allow namespace shop: do not export from it, or let an administrator of the hub add it to the Member")
	member.Spec.ClusterID = "another"
	f.watch(kindMember, table.Update, member.DeepCopy())
	see("a Member of another", `member member-own: cluster ID "another" does not belong to its namespace`)
}

// TestContributionIsBounded: the slices of one member for one service are limited, and the reason names the member. The slices of
// other members are not affected.
func TestContributionIsBounded(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	f.list(kindMember, memberOf("own"), memberOf("a"), memberOf("b"))
	f.list(kindHeartbeat)
	var services, endpoints []any
	for id, slices := range map[clusterset.ClusterID]int{"a": 102, "b": 1} {
		services = append(services, onTheHub(record.EncodeService(clusterset.Export{
			Cluster: id, Key: testKey, Type: mcsv1beta1.Headless, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		})))
		for i := range slices {
			slice := clusterset.Slice{Cluster: id, ID: fmt.Sprintf("%010d", i), AddressType: discoveryv1.AddressTypeIPv4}
			for j := range 100 {
				slice.Endpoints = append(slice.Endpoints, clusterset.Endpoint{Addresses: []string{fmt.Sprintf("10.1.%d.%d", i, j)}})
			}
			endpoints = append(endpoints, onTheHub(record.EncodeEndpoints(testKey, slice)))
		}
	}
	f.list(kindService, services...)
	f.list(kindEndpoints, endpoints...)

	got := f.Service(testKey)
	count := map[clusterset.ClusterID]int{}
	for _, slice := range got.Slices {
		count[slice.Cluster]++
	}
	check.Equal(t, "slices of each member", map[clusterset.ClusterID]int{"a": 100, "b": 1}, count)
	if got.RefusedTotal != 1 || len(got.Refused) != 1 || !strings.HasPrefix(got.Refused[0].Error(), "refused of what cluster a contributes to service shop/web: 2 of 102 slices") {
		t.Errorf("refused: %v", got.Refused)
	}
}

// TestRefusalsAreCounted: the first refusals of a member are listed and the others counted. Slices that exceed the limits are not
// decoded. Refusals of other members are not affected, and each has a limited length.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	f.list(kindMember, memberOf("own"), memberOf("a"), memberOf("b"), memberOf("c"))
	var services, endpoints []any
	for id, of := range map[clusterset.ClusterID]struct{ records, groups int }{"a": {101, 100}, "b": {1, 3}, "c": {1, 1}} {
		service := record.EncodeService(clusterset.Export{
			Cluster: id, Key: testKey, Type: mcsv1beta1.Headless, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		})
		if id == "c" {
			service.Spec.Labels = map[string]hubv1alpha1.LabelValue{strings.Repeat("x", 100_000): ""}
		}
		services = append(services, onTheHub(service))
		for i := range of.records {
			published := record.EncodeEndpoints(testKey, clusterset.Slice{Cluster: id, ID: fmt.Sprintf("%010d", i), AddressType: discoveryv1.AddressTypeIPv4})
			for range of.groups {
				published.Spec.Groups = append(published.Spec.Groups, hubv1alpha1.EndpointGroup{Addresses: []hubv1alpha1.IPAddress{"192.0.2.1"}})
			}
			endpoints = append(endpoints, onTheHub(published))
		}
	}
	f.list(kindService, services...)
	f.list(kindEndpoints, endpoints...)

	got := f.Service(testKey)
	messages := map[clusterset.ClusterID][]string{}
	for _, err := range got.Refused {
		var refused RefusalError
		if !errors.As(err, &refused) {
			t.Fatalf("the error does not name the cluster: %v", err)
		}
		if len(err.Error()) > 1000 {
			t.Errorf("a refusal of %d bytes", len(err.Error()))
		}
		messages[refused.Cluster] = append(messages[refused.Cluster], err.Error())
	}
	refusal := func(id, record string) string {
		return "record member-" + id + "/shop.web." + record + " on the hub is refused: 192.0.2.1 is outside the cluster's pod and node CIDRs"
	}
	wantA := append([]string{
		"refused of what cluster a contributes to service shop/web: 1 of 101 slices: a cluster contributes at most 1000 slices and 10000 endpoints to a service, and these have 10100",
	}, slices.Repeat([]string{refusal("a", "0000000000")}, 9)...)
	wantA = append(wantA, "9991 more records and endpoints of cluster a are refused")
	check.Equal(t, "refused of a", wantA, messages["a"])
	check.Equal(t, "refused of b", slices.Repeat([]string{refusal("b", "0000000000")}, 3), messages["b"])
	if len(messages["c"]) != 1 || !strings.HasPrefix(messages["c"][0], `record member-c/shop.web on the hub is refused: label "xxx`) {
		t.Errorf("refused of c: %v", messages["c"])
	}
	check.Equal(t, "number of refusals", 10_001+3+1, got.RefusedTotal)
}
