// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: D3, E7
func TestIsReserved(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		keys []string
		want bool
	}{
		"keys without a domain":       {[]string{"team", "app", "kubernetes.io", "k8s.io"}, false},
		"domains of one's own":        {[]string{"example.com/team", "mykubernetes.io/x", "kubernetes.io.example.com/x", "k8s.iox/y"}, false},
		"Kubernetes' domains":         {[]string{"kubernetes.io/service-name", "service.kubernetes.io/headless", "k8s.io/x", "networking.k8s.io/x"}, true},
		"the Multi-Cluster Services'": {[]string{"multicluster.kubernetes.io/service-name", "cluster.clusterset.k8s.io/x"}, true},
		"ours":                        {[]string{"tombolo-mcs.io/x", "hub.tombolo-mcs.io/x"}, true},
		"upper case":                  {[]string{"Kubernetes.IO/x", "Service.Beta.Kubernetes.io/aws-load-balancer-type"}, true},
		"other tools', which each importer leaves out": {[]string{"kuma.io/mesh", "argocd.argoproj.io/instance", "metallb.io/address-pool"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, key := range tc.keys {
				check.Equal(t, key, tc.want, clusterset.IsReserved(key))
			}
		})
	}
}

func TestReservedServices(t *testing.T) {
	t.Parallel()
	for key, want := range map[clusterset.ServiceKey]string{
		{Namespace: "kube-system", Name: "web"}:     "namespace kube-system is reserved",
		{Namespace: "kube-public", Name: "web"}:     "namespace kube-public is reserved",
		{Namespace: "kube-node-lease", Name: "web"}: "namespace kube-node-lease is reserved",
		{Namespace: "tombolo-system", Name: "web"}:  "namespace tombolo-system is reserved",
		{Namespace: "member-c1", Name: "web"}:       "namespace member-c1 is reserved",
		{Namespace: "default", Name: "kubernetes"}:  "service default/kubernetes is reserved: it is each cluster's own API server",
		{Namespace: "default", Name: "web"}:         "",
		{Namespace: "shop", Name: "kubernetes"}:     "",
		{Namespace: "kube-systems", Name: "web"}:    "",
		{Namespace: "kube", Name: "web"}:            "",
		{Namespace: "member", Name: "web"}:          "",
		{Namespace: "members-area", Name: "web"}:    "",
		{}:                                          "",
	} {
		check.Equal(t, key.String(), want, check.Message(clusterset.CheckReserved(key)))
		if reserved := clusterset.IsReservedNamespace(key.Namespace); reserved != strings.HasPrefix(want, "namespace ") {
			t.Errorf("namespace %q: %t", key.Namespace, reserved)
		}
	}
}

func TestIsManaged(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		labels map[string]string
		want   bool
	}{
		"no labels":     {nil, false},
		"ours":          {map[string]string{"app.kubernetes.io/managed-by": "tombolo-mcs.io"}, true},
		"another's":     {map[string]string{"app.kubernetes.io/managed-by": "Helm"}, false},
		"our slice has": {map[string]string{"endpointslice.kubernetes.io/managed-by": "tombolo-mcs.io"}, false},
	}
	for name, tc := range cases {
		check.Equal(t, name, tc.want, clusterset.IsManaged(tc.labels))
	}
}

// TestHasLostMark: an object is managed if an agent has written it and it has no managed-by label.
//
// spec: I7
func TestHasLostMark(t *testing.T) {
	t.Parallel()
	const theirs = "somebody"
	written := metav1.ManagedFieldsEntry{Manager: "tombolo-agent", Operation: metav1.ManagedFieldsOperationUpdate}
	status := metav1.ManagedFieldsEntry{Manager: "tombolo-agent", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"}
	other := metav1.ManagedFieldsEntry{Manager: "kubectl-label", Operation: metav1.ManagedFieldsOperationUpdate}
	both := "app.kubernetes.io/managed-by, endpointslice.kubernetes.io/managed-by"
	for name, test := range map[string]struct {
		object metav1.Object
		labels string // a managed-by label
		mark   string
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		"a Service of ours":                        {&corev1.Service{}, clusterset.LabelManagedBy, clusterset.ManagedBy, []metav1.ManagedFieldsEntry{written}, false},
		"its label is missing":                     {&corev1.Service{}, "", "", []metav1.ManagedFieldsEntry{other, written}, true},
		"its label is empty":                       {&corev1.Service{}, clusterset.LabelManagedBy, "", []metav1.ManagedFieldsEntry{written, other}, true},
		"another user has labelled it":             {&corev1.Service{}, clusterset.LabelManagedBy, theirs, []metav1.ManagedFieldsEntry{written, other}, false},
		"another user's":                           {&corev1.Service{}, "", "", []metav1.ManagedFieldsEntry{other}, false},
		"of an unknown writer":                     {&corev1.Service{}, "", "", nil, false},
		"another user's, of which we wrote status": {&corev1.Service{}, "", "", []metav1.ManagedFieldsEntry{other, status}, false},
		"a slice of ours":                          {&discoveryv1.EndpointSlice{}, discoveryv1.LabelManagedBy, clusterset.ManagedBy, []metav1.ManagedFieldsEntry{written}, false},
		"a slice's label is missing":               {&discoveryv1.EndpointSlice{}, clusterset.LabelManagedBy, clusterset.ManagedBy, []metav1.ManagedFieldsEntry{written}, true},
		"another user has labelled a slice":        {&discoveryv1.EndpointSlice{}, discoveryv1.LabelManagedBy, theirs, []metav1.ManagedFieldsEntry{written}, false},
		"labelled twice":                           {&discoveryv1.EndpointSlice{}, both, clusterset.ManagedBy, []metav1.ManagedFieldsEntry{written}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			labels := map[string]string{}
			for label := range strings.SplitSeq(test.labels, ", ") {
				labels[label] = test.mark
			}
			test.object.SetLabels(labels)
			test.object.SetManagedFields(test.fields)
			check.Equal(t, "lost", test.want, clusterset.HasLostLabel(test.object))
		})
	}
}

func TestPortString(t *testing.T) {
	t.Parallel()
	for want, port := range map[string]clusterset.Port{
		"80/TCP":     {Protocol: "TCP", Port: 80, AppProtocol: "http"},
		"dns:53/UDP": {Name: "dns", Protocol: "UDP", Port: 53},
	} {
		check.Equal(t, "String", want, port.String())
	}
}

// spec: D6
func TestCondition(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		pointer   *bool
		condition clusterset.Condition
		ready     bool
	}{
		"unset": {nil, clusterset.Unset, true},
		"true":  {new(true), clusterset.True, true},
		"false": {new(false), clusterset.False, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "condition", tc.condition, clusterset.ConditionOf(tc.pointer))
			check.Equal(t, "pointer", tc.pointer, tc.condition.Pointer())
			check.Equal(t, "ready", tc.ready, (clusterset.Endpoint{Ready: tc.condition}).IsReady())
		})
	}
}

func TestAddressRanges(t *testing.T) {
	t.Parallel()
	ranges := clusterset.AddressRanges{
		Allowed: prefixes(t, "10.1.0.0/16", "192.168.7.0/24", "fd01::/48"),
		Denied:  prefixes(t, "10.1.128.0/20", "fd01:0:0:ffff::/64"),
	}
	everything := clusterset.AddressRanges{Allowed: prefixes(t, "0.0.0.0/0", "::/0")}
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	const kind = " is loopback, link-local, multicast, broadcast or unspecified"
	cases := map[string]struct {
		ranges  clusterset.AddressRanges
		address string
		family  discoveryv1.AddressType
		want    string
	}{
		"a pod's":                       {ranges, "10.1.2.3", v4, ""},
		"a node's":                      {ranges, "192.168.7.1", v4, ""},
		"IPv6":                          {ranges, "fd01::1", v6, ""},
		"the last below a denied range": {ranges, "10.1.127.255", v4, ""},
		"no address":                    {ranges, "web.example.com", v4, `"web.example.com" is no IP address`},
		"empty":                         {ranges, "", v4, `"" is no IP address`},
		"a port behind it":              {ranges, "10.1.2.3:80", v4, `"10.1.2.3:80" is no IP address`},
		"IPv6 written long":             {ranges, "fd01:0::1", v6, `"fd01:0::1" is not in canonical form`},
		"IPv6 in upper case":            {ranges, "FD01::1", v6, `"FD01::1" is not in canonical form`},
		"IPv6 with a zone":              {everything, "fd01::1%eth0", v6, `"fd01::1%eth0" is not in canonical form`},
		"IPv4 in IPv6":                  {everything, "::ffff:10.1.2.3", v6, `"::ffff:10.1.2.3" is not in canonical form`},
		"IPv4 in IPv6, said to be IPv4": {everything, "::ffff:10.1.2.3", v4, `"::ffff:10.1.2.3" is not in canonical form`},
		"IPv4 in an IPv6 slice":         {ranges, "10.1.2.3", v6, "10.1.2.3 is no IPv6 address"},
		"IPv6 in an IPv4 slice":         {ranges, "fd01::1", v4, "fd01::1 is no IPv4 address"},
		"an address in an FQDN slice":   {ranges, "10.1.2.3", discoveryv1.AddressTypeFQDN, "10.1.2.3 is no FQDN address"},
		"loopback":                      {everything, "127.0.0.1", v4, "127.0.0.1" + kind},
		"loopback, IPv6":                {everything, "::1", v6, "::1" + kind},
		"unspecified":                   {everything, "0.0.0.0", v4, "0.0.0.0" + kind},
		"unspecified, IPv6":             {everything, "::", v6, "::" + kind},
		"multicast":                     {everything, "224.0.0.1", v4, "224.0.0.1" + kind},
		"multicast, IPv6":               {everything, "ff02::1", v6, "ff02::1" + kind},
		"link-local":                    {everything, "169.254.169.254", v4, "169.254.169.254" + kind},
		"link-local, IPv6":              {everything, "fe80::1", v6, "fe80::1" + kind},
		"denied":                        {ranges, "10.1.128.1", v4, "10.1.128.1 is in a range of the importing cluster's own"},
		"denied, IPv6":                  {ranges, "fd01:0:0:ffff::1", v6, "fd01:0:0:ffff::1 is in a range of the importing cluster's own"},
		"outside":                       {ranges, "10.2.0.1", v4, "10.2.0.1 is outside the cluster's pod and node CIDRs"},
		"outside, IPv6":                 {ranges, "fd02::1", v6, "fd02::1 is outside the cluster's pod and node CIDRs"},
		"no range":                      {clusterset.AddressRanges{}, "10.1.2.3", v4, "10.1.2.3 is outside the cluster's pod and node CIDRs"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "error", tc.want, check.Message(tc.ranges.Check(tc.address, tc.family)))
		})
	}
}

func TestFamiliesOf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		cidrs []string
		want  []corev1.IPFamily
	}{
		"none":                   {nil, nil},
		"IPv4 twice":             {[]string{"10.0.0.0/16", "10.1.0.0/16"}, []corev1.IPFamily{"IPv4"}},
		"both, in their order":   {[]string{"fd01::/48", "10.0.0.0/16", "fd02::/48"}, []corev1.IPFamily{"IPv6", "IPv4"}},
		"both, the other way on": {[]string{"10.0.0.0/16", "fd01::/48"}, []corev1.IPFamily{"IPv4", "IPv6"}},
	}
	for name, tc := range cases {
		check.Equal(t, name, tc.want, clusterset.FamiliesOf(prefixes(t, tc.cidrs...)))
	}
}

func TestServiceRanges(t *testing.T) {
	t.Parallel()
	object := func(name string, cidrs ...string) networkingv1.ServiceCIDR {
		return networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}}
	}
	cases := map[string]struct {
		objects []networkingv1.ServiceCIDR
		want    []string
		err     string
	}{
		"none":         {},
		"one":          {objects: []networkingv1.ServiceCIDR{object("kubernetes", "10.0.0.0/16", "fd01::/112")}, want: []string{"10.0.0.0/16", "fd01::/112"}},
		"not reported": {objects: []networkingv1.ServiceCIDR{object("added", "10.0.0.0/16")}},
		"added ones come last": {
			objects: []networkingv1.ServiceCIDR{object("added", "10.1.0.0/24"), object("kubernetes", "fd01::/112", "10.0.0.0/16"), object("more", "fd02::/112")},
			want:    []string{"fd01::/112", "10.0.0.0/16", "10.1.0.0/24", "fd02::/112"},
		},
		"of a family that the cluster has not": {
			objects: []networkingv1.ServiceCIDR{object("added", "fd01::/112", "10.1.0.0/24"), object("kubernetes", "10.0.0.0/16")},
			want:    []string{"10.0.0.0/16", "10.1.0.0/24"},
		},
		"none that can be read": {
			objects: []networkingv1.ServiceCIDR{object("kubernetes", "10.0.0.0/16"), object("added", "x")},
			err:     `ServiceCIDR added: "x" is no CIDR such as 10.0.0.0/16: netip.ParsePrefix("x"): no '/'`,
		},
	}
	for name, tc := range cases {
		got, err := clusterset.ServiceRanges(tc.objects)
		if !slices.Equal(got, prefixes(t, tc.want...)) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || err.Error() != tc.err) {
			t.Errorf("%s: error %v, want %q", name, err, tc.err)
		}
	}
}

func TestParsePrefixes(t *testing.T) {
	t.Parallel()
	got, err := clusterset.ParsePrefixes([]string{"10.1.2.3/16", "fd01::1/48"})
	want := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd01::/48")}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" || err != nil {
		t.Errorf("prefixes (-want +got), error %v:\n%s", err, diff)
	}
	const message = `"10.1.0.0" is no CIDR such as 10.0.0.0/16: netip.ParsePrefix("10.1.0.0"): no '/'`
	if got, err := clusterset.ParsePrefixes([]string{"10.0.0.0/8", "10.1.0.0", "x"}); err == nil || err.Error() != message || got != nil {
		t.Errorf("got %v, error %v\nwant %s", got, err, message)
	}
}

func prefixes(t *testing.T, cidrs ...string) []netip.Prefix {
	t.Helper()
	result, err := clusterset.ParsePrefixes(cidrs)
	check.Must(t, err)
	return result
}

// Slices are left out from the first one that exceeds the limits of a service.
func TestBounded(t *testing.T) {
	t.Parallel()
	slicesOf := func(n, endpoints int) []clusterset.Slice {
		var result []clusterset.Slice
		for range n {
			result = append(result, clusterset.Slice{Endpoints: make([]clusterset.Endpoint, endpoints)})
		}
		return result
	}
	for name, tc := range map[string]struct {
		slices []clusterset.Slice
		want   int
		err    string
	}{
		"none":               {},
		"as many endpoints":  {slices: slicesOf(100, 100), want: 100},
		"too many endpoints": {slicesOf(102, 100), 100, "2 of 102 slices: a cluster contributes at most 1000 slices and 10000 endpoints to a service, and these have 10200"},
		"as many slices":     {slices: slicesOf(1000, 0), want: 1000},
		"too many slices":    {slicesOf(1001, 1), 1000, "1 of 1001 slices: a cluster contributes at most 1000 slices and 10000 endpoints to a service, and these have 1001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := clusterset.Bounded(tc.slices, clusterset.Slice.Count)
			if len(got) != tc.want {
				t.Errorf("%d slices, want %d", len(got), tc.want)
			}
			if err != nil && err.Error() != tc.err || err == nil && tc.err != "" {
				t.Errorf("error %v, want %s", err, tc.err)
			}
		})
	}
}

// A value that is mistyped restricts.
//
// spec: A1
func TestIsGrantedOnly(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"true": true, "True": true, "yes": true, "": true, "false": false} {
		export := &metav1.ObjectMeta{Annotations: map[string]string{clusterset.AnnotationGrantedOnly: value}}
		check.Equal(t, fmt.Sprintf("%q", value), want, clusterset.IsGrantedOnly(export))
	}
	if clusterset.IsGrantedOnly(&metav1.ObjectMeta{}) {
		t.Error("no annotation restricts")
	}
}

// spec: A1
func TestIsGrantedTo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		to   []clusterset.ClusterID
		want []bool // to the exporter, and to b and c
	}{
		"no grant":           {nil, []bool{true, true, true}},
		"granted to b":       {[]clusterset.ClusterID{"b"}, []bool{true, true, false}},
		"granted to none":    {[]clusterset.ClusterID{}, []bool{true, false, false}},
		"granted to both":    {[]clusterset.ClusterID{"b", "c"}, []bool{true, true, true}},
		"granted to another": {[]clusterset.ClusterID{"d"}, []bool{true, false, false}},
	} {
		e := clusterset.Export{Cluster: "a", GrantedTo: tc.to}
		check.Equal(t, name, tc.want, []bool{e.IsGrantedTo("a"), e.IsGrantedTo("b"), e.IsGrantedTo("c")})
	}
}

// spec: A1, P3
func TestMarksOfExports(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"true": true, "": true, "yes": true, "false": false} {
		export := &metav1.ObjectMeta{Annotations: map[string]string{clusterset.AnnotationGrantedOnly: value}}
		check.Equal(t, "granted only if the annotation is "+value, want, clusterset.IsGrantedOnly(export))
	}
	check.Equal(t, "granted only without the annotation", false, clusterset.IsGrantedOnly(&metav1.ObjectMeta{}))
	label := func(value string) map[string]string { return map[string]string{clusterset.LabelAutoExport: value} }
	for name, tc := range map[string]struct {
		service, namespace map[string]string
		want               bool
	}{
		"no label":                      {nil, nil, false},
		"the Service's":                 {label("true"), nil, true},
		"the Namespace's":               {nil, label("true"), true},
		"the Service's precedes":        {label("false"), label("true"), false},
		"the Service's, in a false one": {label("true"), label("false"), true},
		"another value":                 {nil, label("yes"), false},
	} {
		check.Equal(t, "automatic export with "+name, tc.want, clusterset.IsAutoExported(tc.service, tc.namespace))
	}
}

// spec: G9
func TestNamesOfVirtualIPs(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, v := range []clusterset.VirtualIP{
		{Service: clusterset.ServiceKey{Namespace: "shop", Name: "db"}, Cluster: "a"},
		{Service: clusterset.ServiceKey{Name: "db"}, Cluster: "a", Hostname: "db-0"},
		{Service: clusterset.ServiceKey{Name: "db"}, Cluster: "b", Hostname: "db-0"},
		{Service: clusterset.ServiceKey{Name: "d"}, Cluster: "b", Hostname: "db-0"},
	} {
		names[v.Name()] = clusterset.IsVirtualIPName(v.Name()) && len(v.Name()) == len("virtual-")+40
	}
	if len(names) != 4 || slices.Contains(slices.Collect(maps.Values(names)), false) {
		t.Errorf("names %v", names)
	}
	long := clusterset.LongDerivedName("web")
	for object, want := range map[string]string{long: long, long + "-berlin-0123456789": long, "derived-": "derived-"} {
		if got, ok := clusterset.DerivedNameOf(object); got != want || !ok {
			t.Errorf("%s belongs to %s, %t", object, got, ok)
		}
	}
	if got, ok := clusterset.DerivedNameOf("web"); ok {
		t.Errorf("web belongs to %s", got)
	}
}
