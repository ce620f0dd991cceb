// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestWithhold: withheld ports are in an annotation, from which they return.
//
// spec: D9
func TestWithhold(t *testing.T) {
	t.Parallel()
	http, dns := discoveryv1.EndpointPort{Name: new("http"), Port: new(int32(80))}, discoveryv1.EndpointPort{Name: new("dns"), Port: new(int32(53))}
	all := &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{http, dns}}
	one := render.Withhold(all, []string{"http"})
	check.Equal(t, "ports of which one is withheld", []discoveryv1.EndpointPort{http}, one.Ports)
	check.Equal(t, "all of them", []discoveryv1.EndpointPort{http, dns}, render.AllPorts(one))
	check.Equal(t, "the argument", &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{http, dns}}, all)
	one.Annotations["example.com/theirs"] = "x"
	none := render.Withhold(one, nil)
	check.Equal(t, "ports of which all are withheld", 0, len(none.Ports))
	check.Equal(t, "withheld ports, in their order", []discoveryv1.EndpointPort{http, dns}, render.AllPorts(none))
	again := render.Withhold(none, []string{"dns", "http"})
	check.Equal(t, "ports that serve again", []discoveryv1.EndpointPort{http, dns}, again.Ports)
	check.Equal(t, "annotations then", map[string]string{"example.com/theirs": "x"}, again.Annotations)
	one.Annotations[clusterset.AnnotationWithheldPorts] = "edited"
	check.Equal(t, "ports beside an edited annotation", []discoveryv1.EndpointPort{http}, render.AllPorts(one))
}

// TestExportOf: the export of a derived Service has what the Service was rendered from.
//
// spec: D9, I7
func TestExportOf(t *testing.T) {
	t.Parallel()
	key := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			mcsv1beta1.LabelServiceName: "web", clusterset.LabelServiceImported: "true", clusterset.LabelManagedBy: clusterset.ManagedBy, "team": "shop",
		}},
		Spec: corev1.ServiceSpec{
			SessionAffinity:       corev1.ServiceAffinityClientIP,
			SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(60))}},
			Ports: []corev1.ServicePort{
				{Name: "http", Protocol: "TCP", Port: 80, AppProtocol: new("h2c")}, {Name: "unnamed", Port: 81}, {Name: "unnamed-2", Port: 82},
			},
		},
	}
	want := clusterset.Export{
		Key: key, Type: mcsv1beta1.ClusterSetIP, Labels: map[string]string{"team": "shop"},
		Affinity: clusterset.Affinity{Mode: corev1.ServiceAffinityClientIP, TimeoutSeconds: 60},
		Ports:    []clusterset.Port{{Name: "http", Protocol: "TCP", Port: 80, AppProtocol: "h2c"}, {Port: 81}, {Name: "unnamed", Port: 82}},
	}
	check.Equal(t, "export", want, render.ExportOf(service, key, nil))
	service.Spec.ClusterIP, service.Spec.SessionAffinityConfig = corev1.ClusterIPNone, &corev1.SessionAffinityConfig{}
	want.Type, want.Affinity = mcsv1beta1.Headless, clusterset.Affinity{}
	check.Equal(t, "headless export", want, render.ExportOf(service, key, nil))
}
