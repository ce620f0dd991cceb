// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package aliases

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestDecide: each result with its condition. While only the ServiceImport is missing, nothing changes.
//
// spec: L1
func TestDecide(t *testing.T) {
	t.Parallel()
	service := func(annotation string, ports ...string) *corev1.Service {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all", Annotations: map[string]string{clusterset.AnnotationImport: annotation}},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}},
		}
		for _, port := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: port, Protocol: corev1.ProtocolTCP})
		}
		return s
	}
	web := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP}, {Name: "metrics", Protocol: corev1.ProtocolTCP}},
		},
	}
	headless := web.DeepCopy()
	headless.Spec.Type = mcsv1beta1.Headless
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "derived-1-b-1", Labels: map[string]string{mcsv1beta1.LabelSourceCluster: "b"}},
		Ports:      []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP)}}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}},
	}
	gateway := slice.DeepCopy()
	gateway.Labels[clusterset.LabelGateway] = "true"
	plain := service("web", "http")
	delete(plain.Annotations, clusterset.AnnotationImport)
	apiServer := service("web", "http")
	apiServer.Namespace, apiServer.Name = "default", "kubernetes"
	const viaGateways = "the endpoints of b are left out, because they are reached through gateways: only a Service with a cluster IP can be an alias " +
		"of such an import with a cluster IP, and only a headless one of a headless import"
	for name, test := range map[string]struct {
		service  *corev1.Service
		of       *mcsv1beta1.ServiceImport
		mirrored *discoveryv1.EndpointSlice
		want     string
	}{
		"no Service":                        {nil, nil, nil, "[] none"},
		"no alias":                          {plain, nil, nil, "[] none"},
		"all ports":                         {service("web", "http", "metrics"), web, slice, "[all.derived-1-b-1] True/NoEndpoints: the Service has the endpoints of ServiceImport web at the ports http/TCP, metrics/TCP; no endpoint of the import is available at metrics/TCP"},
		"no endpoints":                      {service("web", "http"), web, nil, "[] False/NoEndpoints: the Service has no endpoints of ServiceImport web; no endpoint of the import is available"},
		"a port of its own":                 {service("web", "http", "admin"), web, slice, "[all.derived-1-b-1] True/PortsNotMatched: the Service has the endpoints of ServiceImport web at the ports http/TCP; the import has no port like admin/TCP: give the ports of the Service the names and protocols of those of the import"},
		"only ports of its own":             {service("web", "admin"), web, slice, "[] False/PortsNotMatched: the Service has no endpoints of ServiceImport web; the import has no port like admin/TCP: give the ports of the Service the names and protocols of those of the import"},
		"gateways of a headless one":        {service("web", "http"), headless, gateway, "[] False/EndpointsLeftOut: the Service has no endpoints of ServiceImport web; " + viaGateways},
		"gateways":                          {service("web", "http"), web, gateway, "[all.derived-1-b-1] True/Aliased: the Service has the endpoints of ServiceImport web at the ports http/TCP"},
		"no import":                         {service("web", "http"), nil, nil, "[] False/NoImport: this namespace has no ServiceImport web that is managed by Tombolo: no cluster exports the service, or not to this cluster"},
		"only the ServiceImport is missing": {service("web", "http"), nil, slice, "kept"},
		"another namespace":                 {service("bank/web", "http"), nil, nil, `[] False/Refused: annotation tombolo-mcs.io/import: "bank/web" is refused: a Service can have the endpoints of imports of its own namespace only, so write the name without a namespace`},
		"the Service of the API server":     {apiServer, web, slice, "[] False/Refused: service default/kubernetes is reserved: it is each cluster's own API server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view{cluster: "a", service: test.service, serviceImport: test.of}
			if test.mirrored != nil {
				v.mirrored = []*discoveryv1.EndpointSlice{test.mirrored}
			}
			check.Equal(t, "decision", test.want, describe(decide(v)))
		})
	}
}

// describe returns a decision as text.
func describe(d decision) string {
	if d.kept {
		return "kept"
	}
	var names []string
	for _, s := range d.slices {
		names = append(names, s.Name)
	}
	text := "[" + strings.Join(names, " ") + "] none"
	if c := d.condition; c != nil {
		text = fmt.Sprintf("[%s] %s/%s: %s", strings.Join(names, " "), c.Status, c.Reason, c.Message)
	}
	return text
}
