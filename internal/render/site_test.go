// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: D2
func TestDerivedName(t *testing.T) {
	t.Parallel()
	const (
		short = "derived-275972818"
		long  = "derived-98584e222de4ee4e220b9d8285debfa8d0bfe670"
	)
	ours := func(name, service string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"app.kubernetes.io/managed-by": "tombolo-mcs.io", "multicluster.kubernetes.io/service-name": service,
		}}}
	}
	users := func(name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"multicluster.kubernetes.io/service-name": "shard-020",
		}}}
	}
	for name, tc := range map[string]struct {
		recorded string
		services []*corev1.Service
		want     string
		others   []string
	}{
		"nothing is there":                                       {"", nil, short, nil},
		"ours bears the short name":                              {"", []*corev1.Service{ours(short, "shard-020")}, short, nil},
		"ours bears the long name":                               {"", []*corev1.Service{ours(long, "shard-020")}, long, nil},
		"ours bears both":                                        {"", []*corev1.Service{ours(long, "shard-020"), ours(short, "shard-020")}, short, nil},
		"ours bears the long name, a user the short":             {"", []*corev1.Service{ours(long, "shard-020"), users(short)}, long, nil},
		"another service of ours has the same sum":               {"", []*corev1.Service{ours(short, "shard-101")}, long, nil},
		"a user's Service has the short name":                    {"", []*corev1.Service{users(short)}, long, nil},
		"a user's Service has the long name":                     {"", []*corev1.Service{users(long)}, short, nil},
		"the short name is recorded":                             {short, nil, short, nil},
		"the short name is recorded, and stands":                 {short, []*corev1.Service{ours(short, "shard-020")}, short, nil},
		"the short name is recorded, though ours bears the long": {short, []*corev1.Service{ours(long, "shard-020")}, short, nil},
		"the short name is recorded, and another took it":        {short, []*corev1.Service{ours(short, "shard-101")}, long, nil},
		"the long name is recorded":                              {long, nil, long, nil},
		"the long name is recorded, the short is free":           {long, []*corev1.Service{ours(long, "shard-020")}, long, nil},
		"the long name is recorded, the short is ours":           {long, []*corev1.Service{ours(short, "shard-020")}, long, nil},
		"what is recorded is nothing that we give":               {"kubernetes", nil, short, nil},
		"the same, and the short name is taken":                  {"kubernetes", []*corev1.Service{users(short)}, long, nil},
		"another import has recorded the short name":             {"", nil, long, []string{short}},
		"it has, though ours bears it":                           {"", []*corev1.Service{ours(short, "shard-020")}, short, []string{short}},
		"it has recorded something else":                         {"", nil, short, []string{"derived-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "DerivedName", tc.want, render.DerivedName("shard-020", tc.recorded, tc.services, tc.others))
		})
	}
	check.Equal(t, "the sum that sprig prints for web-service", "derived-435094621", render.DerivedName("web-service", "", nil, nil))
}

// spec: I5, I6, D1, R6
func TestFamilies(t *testing.T) {
	t.Parallel()
	type families = []corev1.IPFamily
	for name, tc := range map[string]struct {
		exporters, site, established families
		clusterSetIP                 families
		supported                    bool
		// headless are the families of the derived headless Service; its import always has those of the exporters.
		headless families
	}{
		"both have IPv4":                                      {v4, v4, nil, v4, true, v4},
		"dual-stack throughout":                               {v4v6, v4v6, nil, v4v6, true, v4v6},
		"the oldest exporter's order":                         {v6v4, v4v6, nil, v6v4, true, v6v4},
		"a single-stack importer":                             {v4v6, v6, nil, v6, true, v4v6},
		"single-stack exporters":                              {v6, v4v6, nil, v6, true, v6},
		"nothing in common":                                   {v4, v6, nil, nil, false, v4},
		"nothing in common any more":                          {v4, v6, v6, v6, false, v6v4},
		"an established order is kept":                        {v6v4, v4v6, v4v6, v4v6, true, v4v6},
		"an established family stays first":                   {v6v4, v4v6, v4, v4v6, true, v4v6},
		"the second exporter's family is added":               {v4v6, v4v6, v4, v4v6, true, v4v6},
		"the second family goes":                              {v4, v4v6, v4v6, v4, true, v4},
		"the first stays though no cluster exports it":        {v6, v4v6, v4v6, v4v6, true, v4v6},
		"the same, where it was the only one":                 {v6, v4v6, v4, v4v6, true, v4v6},
		"this cluster lost the second family":                 {v4v6, v4, v4v6, v4, true, v4v6},
		"this cluster lost the first, but a Service keeps it": {v4v6, v6, v4v6, v4v6, true, v4v6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := render.Site{IPFamilies: tc.site, ExistingFamilies: tc.established, DerivedName: "derived-1"}
			m := merged(t, exported("berlin", 1, func(e *clusterset.Export) { e.IPFamilies = tc.exporters }))
			check.Equal(t, "families", tc.clusterSetIP, render.Families(m, site))
			check.Equal(t, "supported", tc.supported, render.Supported(m, site))
			service := render.Service(m, site)
			check.Equal(t, "there is a derived Service", tc.clusterSetIP != nil, service != nil)
			check.Equal(t, "families of the derived Service", tc.clusterSetIP, familiesOf(service))
			want := tc.clusterSetIP
			if want == nil {
				want = tc.exporters // the default
			}
			check.Equal(t, "families of the import", want, render.ServiceImport(m, site, nil).Spec.IPFamilies)

			m.Type = mcsv1beta1.Headless
			check.Equal(t, "a headless service is supported", true, render.Supported(m, site))
			service = render.Service(m, site)
			check.Equal(t, "families of the headless derived Service", tc.headless, familiesOf(service))
			check.Equal(t, "families of the headless import", tc.exporters, render.ServiceImport(m, site, nil).Spec.IPFamilies)
		})
	}
}

// familiesOf returns the families of a Service, and fails if its policy does not match; nil if there are none.
func familiesOf(s *corev1.Service) []corev1.IPFamily {
	if s == nil {
		return nil
	}
	if dual := *s.Spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack; dual != (len(s.Spec.IPFamilies) == 2) ||
		!dual && *s.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		return []corev1.IPFamily{"policy", corev1.IPFamily(*s.Spec.IPFamilyPolicy)}
	}
	return s.Spec.IPFamilies
}

// spec: I5, I6
func TestAddressesAreRestored(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exporters, established []corev1.IPFamily
		ips                    []string
		wantIP                 string
		want                   []string
	}{
		"a new import":                     {v4v6, nil, nil, "", nil},
		"one address":                      {v4, v4, []string{"10.0.0.1"}, "10.0.0.1", []string{"10.0.0.1"}},
		"two":                              {v4v6, v6v4, []string{"fd00::1", "10.0.0.1"}, "fd00::1", []string{"fd00::1", "10.0.0.1"}},
		"the second family has gone":       {v4, v4v6, []string{"10.0.0.1", "fd00::1"}, "10.0.0.1", []string{"10.0.0.1"}},
		"a second family has come":         {v4v6, v4, []string{"10.0.0.1"}, "10.0.0.1", []string{"10.0.0.1"}},
		"the order of the exporters moved": {v6v4, v4v6, []string{"10.0.0.1", "fd00::1"}, "10.0.0.1", []string{"10.0.0.1", "fd00::1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := render.Site{IPFamilies: v4v6, ExistingFamilies: tc.established, IPs: tc.ips, DerivedName: "derived-1"}
			m := merged(t, exported("berlin", 1, families(tc.exporters)))
			got := render.Service(m, site).Spec
			check.Equal(t, "address", tc.wantIP, got.ClusterIP)
			check.Equal(t, "addresses", tc.want, got.ClusterIPs)
			m.Type = mcsv1beta1.Headless
			got = render.Service(m, site).Spec
			check.Equal(t, "headless: address", "None", got.ClusterIP)
			check.Equal(t, "headless: addresses", []string{"None"}, got.ClusterIPs)
			check.Equal(t, "addresses of the headless import", []string(nil), render.ServiceImport(m, site, tc.ips).Spec.IPs)
		})
	}
}

// spec: R2, R6, I8
func TestPortNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ports []clusterset.Port
		want  []string
	}{
		"none":                                {nil, nil},
		"names are kept":                      {[]clusterset.Port{tcp("b", 1), tcp("a", 2)}, []string{"b", "a"}},
		"one without a name":                  {[]clusterset.Port{tcp("", 1)}, []string{"unnamed"}},
		"one without a name beside others":    {[]clusterset.Port{tcp("a", 1), tcp("", 2)}, []string{"a", "unnamed"}},
		"its name is taken":                   {[]clusterset.Port{tcp("unnamed", 1), tcp("", 2)}, []string{"unnamed", "unnamed-2"}},
		"it took another's name":              {[]clusterset.Port{tcp("", 1), tcp("unnamed", 2)}, []string{"unnamed", "unnamed-2"}},
		"both names are taken":                {[]clusterset.Port{tcp("unnamed", 1), tcp("unnamed-2", 2), tcp("", 3)}, []string{"unnamed", "unnamed-2", "unnamed-3"}},
		"a younger port wants the second one": {[]clusterset.Port{tcp("unnamed", 1), tcp("", 2), tcp("unnamed-2", 3)}, []string{"unnamed", "unnamed-2", "unnamed-2-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := merged(t, exported("berlin", 1, ports(tc.ports...)))
			check.Equal(t, "names", tc.want, names(render.Service(m, render.Site{IPFamilies: v4}).Spec.Ports))
			imported := render.ServiceImport(m, render.Site{IPFamilies: v4}, nil).Spec.Ports
			if imported == nil || len(imported) != len(tc.ports) {
				t.Fatalf("the import has ports %v", imported)
			}
			for i, port := range imported {
				check.Equal(t, "name of the import's port", tc.ports[i].Name, port.Name)
			}
		})
	}
}

// A port of a younger export does not change the names of others, and names are unique.
// spec: R2, R6
func TestPortNamesStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "a", "unnamed", "unnamed-2", "unnamed-3"}), 1, 5, rapid.ID).Draw(t, "names")
		var ports []clusterset.Port
		for i, name := range drawn {
			ports = append(ports, tcp(name, int32(i+1)))
		}
		service := func(ports []clusterset.Port) []string {
			m, _ := merge.Merge([]clusterset.Export{exported("berlin", 1, func(e *clusterset.Export) { e.Ports = ports })})
			return names(render.Service(m, render.Site{IPFamilies: v4}).Spec.Ports)
		}
		all, fewer := service(ports), service(ports[:len(ports)-1])
		check.Equal(t, "a later port renames others", fewer, append([]string(nil), all[:len(fewer)]...))
		seen := map[string]bool{}
		for _, name := range all {
			if seen[name] || name == "" {
				t.Errorf("names %v", all)
			}
			seen[name] = true
		}
	})
}

func names(ports []corev1.ServicePort) []string {
	var result []string
	for _, port := range ports {
		result = append(result, port.Name)
	}
	return result
}
