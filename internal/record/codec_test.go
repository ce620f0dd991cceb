// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	testKey = clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	epoch   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// berlin is the policy of the member whose records are decoded here.
func berlin() Policy {
	return Policy{
		ID: "berlin",
		Ranges: clusterset.AddressRanges{
			Allowed: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd01::/48")},
			Denied:  []netip.Prefix{netip.MustParsePrefix("10.1.255.0/24")},
		},
		ClaimedAges: hubv1alpha1.ClaimedAgesTrusted,
	}
}

// onTheHub returns the record as it is read from the hub: through JSON, with the creation time that the hub has set.
func onTheHub[T metav1.Object](t check.T, record T) T {
	t.Helper()
	text, err := json.Marshal(record)
	check.Must(t, err)
	check.Must(t, json.Unmarshal(text, record))
	record.SetCreationTimestamp(metav1.NewTime(epoch))
	return record
}

func drawExport(t *rapid.T) clusterset.Export {
	label := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?`)
	keys := rapid.StringMatching(`(example\.com/)?[a-z]{1,3}`)
	export := clusterset.Export{
		Cluster:               "berlin",
		Key:                   clusterset.ServiceKey{Namespace: label.Draw(t, "namespace"), Name: label.Draw(t, "name")},
		Age:                   epoch.Add(time.Duration(rapid.IntRange(-1e6, 1e6).Draw(t, "age")) * time.Second),
		Type:                  rapid.SampledFrom([]mcsv1beta1.ServiceImportType{mcsv1beta1.ClusterSetIP, mcsv1beta1.Headless}).Draw(t, "type"),
		IPFamilies:            rapid.SampledFrom([][]corev1.IPFamily{{"IPv4"}, {"IPv6"}, {"IPv4", "IPv6"}, {"IPv6", "IPv4"}}).Draw(t, "families"),
		InternalTrafficPolicy: rapid.SampledFrom([]corev1.ServiceInternalTrafficPolicy{"", "Cluster", "Local", "PreferLocal"}).Draw(t, "policy"),
		TrafficDistribution:   rapid.SampledFrom([]string{"", "PreferClose", "example.com/PreferNew"}).Draw(t, "distribution"),
		Labels:                rapid.MapOfN(keys, rapid.StringMatching(`[A-Za-z0-9]?`), 0, 3).Draw(t, "labels"),
		Annotations:           rapid.MapOfN(keys, rapid.String(), 0, 3).Draw(t, "annotations"),
	}
	fewest := 0
	if export.Type == mcsv1beta1.ClusterSetIP {
		fewest = 1
		export.Affinity = rapid.SampledFrom([]clusterset.Affinity{{Mode: "None"}, {Mode: "ClientIP", TimeoutSeconds: 86400}}).Draw(t, "affinity")
	}
	for i, name := range rapid.SliceOfNDistinct(label, fewest, 4, rapid.ID).Draw(t, "ports") {
		export.Ports = append(export.Ports, clusterset.Port{
			Name:        name,
			Protocol:    rapid.SampledFrom([]corev1.Protocol{"TCP", "UDP", "SCTP"}).Draw(t, "protocol"),
			Port:        int32(i + 1),
			AppProtocol: rapid.SampledFrom([]string{"", "http", "kubernetes.io/h2c"}).Draw(t, "application protocol"),
		})
	}
	if len(export.Ports) > 0 && rapid.Bool().Draw(t, "availability") {
		export.Available = clusterset.Availability{}
		for _, port := range export.Ports {
			export.Available[port.ID()] = rapid.Int32Range(0, clusterset.MaxAvailable).Draw(t, "available")
		}
		if rapid.Bool().Draw(t, "terminating") {
			export.Terminating = map[clusterset.PortID]bool{export.Ports[0].ID(): true}
		}
	}
	if rapid.Bool().Draw(t, "granted") {
		export.GrantedTo = rapid.SliceOfNDistinct(rapid.SampledFrom([]clusterset.ClusterID{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, "granted to")
		slices.Sort(export.GrantedTo)
	}
	if export.Type == mcsv1beta1.Headless && rapid.Bool().Draw(t, "hostnames are published") {
		export.Hostnames, export.HostnamesLeftOut = drawHostnames(t, export.Ports), rapid.Int32Range(0, 10_000).Draw(t, "left out")
	}
	if rapid.Bool().Draw(t, "selection") {
		export.Selection = &clusterset.Selection{
			Labels:      rapid.MapOfN(keys, rapid.StringMatching(`[A-Za-z0-9]?`), 1, 3).Draw(t, "selector"),
			TargetPorts: map[clusterset.PortID]intstr.IntOrString{},
		}
		for _, port := range export.Ports {
			export.Selection.TargetPorts[port.ID()] = rapid.SampledFrom([]intstr.IntOrString{
				intstr.FromInt32(1), intstr.FromInt32(65535), intstr.FromString("http"), intstr.FromString("8080-x"),
			}).Draw(t, "target port")
		}
	}
	return export
}

func drawHostnames(t *rapid.T, ports []clusterset.Port) clusterset.Hostnames {
	result := clusterset.Hostnames{}
	for _, hostname := range rapid.SliceOfNDistinct(rapid.StringMatching(`(db-[0-9]{1,2})?`), 0, 5, rapid.ID).Draw(t, "hostnames") {
		targets := map[int32]int32{}
		for _, port := range ports {
			if port.Protocol == corev1.ProtocolTCP && rapid.Bool().Draw(t, "listens") {
				targets[port.Port] = rapid.Int32Range(8080, 8081).Draw(t, "target port")
			}
		}
		if len(targets) > 0 {
			result[hostname] = targets
		}
	}
	return result
}

// A member's export is the same in every other cluster.
// spec: R7
func TestServiceRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		export := drawExport(t)
		got, err := DecodeService(onTheHub(t, EncodeService(export)), berlin())
		if err != nil {
			t.Fatalf("%+v is refused: %v", export, err)
		}
		check.Equal(t, "export that was sent (want) and received", export, got, cmpopts.EquateEmpty())
		check.Equal(t, "granted to all", export.GrantedTo == nil, got.GrantedTo == nil)
	})
}

func drawSlice(t *rapid.T) clusterset.Slice {
	family := rapid.SampledFrom([]discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6}).Draw(t, "family")
	slice := clusterset.Slice{
		Cluster: "berlin", ID: clusterset.SliceID("web-1"), AddressType: family,
		Network: rapid.SampledFrom([]string{"", "cloud"}).Draw(t, "network"),
		Trigger: rapid.SampledFrom([]time.Time{{}, epoch.Add(1234 * time.Microsecond)}).Draw(t, "trigger"),
	}
	for i, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "a", "b"}), 0, 3, rapid.ID).Draw(t, "ports") {
		slice.Ports = append(slice.Ports, clusterset.EndpointPort{
			Name: name, Protocol: "TCP", Port: int32(i), AppProtocol: rapid.SampledFrom([]string{"", "http"}).Draw(t, "application protocol"),
		})
	}
	condition := rapid.SampledFrom([]clusterset.Condition{clusterset.Unset, clusterset.True, clusterset.False})
	slice.Endpoints = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) clusterset.Endpoint {
		endpoint := clusterset.Endpoint{
			Hostname: rapid.SampledFrom([]string{"", "web-0", "web-1"}).Draw(t, "hostname"),
			Zone:     rapid.SampledFrom([]string{"", "eu-1a", "eu-1b"}).Draw(t, "zone"),
			Ready:    condition.Draw(t, "ready"), Serving: condition.Draw(t, "serving"), Terminating: condition.Draw(t, "terminating"),
		}
		for range rapid.IntRange(1, 3).Draw(t, "addresses") {
			n := rapid.IntRange(0, 250).Draw(t, "address")
			if family == discoveryv1.AddressTypeIPv4 {
				endpoint.Addresses = append(endpoint.Addresses, fmt.Sprintf("10.1.0.%d", n))
			} else {
				endpoint.Addresses = append(endpoint.Addresses, fmt.Sprintf("fd01::%x", n+1))
			}
		}
		return endpoint
	}), 0, 12).Draw(t, "endpoints")
	return slice
}

// byContent sorts endpoints, because their order has no meaning.
func byContent(endpoints []clusterset.Endpoint) []clusterset.Endpoint {
	return slices.SortedFunc(slices.Values(endpoints), func(a, b clusterset.Endpoint) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// spec: D5, D6, R7
func TestEndpointsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		slice := drawSlice(t)
		p := berlin()
		p.Network = slice.Network
		got, refused := DecodeEndpoints(onTheHub(t, EncodeEndpoints(testKey, slice)), p)
		if len(refused) > 0 {
			t.Fatalf("%+v is refused: %v", slice, refused)
		}
		slice.Endpoints, got.Endpoints = byContent(slice.Endpoints), byContent(got.Endpoints)
		check.Equal(t, "slice that was sent (want) and received", slice, *got, cmpopts.EquateEmpty())
	})
}

// The record does not depend on the order of the endpoints, so that another order causes no write. Node names are not published.
// spec: D6, D7
func TestEncodeDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		slice := drawSlice(t)
		before := fmt.Sprint(slice.Endpoints)
		want := EncodeEndpoints(testKey, slice)
		check.Equal(t, "the input, before and after", before, fmt.Sprint(slice.Endpoints))
		slice.Endpoints = rapid.Permutation(slice.Endpoints).Draw(t, "permutation")
		for i := range slice.Endpoints {
			slice.Endpoints[i].NodeName = fmt.Sprintf("node-%d", i)
		}
		check.Equal(t, "record of one order (want) and of another", want, EncodeEndpoints(testKey, slice))
	})
}

// The format of a record is a contract between versions of the agent.
// spec: E7, R8
func TestEncodeService(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Namespace: "member-berlin", Name: "shop.web"}
	for name, tc := range map[string]struct {
		export clusterset.Export
		want   *hubv1alpha1.PublishedService
	}{
		"everything": {
			export: clusterset.Export{
				Cluster: "berlin", Key: testKey, Age: epoch, Type: mcsv1beta1.ClusterSetIP, IPFamilies: []corev1.IPFamily{"IPv6", "IPv4"},
				Ports:                 []clusterset.Port{{Name: "http", Protocol: "TCP", Port: 80, AppProtocol: "http"}, {Name: "dns", Protocol: "UDP", Port: 53}},
				Affinity:              clusterset.Affinity{Mode: "ClientIP", TimeoutSeconds: 60},
				InternalTrafficPolicy: "Local", TrafficDistribution: "PreferClose",
				Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "b"},
			},
			want: &hubv1alpha1.PublishedService{ObjectMeta: meta, Spec: hubv1alpha1.PublishedServiceSpec{
				Namespace: "shop", Service: "web", ExportedAt: metav1.NewTime(epoch), Type: "ClusterSetIP",
				IPFamilies:      []hubv1alpha1.IPFamily{"IPv6", "IPv4"},
				Ports:           []hubv1alpha1.PublishedPort{{Name: "http", Protocol: "TCP", Port: 80, AppProtocol: "http"}, {Name: "dns", Protocol: "UDP", Port: 53}},
				SessionAffinity: "ClientIP", SessionAffinityTimeoutSeconds: 60, InternalTrafficPolicy: "Local", TrafficDistribution: "PreferClose",
				Labels: map[string]hubv1alpha1.LabelValue{"team": "a"}, Annotations: map[string]hubv1alpha1.AnnotationValue{"note": "b"},
			}},
		},
		"granted to some": {
			export: clusterset.Export{Cluster: "berlin", Key: testKey, Age: epoch, Type: mcsv1beta1.Headless, GrantedTo: []clusterset.ClusterID{"paris", "rome"}},
			want: &hubv1alpha1.PublishedService{ObjectMeta: meta, Spec: hubv1alpha1.PublishedServiceSpec{
				Namespace: "shop", Service: "web", ExportedAt: metav1.NewTime(epoch), Type: "Headless",
				Inactive: true, GrantedTo: &hubv1alpha1.GrantedTo{Clusters: []hubv1alpha1.GrantedCluster{"paris", "rome"}},
			}},
		},
		"granted to none": {
			export: clusterset.Export{Cluster: "berlin", Key: testKey, Age: epoch, Type: mcsv1beta1.Headless, GrantedTo: []clusterset.ClusterID{}},
			want: &hubv1alpha1.PublishedService{ObjectMeta: meta, Spec: hubv1alpha1.PublishedServiceSpec{
				Namespace: "shop", Service: "web", ExportedAt: metav1.NewTime(epoch), Type: "Headless",
				Inactive: true, GrantedTo: &hubv1alpha1.GrantedTo{Clusters: []hubv1alpha1.GrantedCluster{}},
			}},
		},
		"as little as can be": {
			export: clusterset.Export{Cluster: "berlin", Key: testKey, Age: epoch, Type: mcsv1beta1.Headless, Labels: map[string]string{}, Ports: []clusterset.Port{}},
			want: &hubv1alpha1.PublishedService{ObjectMeta: meta, Spec: hubv1alpha1.PublishedServiceSpec{
				Namespace: "shop", Service: "web", ExportedAt: metav1.NewTime(epoch), Type: "Headless",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "record", tc.want, EncodeService(tc.export))
		})
	}
}

// spec: D6
func TestEncodeEndpoints(t *testing.T) {
	t.Parallel()
	slice := clusterset.Slice{
		Cluster: "berlin", ID: "0123456789", AddressType: discoveryv1.AddressTypeIPv4, Trigger: epoch,
		Ports: []clusterset.EndpointPort{{Name: "http", Protocol: "TCP", Port: 80}, {Name: "any", Protocol: "UDP"}},
		Endpoints: []clusterset.Endpoint{
			{Addresses: []string{"10.1.0.3"}, Zone: "b", Ready: clusterset.True},
			{Addresses: []string{"10.1.0.2"}, Zone: "a", Ready: clusterset.True, Hostname: "web-0", NodeName: "node-1"},
			{Addresses: []string{"10.1.0.1"}, Zone: "a", Ready: clusterset.True},
			{Addresses: []string{"10.1.0.4"}, Zone: "a", Ready: clusterset.False, Serving: clusterset.True, Terminating: clusterset.True},
			{Addresses: []string{"10.1.0.6", "10.1.0.5"}, Zone: "a", Ready: clusterset.True},
		},
	}
	want := &hubv1alpha1.PublishedEndpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-berlin", Name: "shop.web.0123456789"},
		Spec: hubv1alpha1.PublishedEndpointsSpec{
			Namespace: "shop", Service: "web", AddressType: "IPv4", TriggerTime: new(metav1.NewMicroTime(epoch)),
			Ports: []hubv1alpha1.PublishedEndpointPort{{Name: "http", Protocol: "TCP", Port: 80}, {Name: "any", Protocol: "UDP"}},
			Groups: []hubv1alpha1.EndpointGroup{
				{Zone: "a", Ready: new(true), Addresses: []hubv1alpha1.IPAddress{"10.1.0.1", "10.1.0.2"}, Hostnames: []hubv1alpha1.Hostname{"", "web-0"}},
				{Zone: "a", Ready: new(true), AddressesPerEndpoint: 2, Addresses: []hubv1alpha1.IPAddress{"10.1.0.6", "10.1.0.5"}},
				{Zone: "a", Ready: new(false), Serving: new(true), Terminating: new(true), Addresses: []hubv1alpha1.IPAddress{"10.1.0.4"}},
				{Zone: "b", Ready: new(true), Addresses: []hubv1alpha1.IPAddress{"10.1.0.3"}},
			},
		},
	}
	check.Equal(t, "record", want, EncodeEndpoints(testKey, slice))
}

// TestManyZones: if endpoints have more zones than a record can have groups, they are published without zones.
//
// spec: D5, D6
func TestManyZones(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ zones, perZone, groups int }{
		"an endpoint in each of as many as can be": {100, 1, 100},
		"an endpoint in each of one more":          {101, 1, 1},
		"1000 in each state of 25":                 {25, 40, 100},
		"1000 in each state of 26":                 {26, 40, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slice := clusterset.Slice{Cluster: "berlin", ID: "0123456789", AddressType: discoveryv1.AddressTypeIPv4}
			for i := range min(1000, tc.zones*tc.perZone) {
				e := clusterset.Endpoint{
					Addresses: []string{fmt.Sprintf("10.1.%d.%d", i/250, i%250)}, Zone: fmt.Sprintf("zone-%d", i%tc.zones), Ready: clusterset.True,
				}
				if state := i / tc.zones % 4; tc.perZone > 1 { // the states that Kubernetes' controller sets
					e.Ready = []clusterset.Condition{clusterset.True, clusterset.False, clusterset.False, clusterset.False}[state]
					e.Serving = []clusterset.Condition{clusterset.True, clusterset.True, clusterset.False, clusterset.False}[state]
					e.Terminating = []clusterset.Condition{clusterset.False, clusterset.True, clusterset.True, clusterset.False}[state]
				}
				slice.Endpoints = append(slice.Endpoints, e)
			}
			want := slices.Clone(slice.Endpoints)
			record := EncodeEndpoints(testKey, slice)
			check.Equal(t, "the input has changed", want, slice.Endpoints)
			check.Equal(t, "number of groups", tc.groups, len(record.Spec.Groups))
			if tc.zones > tc.groups {
				for i := range want {
					want[i].Zone = ""
				}
			}
			got, refused := DecodeEndpoints(record, berlin())
			if len(refused) > 0 {
				t.Fatal(refused)
			}
			byAddress := func(a, b clusterset.Endpoint) int { return slices.Compare(a.Addresses, b.Addresses) }
			slices.SortFunc(want, byAddress)
			slices.SortFunc(got.Endpoints, byAddress)
			check.Equal(t, "endpoints that were sent (want) and received", want, got.Endpoints)
		})
	}
}

// spec: R8
func TestEffectiveAge(t *testing.T) {
	t.Parallel()
	const bounded, trusted = hubv1alpha1.ClaimedAgesBounded, hubv1alpha1.ClaimedAgesTrusted
	for name, tc := range map[string]struct {
		claimed time.Duration // relative to the hub's creation time
		ages    hubv1alpha1.ClaimedAges
		want    time.Duration
	}{
		"later":                           {time.Minute, bounded, time.Minute},
		"a little older":                  {-9 * time.Minute, bounded, -9 * time.Minute},
		"just as old as can be":           {-10 * time.Minute, bounded, -10 * time.Minute},
		"older than can be":               {-10*time.Minute - time.Second, bounded, -10 * time.Minute},
		"a year older":                    {-365 * 24 * time.Hour, bounded, -10 * time.Minute},
		"a year older, nothing is said":   {-365 * 24 * time.Hour, "", -10 * time.Minute},
		"a year older, and trusted":       {-365 * 24 * time.Hour, trusted, -365 * 24 * time.Hour},
		"later, and trusted all the same": {time.Minute, trusted, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			elsewhere := time.FixedZone("", 3600)
			got := EffectiveAge(epoch.Add(tc.claimed).In(elsewhere), epoch.In(elsewhere), tc.ages)
			if want := epoch.Add(tc.want); !got.Equal(want) || got.Location() != time.UTC {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// spec: R8
func TestDecodedAgeIsBounded(t *testing.T) {
	t.Parallel()
	record := onTheHub(t, EncodeService(clusterset.Export{
		Cluster: "berlin", Key: testKey, Age: epoch.Add(-time.Hour), Type: mcsv1beta1.Headless, IPFamilies: []corev1.IPFamily{"IPv4"},
	}))
	for ages, want := range map[hubv1alpha1.ClaimedAges]time.Time{
		hubv1alpha1.ClaimedAgesBounded: epoch.Add(-10 * time.Minute), hubv1alpha1.ClaimedAgesTrusted: epoch.Add(-time.Hour),
	} {
		p := berlin()
		p.ClaimedAges = ages
		if got, err := DecodeService(record, p); err != nil || !got.Age.Equal(want) {
			t.Errorf("%s: age %v, want %v; error %v", ages, got.Age, want, err)
		}
	}
}

func TestNewPolicy(t *testing.T) {
	t.Parallel()
	member := func(namespace, id string, cidrs ...hubv1alpha1.CIDR) *hubv1alpha1.Member {
		return &hubv1alpha1.Member{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "member"},
			Spec: hubv1alpha1.MemberSpec{
				ClusterID: id, PodCIDRs: cidrs, NodeCIDRs: []hubv1alpha1.CIDR{"192.168.0.0/24"},
				Namespaces: []hubv1alpha1.NamespaceName{"shop"}, ClaimedAges: hubv1alpha1.ClaimedAgesTrusted,
			},
		}
	}
	denied := clusterset.AddressRanges{Denied: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}
	got, err := NewPolicy(member("member-berlin", "berlin", "10.1.0.0/16", "fd01::/48"), denied)
	want := Policy{
		ID: "berlin",
		Ranges: clusterset.AddressRanges{
			Allowed: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd01::/48"), netip.MustParsePrefix("192.168.0.0/24")},
			Denied:  denied.Denied,
		},
		Namespaces:  []hubv1alpha1.NamespaceName{"shop"},
		ClaimedAges: hubv1alpha1.ClaimedAgesTrusted,
	}
	check.Must(t, err)
	check.Equal(t, "policy", want, got, cmpopts.EquateComparable(netip.Prefix{}))
	for name, tc := range map[string]struct {
		member *hubv1alpha1.Member
		want   string
	}{
		"another's ID":          {member("member-berlin", "paris"), `member member-berlin: cluster ID "paris" does not belong to its namespace`},
		"no ID":                 {member("member-", ""), `member member-: cluster ID "" does not belong to its namespace`},
		"no member's namespace": {member("default", "berlin"), `member default: cluster ID "berlin" does not belong to its namespace`},
		"no range": {
			member("member-berlin", "berlin", "10.1.0.0"),
			`member member-berlin: "10.1.0.0" is no CIDR such as 10.0.0.0/16: netip.ParsePrefix("10.1.0.0"): no '/'`,
		},
	} {
		_, err := NewPolicy(tc.member, denied)
		check.Equal(t, name, tc.want, check.Message(err))
	}
}

// checkExport checks the invariants of an accepted export: it contains nothing that can harm the importing cluster.
func checkExport(t *testing.T, export clusterset.Export, record *hubv1alpha1.PublishedService, p Policy) {
	t.Helper()
	fail := func(what string, value any) { t.Errorf("an export with %s %v is accepted", what, value) }
	if export.Cluster != p.ID || record.Name != export.Key.Namespace+"."+export.Key.Name {
		fail("name", record.Name)
	}
	for _, name := range []string{export.Key.Namespace, export.Key.Name} {
		if len(validation.IsDNS1123Label(name)) > 0 {
			fail("key", export.Key)
		}
	}
	if clusterset.CheckReserved(export.Key) != nil {
		fail("namespace", export.Key.Namespace)
	}
	if !slices.Contains([]mcsv1beta1.ServiceImportType{mcsv1beta1.ClusterSetIP, mcsv1beta1.Headless}, export.Type) {
		fail("type", export.Type)
	}
	if n := len(export.IPFamilies); n < 1 || n > 2 || n == 2 && export.IPFamilies[0] == export.IPFamilies[1] {
		fail("families", export.IPFamilies)
	}
	if export.Age.Before(record.CreationTimestamp.Add(-10*time.Minute)) && p.ClaimedAges != hubv1alpha1.ClaimedAgesTrusted {
		fail("age", export.Age)
	}
	if export.Type == mcsv1beta1.ClusterSetIP && len(export.Ports) == 0 || len(export.Ports) > 100 {
		fail("ports", len(export.Ports))
	}
	ids, names := map[clusterset.PortID]bool{}, map[string]bool{}
	for _, port := range export.Ports {
		legal := port.Name == "" || len(validation.IsDNS1123Label(port.Name)) == 0
		if !legal || port.Port < 1 || port.Port > 65535 || ids[port.ID()] || names[port.Name] {
			fail("port", port)
		}
		ids[port.ID()], names[port.Name] = true, true
	}
	if export.Affinity.TimeoutSeconds < 0 || export.Affinity.TimeoutSeconds > 86400 || export.Type == mcsv1beta1.Headless && export.Affinity != (clusterset.Affinity{}) {
		fail("affinity", export.Affinity)
	}
	if len(export.Hostnames) > clusterset.MaxHostnames || len(export.Hostnames) > 0 && export.Type != mcsv1beta1.Headless {
		fail("hostnames", len(export.Hostnames))
	}
	for hostname, targets := range export.Hostnames {
		if len(targets) == 0 || hostname != "" && len(validation.IsDNS1123Label(hostname)) > 0 {
			fail("hostname", hostname)
		}
		for port, target := range targets {
			if !ids[clusterset.PortID{Protocol: corev1.ProtocolTCP, Port: port}] || target < 1 || target > 65535 {
				fail("target port", target)
			}
		}
	}
	size := 0
	for _, metadata := range []map[string]string{export.Labels, export.Annotations} {
		if len(metadata) > 64 {
			fail("metadata", len(metadata))
		}
		for key, value := range metadata {
			size += len(key) + len(value)
			if clusterset.IsReserved(key) || len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
				fail("key", key)
			}
		}
	}
	if size > 256*1024+64*(317+63) {
		fail("metadata bytes", size)
	}
}

// labRecords returns the records of one kind from the hub of a lab, as if berlin had published them.
func labRecords(t check.T, sort string) [][]byte {
	files, err := filepath.Glob(filepath.Join("testdata", "lab", sort+".*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no records of a lab: ", err)
	}
	asBerlins := strings.NewReplacer("member-cluster-a", "member-berlin", "member-cluster-b", "member-berlin",
		`"10.2.`, `"10.1.`, "fd00:1::", "fd01::", "fd00:2::", "fd01::")
	var texts [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		check.Must(t, err)
		texts = append(texts, []byte(asBerlins.Replace(string(text))))
	}
	return texts
}

// TestLabRecords: all records that agents of a lab have published are accepted.
func TestLabRecords(t *testing.T) {
	t.Parallel()
	for _, text := range labRecords(t, "service") {
		record := &hubv1alpha1.PublishedService{}
		check.Must(t, json.Unmarshal(text, record))
		_, err := DecodeService(record, berlin())
		check.Must(t, err)
	}
	for _, text := range labRecords(t, "endpoints") {
		record := &hubv1alpha1.PublishedEndpoints{}
		check.Must(t, json.Unmarshal(text, record))
		if slice, errs := DecodeEndpoints(record, berlin()); slice == nil || len(slice.Endpoints) == 0 || len(errs) > 0 {
			t.Errorf("%s: %+v, %v", record.Name, slice, errs)
		}
	}
}

// FuzzDecodeService: an accepted record is harmless, and does not change if it is encoded again.
func FuzzDecodeService(f *testing.F) {
	for _, export := range []clusterset.Export{
		{Cluster: "berlin", Key: testKey, Type: mcsv1beta1.Headless, IPFamilies: []corev1.IPFamily{"IPv4"}},
		{
			Cluster: "berlin", Key: testKey, Age: epoch.Add(-time.Hour), Type: mcsv1beta1.ClusterSetIP, IPFamilies: []corev1.IPFamily{"IPv6", "IPv4"},
			Ports:    []clusterset.Port{{Protocol: "TCP", Port: 80}, {Name: "dns", Protocol: "UDP", Port: 53, AppProtocol: "example.com/dns"}},
			Affinity: clusterset.Affinity{Mode: "ClientIP", TimeoutSeconds: 60}, InternalTrafficPolicy: "Local", TrafficDistribution: "PreferClose",
			Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"example.com/Note": "ü"},
		},
	} {
		text, err := json.Marshal(EncodeService(export))
		check.Must(f, err)
		f.Add(text)
	}
	for _, text := range labRecords(f, "service") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var record hubv1alpha1.PublishedService
		if json.Unmarshal(text, &record) != nil {
			return
		}
		record.CreationTimestamp = metav1.NewTime(epoch)
		p := berlin()
		p.ClaimedAges = hubv1alpha1.ClaimedAgesBounded
		export, err := DecodeService(&record, p)
		if err != nil {
			return
		}
		checkExport(t, export, &record, p)
		encoded := EncodeService(export)
		encoded.CreationTimestamp = record.CreationTimestamp
		again, err := DecodeService(encoded, p)
		if err != nil {
			t.Fatalf("%+v is refused when it is published again: %v", export, err)
		}
		check.Equal(t, "export", export, again)
	})
}

// checkSlice checks the invariants of an accepted slice.
func checkSlice(t *testing.T, slice *clusterset.Slice, record *hubv1alpha1.PublishedEndpoints, p Policy) {
	t.Helper()
	fail := func(what string, value any) { t.Errorf("a slice with %s %v is accepted", what, value) }
	key := clusterset.ServiceKey{Namespace: string(record.Spec.Namespace), Name: string(record.Spec.Service)}
	if slice.Cluster != p.ID || record.Name != key.Namespace+"."+key.Name+"."+slice.ID {
		fail("name", record.Name)
	}
	for _, name := range []string{key.Namespace, key.Name} {
		if len(validation.IsDNS1123Label(name)) > 0 {
			fail("name", record.Name)
		}
	}
	if !regexp.MustCompile(`^[0-9a-f]{10}$`).MatchString(slice.ID) {
		fail("ID", slice.ID)
	}
	if len(record.Spec.Groups) > 100 {
		fail("groups:", len(record.Spec.Groups))
	}
	if slice.AddressType != discoveryv1.AddressTypeIPv4 && slice.AddressType != discoveryv1.AddressTypeIPv6 {
		fail("address type", slice.AddressType)
	}
	names := map[string]bool{}
	for _, port := range slice.Ports {
		if port.Port < 0 || port.Port > 65535 || names[port.Name] || port.Name != "" && len(validation.IsDNS1123Label(port.Name)) > 0 {
			fail("port", port)
		}
		names[port.Name] = true
	}
	addresses := 0
	for _, endpoint := range slice.Endpoints {
		if n := len(endpoint.Addresses); n < 1 || n > 100 {
			fail("addresses of one endpoint:", n)
		}
		for _, address := range endpoint.Addresses {
			addresses++
			ip, err := netip.ParseAddr(address)
			inside := slices.ContainsFunc(p.Ranges.Allowed, func(prefix netip.Prefix) bool { return prefix.Contains(ip) })
			denied := slices.ContainsFunc(p.Ranges.Denied, func(prefix netip.Prefix) bool { return prefix.Contains(ip) })
			if err != nil || !inside || denied || ip.Is4() != (slice.AddressType == discoveryv1.AddressTypeIPv4) {
				fail("address", address)
			}
		}
		if endpoint.Hostname != "" && len(validation.IsDNS1123Label(endpoint.Hostname)) > 0 || endpoint.NodeName != "" ||
			len(validation.IsValidLabelValue(endpoint.Zone)) > 0 {
			fail("endpoint", endpoint)
		}
	}
	if addresses > 1000 {
		fail("addresses:", addresses)
	}
}

// FuzzDecodeEndpoints: accepted endpoints are in the address ranges and within the limits, and do not change if they are encoded
// again. There is an error for each endpoint that is left out.
func FuzzDecodeEndpoints(f *testing.F) {
	for _, endpoints := range [][]clusterset.Endpoint{
		nil,
		{
			{Addresses: []string{"10.1.0.1"}, Hostname: "web-0", Zone: "eu-1a", Ready: clusterset.True},
			{Addresses: []string{"10.1.0.2"}, Zone: "eu-1a", Ready: clusterset.True},
			{Addresses: []string{"10.1.0.3", "10.1.0.4"}, Ready: clusterset.False, Serving: clusterset.True},
			{Addresses: []string{"10.1.255.1"}},
		},
	} {
		text, err := json.Marshal(EncodeEndpoints(testKey, clusterset.Slice{
			Cluster: "berlin", ID: "0123456789", AddressType: discoveryv1.AddressTypeIPv4, Trigger: epoch,
			Ports: []clusterset.EndpointPort{{Name: "http", Protocol: "TCP", Port: 80}, {Protocol: "UDP"}}, Endpoints: endpoints,
		}))
		check.Must(f, err)
		f.Add(text)
	}
	for _, text := range labRecords(f, "endpoints") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var record hubv1alpha1.PublishedEndpoints
		if json.Unmarshal(text, &record) != nil {
			return
		}
		p := berlin()
		slice, refused := DecodeEndpoints(&record, p)
		if slice == nil {
			check.Equal(t, "number of reasons for no slice", 1, len(refused))
			return
		}
		checkSlice(t, slice, &record, p)
		sent := 0
		for _, group := range record.Spec.Groups {
			sent += len(group.Addresses)
		}
		received := 0
		for _, endpoint := range slice.Endpoints {
			received += len(endpoint.Addresses)
		}
		if sent != received && len(refused) == 0 {
			t.Errorf("%d of %d addresses are accepted, and nothing is said of the others", received, sent)
		}
		key := clusterset.ServiceKey{Namespace: string(record.Spec.Namespace), Name: string(record.Spec.Service)}
		again, refused := DecodeEndpoints(EncodeEndpoints(key, *slice), p)
		if again == nil || len(refused) > 0 {
			t.Fatalf("%+v is refused when it is published again: %v", slice, refused)
		}
		slice.Endpoints, again.Endpoints = byContent(slice.Endpoints), byContent(again.Endpoints)
		check.Equal(t, "slice", slice, again, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(time.Microsecond))
	})
}

// manyKeys returns metadata of n keys with this value.
func manyKeys[V ~string](n int, value V) map[string]V {
	return maps.Collect(func(yield func(string, V) bool) {
		for i := range n {
			if !yield(fmt.Sprintf("key-%03d", i), value) {
				return
			}
		}
	})
}
