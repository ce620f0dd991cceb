// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// alias returns an alias with ports such as "http/TCP".
func alias(ports ...string) *corev1.Service {
	result := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}, Spec: corev1.ServiceSpec{IPFamilies: v4v6, ClusterIP: "10.96.0.1"}}
	for _, port := range ports {
		name, protocol, _ := strings.Cut(port, "/")
		result.Spec.Ports = append(result.Spec.Ports, corev1.ServicePort{Name: name, Protocol: corev1.Protocol(protocol)})
	}
	return result
}

func imported(kind mcsv1beta1.ServiceImportType, ports ...string) *mcsv1beta1.ServiceImport {
	result := &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: mcsv1beta1.ServiceImportSpec{Type: kind}}
	for _, port := range ports {
		name, protocol, _ := strings.Cut(port, "/")
		result.Spec.Ports = append(result.Spec.Ports, mcsv1beta1.ServicePort{Name: name, Protocol: corev1.Protocol(protocol)})
	}
	return result
}

// spec: L1
func TestMatchAliasPorts(t *testing.T) {
	t.Parallel()
	type ports = []string
	for name, test := range map[string]struct {
		alias    ports
		kind     mcsv1beta1.ServiceImportType
		imported ports
		want     string
	}{
		"by name":                            {ports{"b/TCP", "a/TCP"}, mcsv1beta1.ClusterSetIP, ports{"a/TCP", "b/TCP"}, "map[a:a b:b] [b/TCP a/TCP] []"},
		"a part":                             {ports{"a/TCP"}, mcsv1beta1.ClusterSetIP, ports{"a/TCP", "b/TCP"}, "map[a:a] [a/TCP] []"},
		"one that the import has not":        {ports{"a/TCP", "c/TCP"}, mcsv1beta1.ClusterSetIP, ports{"a/TCP", "b/TCP"}, "map[a:a] [a/TCP] [c/TCP]"},
		"single ports":                       {ports{"main/TCP"}, mcsv1beta1.ClusterSetIP, ports{"http/TCP"}, "map[http:main] [main/TCP] []"},
		"single ports, unnamed and named":    {ports{"/TCP"}, mcsv1beta1.ClusterSetIP, ports{"http/TCP"}, "map[http:] [unnamed/TCP] []"},
		"single ports, named and unnamed":    {ports{"http/TCP"}, mcsv1beta1.ClusterSetIP, ports{"/TCP"}, "map[unnamed:http] [http/TCP] []"},
		"both unnamed":                       {ports{"/TCP"}, mcsv1beta1.ClusterSetIP, ports{"/TCP"}, "map[unnamed:] [unnamed/TCP] []"},
		"both unnamed, headless":             {ports{"/TCP"}, mcsv1beta1.Headless, ports{"/TCP"}, "map[:] [unnamed/TCP] []"},
		"unnamed among several":              {ports{"/TCP"}, mcsv1beta1.ClusterSetIP, ports{"unnamed/TCP", "/TCP"}, "map[unnamed-2:] [unnamed/TCP] []"},
		"several and a single one":           {ports{"a/TCP", "b/TCP"}, mcsv1beta1.ClusterSetIP, ports{"http/TCP"}, "map[] [] [a/TCP b/TCP]"},
		"another protocol":                   {ports{"dns/UDP"}, mcsv1beta1.ClusterSetIP, ports{"dns/TCP", "http/TCP"}, "map[] [] [dns/UDP]"},
		"single ports of different protocol": {ports{"dns/UDP"}, mcsv1beta1.ClusterSetIP, ports{"dns/TCP"}, "map[] [] [dns/UDP]"},
		"the default protocol":               {ports{"a/TCP"}, mcsv1beta1.ClusterSetIP, ports{"a", "b"}, "map[a:a] [a/TCP] []"},
		"none":                               {nil, mcsv1beta1.Headless, ports{"a/TCP"}, "map[] [] []"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := render.MatchAliasPorts(alias(test.alias...), imported(test.kind, test.imported...))
			check.Equal(t, "names", test.want, fmt.Sprint(got.Names, " ", got.Matched, " ", got.Unmatched))
		})
	}
}

// TestAliasSlices: an alias has the slices of its import in its families, at its ports. Addresses that its clients cannot use are left out.
//
// spec: L1
func TestAliasSlices(t *testing.T) {
	t.Parallel()
	m, _ := merge.Merge([]clusterset.Export{exported("berlin", 1, families(v4v6)), exported("paris", 2, families(v4v6))})
	site := render.Site{IPFamilies: v4v6, DerivedName: "derived-1"}
	gateway := source("paris", "2", "http", at("10.0.0.9"))
	gateway.Listen = map[int32]int32{80: 10000}
	none := gateway // no endpoint is available
	none.ID, none.Ports = "3", nil
	mirrored := render.Slices(m, site, []clusterset.Slice{
		source("berlin", "1", "http", at("10.1.0.1")), in6(source("berlin", "2", "http", at("fd01::1"))), source("paris", "1", "http", at("10.2.0.1")), gateway, none,
	})
	const berlin4, berlin6, paris, ofGateway = "all.derived-1-berlin-1", "all.derived-1-berlin-2", "all.derived-1-paris-1", "all.derived-1-paris-2"
	only := func(port string) map[string]string {
		return map[string]string{
			berlin4: "IPv4 " + port + " [10.1.0.1]", berlin6: "IPv6 " + port + " [fd01::1]", paris: "IPv4 " + port + " [10.2.0.1]", ofGateway: "IPv4 " + port + " [10.0.0.9]",
		}
	}
	without := func(all map[string]string, names ...string) map[string]string {
		for _, name := range names {
			delete(all, name)
		}
		return all
	}
	withoutIP := func(s *corev1.Service) *corev1.Service {
		s.Spec.ClusterIP = corev1.ClusterIPNone
		return s
	}
	ofFamily := func(s *corev1.Service, family corev1.IPFamily) *corev1.Service {
		s.Spec.IPFamilies = []corev1.IPFamily{family}
		return s
	}
	called := func(s *corev1.Service, name string) *corev1.Service {
		s.Name = name
		return s
	}
	for name, test := range map[string]struct {
		alias                  *corev1.Service
		kind                   mcsv1beta1.ServiceImportType
		want                   map[string]string
		own                    map[string]string
		byGateway, otherFamily []clusterset.ClusterID
	}{
		"all":                             {alias: alias("http/TCP"), kind: mcsv1beta1.ClusterSetIP, want: only("http")},
		"another name of the single port": {alias: alias("main/TCP"), kind: mcsv1beta1.ClusterSetIP, want: only("main")},
		"no port":                         {alias: alias("dns/UDP"), kind: mcsv1beta1.ClusterSetIP},
		"one family": {
			alias: ofFamily(alias("http/TCP"), corev1.IPv6Protocol), kind: mcsv1beta1.ClusterSetIP, want: without(only("http"), berlin4, paris, ofGateway),
			otherFamily: []clusterset.ClusterID{"paris"},
		},
		"headless": {
			alias: withoutIP(alias("http/TCP")), kind: mcsv1beta1.ClusterSetIP, want: without(only("http"), ofGateway), byGateway: []clusterset.ClusterID{"paris"},
		},
		"headless of a headless import": {alias: withoutIP(alias("http/TCP")), kind: mcsv1beta1.Headless, want: only("http")},
		"headless without ports": {alias: withoutIP(alias()), kind: mcsv1beta1.Headless, want: map[string]string{
			berlin4: "IPv4 [10.1.0.1]", berlin6: "IPv6 [fd01::1]", paris: "IPv4 [10.2.0.1]", ofGateway: "IPv4 [10.0.0.9]",
		}},
		"of a headless import": {
			alias: alias("http/TCP"), kind: mcsv1beta1.Headless, want: without(only("http"), ofGateway), byGateway: []clusterset.ClusterID{"paris"},
		},
		"the name of the import": {
			alias: called(alias("http/TCP"), "web"), kind: mcsv1beta1.ClusterSetIP,
			want: map[string]string{"web.derived-1-paris-1": "IPv4 http [10.2.0.1]", "web.derived-1-paris-2": "IPv4 http [10.0.0.9]"},
			own:  map[string]string{"web.derived-1-berlin-1": "IPv4 http [10.1.0.1]", "web.derived-1-berlin-2": "IPv6 http [fd01::1]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := render.AliasSlices(test.alias, imported(test.kind, "http/TCP"), "berlin", mirrored, nil)
			check.Equal(t, "slices", fmt.Sprint(test.want), fmt.Sprint(summary(got.Slices)))
			check.Equal(t, "clusters whose endpoints are reached through gateways", test.byGateway, got.ByGateway)
			check.Equal(t, "clusters whose endpoints have another family", test.otherFamily, got.OtherFamily)
			check.Equal(t, "own slices", fmt.Sprint(test.own), fmt.Sprint(summary(got.Own)))
		})
	}
	got := render.AliasSlices(withoutIP(alias()), imported(mcsv1beta1.Headless), "berlin", mirrored, nil)
	check.Equal(t, "number of slices of an import without ports", len(mirrored), len(got.Slices))
}

// TestAliasSlice: a slice of an alias is neither one of an import nor the configuration of a gateway.
//
// spec: L1, G2
func TestAliasSlice(t *testing.T) {
	t.Parallel()
	mirrored := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "derived-1-paris-1", Annotations: map[string]string{clusterset.AnnotationGatewayPorts: "80=10000"},
			Labels: map[string]string{
				"kubernetes.io/service-name": "derived-1", "endpointslice.kubernetes.io/managed-by": "tombolo-mcs.io", "tombolo-mcs.io/gateway": "true",
				"multicluster.kubernetes.io/service-name": "web", "multicluster.kubernetes.io/source-cluster": "paris",
			},
		},
		AddressType: "IPv4",
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(10000)), AppProtocol: new("h2c")}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.9"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	}
	got := render.AliasSlices(alias("main/TCP"), imported(mcsv1beta1.ClusterSetIP, "http/TCP"), "berlin", []*discoveryv1.EndpointSlice{mirrored}, nil)
	want := []*discoveryv1.EndpointSlice{{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "all.derived-1-paris-1",
			Labels: map[string]string{
				"kubernetes.io/service-name": "all", "endpointslice.kubernetes.io/managed-by": "tombolo-mcs.io", "tombolo-mcs.io/alias-of": "web",
				"multicluster.kubernetes.io/source-cluster": "paris",
			},
		},
		AddressType: "IPv4",
		Ports:       []discoveryv1.EndpointPort{{Name: new("main"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(10000)), AppProtocol: new("h2c")}},
		Endpoints:   mirrored.Endpoints,
	}}
	check.Equal(t, "slices", want, got.Slices)
	check.Equal(t, "port of the mirrored slice", "http", *mirrored.Ports[0].Name)
}
