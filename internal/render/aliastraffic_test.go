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
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// inZones returns ready endpoints, one in each zone; an empty one means that it has none. They have hints if hinted is set.
func inZones(hinted string, zones ...string) []discoveryv1.Endpoint {
	var result []discoveryv1.Endpoint
	for i, zone := range zones {
		endpoint := discoveryv1.Endpoint{Addresses: []string{fmt.Sprint("10.1.0.", i+1)}}
		if zone != "" {
			endpoint.Zone = new(zone)
		}
		if hinted != "" && zone != "" {
			endpoint.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
		}
		result = append(result, endpoint)
	}
	return result
}

func mirroredFrom(cluster string, family discoveryv1.AddressType, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "derived-" + cluster + string(family), Labels: map[string]string{mcsv1beta1.LabelSourceCluster: cluster}},
		AddressType: family, Ports: []discoveryv1.EndpointPort{{Name: new("http")}}, Endpoints: endpoints,
	}
}

func behindGateways(slice *discoveryv1.EndpointSlice, available string) *discoveryv1.EndpointSlice {
	slice.Labels[clusterset.LabelGateway] = "true"
	slice.Annotations = map[string]string{clusterset.AnnotationAvailable: available}
	return slice
}

// described returns the addresses of endpoints with their hints, such as "10.1.0.1@x".
func described(endpoints []discoveryv1.Endpoint) string {
	var result []string
	for _, e := range endpoints {
		text := e.Addresses[0]
		if e.Hints != nil {
			text += "@" + e.Hints.ForZones[0].Name
		}
		result = append(result, text)
	}
	return strings.Join(result, " ")
}

// The hints of an alias are those for its own trafficDistribution, which kube-proxy reads, whatever that of the import is. spec: D6, L1
func TestHintsOfAliases(t *testing.T) {
	t.Parallel()
	both := func(hinted string) []*discoveryv1.EndpointSlice {
		return []*discoveryv1.EndpointSlice{mirroredFrom("west", "IPv4", inZones(hinted, "x", "y")...)}
	}
	const hinted, plain = "10.1.0.1@x 10.1.0.2@y", "10.1.0.1 10.1.0.2"
	for name, test := range map[string]struct {
		distribution string
		headless     bool
		mirrored     []*discoveryv1.EndpointSlice
		pods         []*discoveryv1.EndpointSlice
		want         []string
		withoutZone  []string
	}{
		"neither prefers a zone":             {mirrored: both(""), want: []string{plain}},
		"only the import does":               {mirrored: both("hinted"), want: []string{plain}},
		"only the alias does":                {distribution: "PreferClose", mirrored: both(""), want: []string{hinted}},
		"PreferSameZone":                     {distribution: "PreferSameZone", mirrored: both(""), want: []string{hinted}},
		"PreferSameNode means the same zone": {distribution: "PreferSameNode", mirrored: both(""), want: []string{hinted}},
		"both do":                            {distribution: "PreferClose", mirrored: both("hinted"), want: []string{hinted}},
		"a value that is not known":          {distribution: "PreferMoon", mirrored: both("hinted"), want: []string{plain}},
		"a headless alias":                   {distribution: "PreferClose", headless: true, mirrored: both("hinted"), want: []string{plain}},
		"an endpoint without a zone": {
			distribution: "PreferClose", mirrored: []*discoveryv1.EndpointSlice{mirroredFrom("west", "IPv4", inZones("", "x", "")...)},
			want: []string{plain}, withoutZone: []string{"west"},
		},
		"gateways without a zone": {
			distribution: "PreferClose", mirrored: append(both(""), behindGateways(mirroredFrom("north", "IPv4", inZones("", "")...), "")),
			want: []string{"10.1.0.1", plain}, withoutZone: []string{"gateways of this cluster"},
		},
		"another family has endpoints without a zone": {
			distribution: "PreferClose", mirrored: append(both(""), mirroredFrom("west", "IPv6", inZones("", "")...)),
			want: []string{hinted, "10.1.0.1"}, withoutZone: []string{"west"},
		},
		"pods of the alias without a zone": {
			distribution: "PreferClose", mirrored: both(""), pods: []*discoveryv1.EndpointSlice{mirroredFrom("", "IPv4", inZones("", "")...)},
			want: []string{hinted}, withoutZone: []string{"berlin"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := alias("http/TCP")
			service.Spec.TrafficDistribution, service.Spec.IPFamilies = &test.distribution, []corev1.IPFamily{"IPv4", "IPv6"}
			if test.headless {
				service.Spec.ClusterIP = corev1.ClusterIPNone
			}
			before := map[string]string{}
			for _, slice := range test.mirrored {
				before[clusterset.AliasSliceName(service.Name, slice.Name)] = described(slice.Endpoints)
			}
			got := render.AliasSlices(service, imported(mcsv1beta1.ClusterSetIP, "http/TCP"), "berlin", test.mirrored, test.pods)
			var slices []string
			changes := false
			for _, slice := range got.Slices {
				slices = append(slices, described(slice.Endpoints))
				changes = changes || described(slice.Endpoints) != before[slice.Name]
			}
			check.Equal(t, "endpoints", test.want, slices)
			check.Equal(t, "without zone", test.withoutZone, got.WithoutZone)
			for _, slice := range test.mirrored {
				check.Equal(t, "the argument", before[clusterset.AliasSliceName(service.Name, slice.Name)], described(slice.Endpoints))
				slice.Endpoints = plan.Condense(slice.Endpoints)
			}
			condensed := render.AliasSlices(service, imported(mcsv1beta1.ClusterSetIP, "http/TCP"), "berlin", test.mirrored, test.pods)
			check.Equal(t, "without zone, condensed", test.withoutZone, condensed.WithoutZone)
			if changes && len(condensed.Unread) == 0 {
				t.Error("the endpoints change, and are not read")
			}
		})
	}
}

// An alias lists no more gateways for a source than the source has available endpoints if the alias' own pods serve too. spec: G2, L1
func TestProportionsOfAliases(t *testing.T) {
	t.Parallel()
	unready := inZones("", "")
	unready[0].Conditions.Ready = new(false)
	otherPort := mirroredFrom("", "IPv4", inZones("", "")...)
	otherPort.Ports[0].Name = new("admin")
	for name, test := range map[string]struct {
		available string
		pods      *discoveryv1.EndpointSlice
		want      int
	}{
		"no pods":                        {"1", nil, 2},
		"a pod that is ready":            {"1", mirroredFrom("", "IPv4", inZones("", "")...), 1},
		"a pod that is not ready":        {"1", mirroredFrom("", "IPv4", unready...), 2},
		"a pod of another family":        {"1", mirroredFrom("", "IPv6", inZones("", "")...), 2},
		"a pod with another port":        {"1", otherPort, 2},
		"two or more remote endpoints":   {"", mirroredFrom("", "IPv4", inZones("", "")...), 2},
		"an annotation that was edited":  {"many", mirroredFrom("", "IPv4", inZones("", "")...), 2},
		"an annotation that is negative": {"-1", mirroredFrom("", "IPv4", inZones("", "")...), 2},
		"an annotation that is zero":     {"0", mirroredFrom("", "IPv4", inZones("", "")...), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var pods []*discoveryv1.EndpointSlice
			if test.pods != nil {
				pods = append(pods, test.pods)
			}
			mirrored := behindGateways(mirroredFrom("west", "IPv4", inZones("", "", "")...), test.available)
			slices := func() render.AliasEndpoints {
				return render.AliasSlices(alias("http/TCP"), imported(mcsv1beta1.ClusterSetIP, "http/TCP"), "berlin", []*discoveryv1.EndpointSlice{mirrored}, pods)
			}
			check.Equal(t, "gateways", test.want, len(slices().Slices[0].Endpoints))
			delete(mirrored.Labels, clusterset.LabelGateway)
			check.Equal(t, "endpoints that are no gateways", 2, len(slices().Slices[0].Endpoints))
			mirrored.Labels[clusterset.LabelGateway] = "true"
			mirrored.Endpoints = plan.Condense(mirrored.Endpoints)
			check.Equal(t, "the endpoints must be read", test.want < 2, len(slices().Unread) > 0)
		})
	}
}
