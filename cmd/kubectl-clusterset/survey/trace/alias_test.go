// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/proxy"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestTraceOfAlias: an alias is ok only if each kind of traffic that it accepts reaches an endpoint, whatever its condition says: an older agent
// writes True for each alias that has an import.
//
// spec: L1
func TestTraceOfAlias(t *testing.T) {
	t.Parallel()
	here, remote := discoveryv1.Endpoint{Addresses: []string{"10.1.0.1"}, NodeName: new("n")}, discoveryv1.Endpoint{Addresses: []string{"10.2.0.1"}}
	local, nodePort := corev1.ServiceInternalTrafficPolicyLocal, corev1.ServiceTypeNodePort
	plain := conditions.Aliased{Import: "web", Matched: []string{"http/TCP"}, Ports: []proxy.Port{{Name: "http", Traffic: proxy.Internal, Available: 1, Reached: 1}}}
	none := conditions.Aliased{Import: "web", Matched: []string{"http/TCP"}}
	const dropped = "none of the endpoints is on a node of this cluster"
	for name, test := range map[string]struct {
		change    func(*corev1.ServiceSpec)
		condition metav1.Condition
		endpoints []discoveryv1.Endpoint
		follows   following
		want      Health
		found     string
	}{
		"works":                          {nil, conditions.Alias(plain), []discoveryv1.Endpoint{remote}, followsImport, OK, "the Service has the endpoints"},
		"internal Local":                 {func(s *corev1.ServiceSpec) { s.InternalTrafficPolicy = &local }, conditions.Alias(plain), []discoveryv1.Endpoint{remote}, followsImport, Broken, dropped},
		"internal Local, one here":       {func(s *corev1.ServiceSpec) { s.InternalTrafficPolicy = &local }, conditions.Alias(plain), []discoveryv1.Endpoint{remote, here}, followsImport, OK, ""},
		"external Local":                 {func(s *corev1.ServiceSpec) { s.Type, s.ExternalTrafficPolicy = nodePort, "Local" }, conditions.Alias(plain), []discoveryv1.Endpoint{remote}, followsImport, Broken, dropped},
		"external Local, no node port":   {func(s *corev1.ServiceSpec) { s.ExternalTrafficPolicy = "Local" }, conditions.Alias(plain), []discoveryv1.Endpoint{remote}, followsImport, OK, ""},
		"headless":                       {func(s *corev1.ServiceSpec) { s.ClusterIP, s.InternalTrafficPolicy = "None", &local }, conditions.Alias(plain), []discoveryv1.Endpoint{remote}, followsImport, OK, ""},
		"no endpoint":                    {nil, conditions.Alias(plain), nil, followsImport, Broken, "no port of the Service has an available endpoint"},
		"no endpoint, of the same name":  {nil, conditions.Alias(none), nil, followsService, Broken, "no endpoint of the import is available"},
		"only its own, of the same name": {nil, conditions.Alias(none), []discoveryv1.Endpoint{here}, followsService, Note, "no endpoint of the import is available"},
		"only its own":                   {nil, conditions.Alias(none), []discoveryv1.Endpoint{here}, followsImport, Broken, "no endpoint of the import is available"},
		"no import, its own":             {nil, conditions.AliasWithoutImport("web"), []discoveryv1.Endpoint{here}, followsImport, Broken, "no ServiceImport"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newMemberTrace()
			v.alias = &aliasTrace{service: &corev1.Service{Spec: corev1.ServiceSpec{
				ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP}},
			}}}
			v.alias.service.Namespace, v.alias.service.Name, v.alias.service.Annotations = "shop", "web", map[string]string{clusterset.AnnotationImport: "web"}
			v.alias.service.Status.Conditions = []metav1.Condition{test.condition}
			if test.change != nil {
				test.change(&v.alias.service.Spec)
			}
			v.alias.slices = []*discoveryv1.EndpointSlice{{
				AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP)}}, Endpoints: test.endpoints,
			}}
			steps := v.aliasSteps(&tracer{Options: Options{Key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}}, follows: test.follows})
			if len(steps) != 1 || steps[0].State != test.want || !strings.Contains(steps[0].Found, test.found) || (test.want == OK) != (steps[0].Fix == "") {
				t.Errorf("%+v", steps)
			}
		})
	}
}
