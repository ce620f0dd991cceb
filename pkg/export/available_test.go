// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: W2
func TestAvailable(t *testing.T) {
	t.Parallel()
	ready := clusterset.Endpoint{}
	unready := clusterset.Endpoint{Ready: clusterset.False}
	ends := clusterset.Endpoint{Ready: clusterset.False, Serving: clusterset.True, Terminating: clusterset.True}
	ended := clusterset.Endpoint{Ready: clusterset.False, Serving: clusterset.False, Terminating: clusterset.True}
	http := clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	slice := func(port string, protocol corev1.Protocol, endpoints ...clusterset.Endpoint) clusterset.Slice {
		return clusterset.Slice{Ports: []clusterset.EndpointPort{{Name: port, Protocol: protocol}}, Endpoints: endpoints}
	}
	for name, test := range map[string]struct {
		slices []clusterset.Slice
		want   int32
	}{
		"no slices":                   {nil, 0},
		"none is ready":               {[]clusterset.Slice{slice("http", "TCP", unready, ended)}, 0},
		"one":                         {[]clusterset.Slice{slice("http", "TCP", ready, unready, ends)}, 1},
		"more are two":                {[]clusterset.Slice{slice("http", "TCP", ready, ready), slice("http", "TCP", ready)}, 2},
		"one of each slice":           {[]clusterset.Slice{slice("http", "TCP", ready), slice("http", "TCP", ready)}, 2},
		"if none is ready, the ends":  {[]clusterset.Slice{slice("http", "TCP", unready, ends)}, 1},
		"another port":                {[]clusterset.Slice{slice("admin", "TCP", ready)}, 0},
		"another protocol":            {[]clusterset.Slice{slice("http", "UDP", ready)}, 0},
		"a slice of the port as well": {[]clusterset.Slice{slice("admin", "TCP", ready), slice("http", "TCP", ready)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := clusterset.Availability{http.ID(): test.want}
			if diff := cmp.Diff(want, Available([]clusterset.Port{http}, test.slices)); diff != "" {
				t.Errorf("availability (-want +got):\n%s", diff)
			}
		})
	}
}
