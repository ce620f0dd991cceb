// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// asking returns a function that sets the internal traffic policy and the traffic distribution.
func asking(policy corev1.ServiceInternalTrafficPolicy, distribution string) func(*clusterset.Export) {
	return func(e *clusterset.Export) { e.InternalTrafficPolicy, e.TrafficDistribution = policy, distribution }
}

// Settings that the local API server does not support are in none of the objects, and nothing else is missing.
// spec: D6
func TestUnknownSettings(t *testing.T) {
	t.Parallel()
	near := clusterset.Setting{Field: "internalTrafficPolicy", Value: "Near"}
	zone := clusterset.Setting{Field: "trafficDistribution", Value: "PreferSameZone"}
	type fields struct {
		Policy       corev1.ServiceInternalTrafficPolicy
		Distribution string
		Hints        bool
		LeftOut      []clusterset.Setting
	}
	for name, tc := range map[string]struct {
		export  func(*clusterset.Export)
		unknown map[clusterset.Setting]bool
		want    fields
	}{
		"all is known":             {asking("Near", "PreferSameZone"), nil, fields{"Near", "PreferSameZone", true, []clusterset.Setting{}}},
		"others are not known":     {asking("Local", "PreferSameNode"), map[clusterset.Setting]bool{near: true, zone: true}, fields{"Local", "PreferSameNode", true, []clusterset.Setting{}}},
		"the policy is not":        {asking("Near", "PreferSameZone"), map[clusterset.Setting]bool{near: true}, fields{"Cluster", "PreferSameZone", true, []clusterset.Setting{near}}},
		"the distribution is not":  {asking("Near", "PreferSameZone"), map[clusterset.Setting]bool{zone: true}, fields{"Near", "", false, []clusterset.Setting{zone}}},
		"neither is":               {asking("Near", "PreferSameZone"), map[clusterset.Setting]bool{near: true, zone: true}, fields{"Cluster", "", false, []clusterset.Setting{near, zone}}},
		"what is not asked for":    {asking("", ""), map[clusterset.Setting]bool{{Field: "trafficDistribution"}: true, {Field: "internalTrafficPolicy"}: true}, fields{"Cluster", "", false, []clusterset.Setting{}}},
		"the value of another one": {asking("Cluster", "Near"), map[clusterset.Setting]bool{near: true}, fields{"Cluster", "Near", false, []clusterset.Setting{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := merged(t, exported("a", 1, tc.export))
			site := render.Site{IPFamilies: v4, DerivedName: "derived-1", UnknownSettings: tc.unknown}
			slices := render.Slices(m, site, []clusterset.Slice{source("a", "0", "http", zoned("10.1.0.1", "zone-1"))})
			of := func(policy *corev1.ServiceInternalTrafficPolicy, distribution *string) fields {
				f := fields{Policy: *policy, Hints: slices[0].Endpoints[0].Hints != nil, LeftOut: render.SettingsLeftOut(m, site)}
				if distribution != nil {
					f.Distribution = *distribution
				}
				return f
			}
			spec := render.Service(m, site).Spec
			check.Equal(t, "Service and slices", tc.want, of(spec.InternalTrafficPolicy, spec.TrafficDistribution))
			imported := render.ServiceImport(m, site, nil).Spec
			check.Equal(t, "ServiceImport", tc.want, of(imported.InternalTrafficPolicy, imported.TrafficDistribution))
		})
	}
}

// Labels and annotations of a domain are imported only if it is allowed, without its subdomains. Those without a domain always are.
// spec: D3, E7
func TestMetadataDomains(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"team": "shop", "kuma.io/mesh": "x", "example.com/tier": "1", "a.example.com/tier": "2"}
	annotations := map[string]string{"docs": "https://example.com", "Kube-VIP.io/loadbalancerIPs": "10.0.0.1", "example.com/note": "n"}
	type metadata struct {
		Labels, Annotations map[string]string
		LeftOut             []string
	}
	for name, tc := range map[string]struct {
		domains []string
		want    metadata
	}{
		"none is admitted": {nil, metadata{
			map[string]string{"team": "shop"},
			map[string]string{"docs": "https://example.com"},
			[]string{"a.example.com", "example.com", "kube-vip.io", "kuma.io"},
		}},
		"one is, and not what is below it": {[]string{"example.com"}, metadata{
			map[string]string{"team": "shop", "example.com/tier": "1"},
			map[string]string{"docs": "https://example.com", "example.com/note": "n"},
			[]string{"a.example.com", "kube-vip.io", "kuma.io"},
		}},
		"one that a key spells in upper case": {[]string{"kube-vip.io", "unused.example"}, metadata{
			map[string]string{"team": "shop"},
			map[string]string{"docs": "https://example.com", "Kube-VIP.io/loadbalancerIPs": "10.0.0.1"},
			[]string{"a.example.com", "example.com", "kuma.io"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := merged(t, exported("a", 1, func(e *clusterset.Export) { e.Labels, e.Annotations = labels, annotations }))
			site := render.Site{IPFamilies: v4, DerivedName: "derived-1", MetadataDomains: tc.domains}
			i := render.ServiceImport(m, site, nil)
			delete(i.Labels, clusterset.LabelManagedBy)
			delete(i.Annotations, clusterset.AnnotationDerivedService)
			check.Equal(t, "ServiceImport", tc.want, metadata{i.Labels, i.Annotations, render.MetadataLeftOut(m, site)})
			service := render.Service(m, site)
			for _, ours := range []string{clusterset.LabelManagedBy, clusterset.LabelServiceImported, mcsv1beta1.LabelServiceName} {
				delete(service.Labels, ours)
			}
			check.Equal(t, "labels of the derived Service", tc.want.Labels, service.Labels)
			check.Equal(t, "annotations of the derived Service", map[string]string(nil), service.Annotations)
			if len(m.Labels) != len(labels) || len(m.Annotations) != len(annotations) {
				t.Errorf("the merged service has changed: %v, %v", m.Labels, m.Annotations)
			}
		})
	}
}

// An API server that does not support a setting refuses or drops it. Settings that are already known to be unsupported are not returned.
// spec: D6
func TestFindUnknownSettings(t *testing.T) {
	t.Parallel()
	near := clusterset.Setting{Field: "internalTrafficPolicy", Value: "Near"}
	far := clusterset.Setting{Field: "trafficDistribution", Value: "Far"}
	for name, tc := range map[string]struct {
		policy       corev1.ServiceInternalTrafficPolicy
		distribution string
		unknown      map[clusterset.Setting]bool
		fields       []string
		written      func(*corev1.Service)
		// refused and dropped are the expected settings.
		refused, dropped []clusterset.Setting
	}{
		"all is taken over":        {"Near", "Far", nil, nil, nil, []clusterset.Setting{}, []clusterset.Setting{}},
		"another field is refused": {"Near", "Far", nil, []string{"spec.clusterIPs", "trafficDistribution"}, nil, []clusterset.Setting{}, []clusterset.Setting{}},
		"one is refused":           {"Near", "Far", nil, []string{"spec.clusterIPs", "spec.trafficDistribution"}, nil, []clusterset.Setting{far}, []clusterset.Setting{}},
		"both are refused":         {"Near", "Far", nil, []string{"spec.trafficDistribution", "spec.internalTrafficPolicy"}, nil, []clusterset.Setting{near, far}, []clusterset.Setting{}},
		"what is known to be unknown is refused": {
			"Near", "Far", map[clusterset.Setting]bool{far: true}, []string{"spec.trafficDistribution"}, nil, []clusterset.Setting{}, []clusterset.Setting{},
		},
		"what no export requests is refused": {"Near", "", nil, []string{"spec.trafficDistribution"}, nil, []clusterset.Setting{}, []clusterset.Setting{}},
		"one is left out": {
			"Near", "Far", nil, nil, func(s *corev1.Service) { s.Spec.TrafficDistribution = nil }, []clusterset.Setting{}, []clusterset.Setting{far},
		},
		"the other is left out": {
			"Near", "Far", nil, nil, func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = nil }, []clusterset.Setting{}, []clusterset.Setting{near},
		},
		"another value is written instead": {
			"Near", "Far", nil, nil, func(s *corev1.Service) { s.Spec.TrafficDistribution = new("PreferClose") }, []clusterset.Setting{}, []clusterset.Setting{far},
		},
		"what is known to be unknown is left out": {
			"Near", "Far", map[clusterset.Setting]bool{near: true, far: true}, nil, nil, []clusterset.Setting{}, []clusterset.Setting{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := merged(t, exported("a", 1, asking(tc.policy, tc.distribution)))
			site := render.Site{IPFamilies: v4, DerivedName: "derived-1", UnknownSettings: tc.unknown}
			written := render.Service(m, site)
			if tc.written != nil {
				tc.written(written)
			}
			check.Equal(t, "refused", tc.refused, render.RefusedSettings(m, site, tc.fields))
			check.Equal(t, "dropped", tc.dropped, render.DroppedSettings(m, site, written))
		})
	}
}
