// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/e2e/framework/golden"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	key   = clusterset.ServiceKey{Namespace: "shop", Name: "web-service"}
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	v4    = []corev1.IPFamily{corev1.IPv4Protocol}
	v6    = []corev1.IPFamily{corev1.IPv6Protocol}
	v4v6  = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	v6v4  = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
)

// exported returns the export of a cluster that was created in this minute, after the changes.
func exported(id clusterset.ClusterID, minute int, changes ...func(*clusterset.Export)) clusterset.Export {
	export := clusterset.Export{
		Cluster:               id,
		Key:                   key,
		Age:                   start.Add(time.Duration(minute) * time.Minute),
		Type:                  mcsv1beta1.ClusterSetIP,
		Ports:                 []clusterset.Port{tcp("http", 80)},
		IPFamilies:            v4,
		Affinity:              clusterset.Affinity{Mode: corev1.ServiceAffinityNone},
		InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicyCluster,
	}
	for _, change := range changes {
		change(&export)
	}
	return export
}

func headless(e *clusterset.Export) {
	e.Type, e.Affinity = mcsv1beta1.Headless, clusterset.Affinity{}
}

func ports(ports ...clusterset.Port) func(*clusterset.Export) {
	return func(e *clusterset.Export) { e.Ports = ports }
}

func families(families []corev1.IPFamily) func(*clusterset.Export) {
	return func(e *clusterset.Export) { e.IPFamilies = families }
}

func distribution(value string) func(*clusterset.Export) {
	return func(e *clusterset.Export) { e.TrafficDistribution = value }
}

func tcp(name string, port int32) clusterset.Port {
	return clusterset.Port{Name: name, Protocol: corev1.ProtocolTCP, Port: port}
}

func merged(t testing.TB, exports ...clusterset.Export) merge.Merged {
	t.Helper()
	m, ok := merge.Merge(exports)
	if !ok {
		t.Fatal("nothing is merged")
	}
	return m
}

// source returns a slice of a cluster with one TCP port.
func source(id clusterset.ClusterID, sliceID, port string, endpoints ...clusterset.Endpoint) clusterset.Slice {
	return clusterset.Slice{
		Cluster: id, ID: sliceID, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []clusterset.EndpointPort{{Name: port, Protocol: corev1.ProtocolTCP, Port: 8080}},
		Endpoints: endpoints,
	}
}

func in6(s clusterset.Slice) clusterset.Slice {
	s.AddressType = discoveryv1.AddressTypeIPv6
	return s
}

func at(address string) clusterset.Endpoint {
	return clusterset.Endpoint{Addresses: []string{address}, Ready: clusterset.True}
}

func zoned(address, zone string) clusterset.Endpoint {
	e := at(address)
	e.Zone = zone
	return e
}

// TestGolden compares all objects of imports. go test ./internal/render -update writes the files.
// spec: D1, D2, D3, D4, D5, D6, I3, I4, I5, I6, I8, R1, R2, E7
func TestGolden(t *testing.T) {
	t.Parallel()
	site := render.Site{IPFamilies: v4v6, MetadataDomains: []string{"example.com"}, DerivedName: render.DerivedName(key.Name, "", nil, nil)}
	metadata := func(e *clusterset.Export) {
		e.Labels, e.Annotations = map[string]string{"team": "shop"}, map[string]string{"example.com/note": "ours"}
	}
	sticky := func(e *clusterset.Export) {
		e.Affinity = clusterset.Affinity{Mode: corev1.ServiceAffinityClientIP, TimeoutSeconds: 60}
	}
	web := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, AppProtocol: "kubernetes.io/h2c"}
	for name, tc := range map[string]struct {
		exports []clusterset.Export
		sources []clusterset.Slice
		ips     []string
	}{
		"clustersetip": {
			exports: []clusterset.Export{
				exported("berlin", 1, families(v6v4), ports(web), metadata, sticky),
				exported("paris", 2, families(v6v4), ports(web), metadata, sticky),
			},
			sources: []clusterset.Slice{
				{
					Cluster: "berlin", ID: "0000000001", AddressType: discoveryv1.AddressTypeIPv4,
					Ports: []clusterset.EndpointPort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 8080, AppProtocol: "kubernetes.io/h2c"}},
					Endpoints: []clusterset.Endpoint{
						{Addresses: []string{"10.1.0.2"}, NodeName: "node-1", Zone: "eu-1a", Serving: clusterset.True, Terminating: clusterset.True, Ready: clusterset.False},
						{Addresses: []string{"10.1.0.1"}, NodeName: "node-1", Zone: "eu-1a", Ready: clusterset.True},
					},
				},
				in6(source("paris", "0000000002", "http", at("fd02::1"))),
			},
			ips: []string{"fd00::10", "10.0.0.10"},
		},
		"headless": {
			exports: []clusterset.Export{exported("berlin", 1, headless, ports(tcp("", 5432))), exported("paris", 2, headless, ports(tcp("", 5432)))},
			sources: []clusterset.Slice{
				source("berlin", "0000000001", "", clusterset.Endpoint{Addresses: []string{"10.1.0.1"}, Hostname: "db-0"}),
				{Cluster: "paris", ID: "0000000002", AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []clusterset.Endpoint{at("10.2.0.1")}},
			},
		},
		"conflicting-ports": {
			exports: []clusterset.Export{
				exported("berlin", 1, ports(tcp("", 80))),
				exported("paris", 2, ports(tcp("http", 80), tcp("metrics", 9090))),
				exported("rome", 3, ports(tcp("", 443))),
			},
			sources: []clusterset.Slice{
				source("berlin", "0000000001", "", at("10.1.0.1")),
				{
					Cluster: "paris", ID: "0000000002", AddressType: discoveryv1.AddressTypeIPv4,
					Ports: []clusterset.EndpointPort{
						{Name: "http", Protocol: corev1.ProtocolTCP, Port: 8080}, {Name: "metrics", Protocol: corev1.ProtocolTCP},
					},
					Endpoints: []clusterset.Endpoint{at("10.2.0.1")},
				},
				source("rome", "0000000003", "", at("10.3.0.1")),
			},
			ips: []string{"10.0.0.10"},
		},
		"same-zone": {
			exports: []clusterset.Export{exported("berlin", 1, distribution("PreferClose"))},
			sources: []clusterset.Slice{source("berlin", "0000000001", "http", zoned("10.1.0.1", "eu-1a"), zoned("10.1.0.2", "eu-1b"))},
			ips:     []string{"10.0.0.10"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := merged(t, tc.exports...)
			serviceImport := render.ServiceImport(m, site, tc.ips)
			serviceImport.Status = render.ImportStatus(m)
			objects := []any{serviceImport, render.Service(m, site)}
			for _, slice := range render.Slices(m, site, tc.sources) {
				objects = append(objects, slice)
			}
			checkGolden(t, name, objects)
		})
	}
}

// checkGolden compares objects with testdata/<name>.yaml.
func checkGolden(t *testing.T, name string, objects []any) {
	t.Helper()
	var documents []string
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		check.Must(t, err)
		documents = append(documents, string(text))
	}
	golden.Check(t, name+".yaml", strings.Join(documents, "---\n"))
}

// spec: D8
func TestSelector(t *testing.T) {
	t.Parallel()
	selection := &clusterset.Selection{
		Labels:      map[string]string{"app": "web"},
		TargetPorts: map[clusterset.PortID]intstr.IntOrString{{Protocol: corev1.ProtocolTCP, Port: 80}: intstr.FromString("web")},
	}
	m := merged(t, exported("a", 1, ports(tcp("http", 80), tcp("admin", 81)), func(e *clusterset.Export) { e.Selection = selection }))
	service := render.Service(m, render.Site{IPFamilies: v4, DerivedName: "derived-1"})
	check.Equal(t, "selector", selection.Labels, service.Spec.Selector)
	check.Equal(t, "target port of a port that the oldest has", intstr.FromString("web"), service.Spec.Ports[0].TargetPort)
	check.Equal(t, "target port of a port that the oldest has not", intstr.FromInt32(81), service.Spec.Ports[1].TargetPort)
	service.Spec.Selector["app"] = "x"
	check.Equal(t, "label of the export, after a change of the Service", "web", selection.Labels["app"])
}

// TestOneAddressOfEachFamily: an import has one address of each of its families, in their order, whatever the derived Service has.
//
// spec: I5
func TestOneAddressOfEachFamily(t *testing.T) {
	t.Parallel()
	const v4, v6, another = "10.96.0.1", "fd00::1", "10.96.0.2"
	for name, test := range map[string]struct {
		families []corev1.IPFamily
		ips      []string
		want     []string
	}{
		"one":                          {[]corev1.IPFamily{"IPv4"}, []string{v4}, []string{v4}},
		"two":                          {[]corev1.IPFamily{"IPv6", "IPv4"}, []string{v6, v4}, []string{v6, v4}},
		"more than families":           {[]corev1.IPFamily{"IPv4"}, []string{v4, v6}, []string{v4}},
		"more, the other family first": {[]corev1.IPFamily{"IPv4"}, []string{v6, v4}, []string{v4}},
		"in another order":             {[]corev1.IPFamily{"IPv6", "IPv4"}, []string{v4, v6}, []string{v6, v4}},
		"twice":                        {[]corev1.IPFamily{"IPv4"}, []string{v4, another}, []string{v4}},
		"one of two":                   {[]corev1.IPFamily{"IPv4", "IPv6"}, []string{v4}, []string{v4}},
		"none yet":                     {[]corev1.IPFamily{"IPv4"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := merge.Merged{Type: mcsv1beta1.ClusterSetIP, IPFamilies: test.families}
			got := render.ServiceImport(m, render.Site{IPFamilies: test.families, ExistingFamilies: test.families}, test.ips).Spec
			check.Equal(t, "addresses", test.want, got.IPs)
			check.Equal(t, "families", test.families, got.IPFamilies)
		})
	}
}
