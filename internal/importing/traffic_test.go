// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// near returns the view of behindGateway with a setting of all exporters.
func near(change func(*clusterset.Export)) view {
	v := behindGateway()
	for i := range v.Sources.Hub.Exports {
		change(&v.Sources.Hub.Exports[i])
	}
	v.choose(map[ports.Owner]int32{{Service: key, Cluster: "b", Port: 80}: 10000})
	return v
}

// An import with internalTrafficPolicy Local says which endpoints do not get the traffic of all nodes. spec: W4
func TestLocalTraffic(t *testing.T) {
	t.Parallel()
	const onGateways = "internalTrafficPolicy is Local, so the endpoints of b get traffic only from the nodes on which gateways run"
	const noNode = "internalTrafficPolicy is Local, and none of the endpoints is on a node of this cluster, so traffic to the cluster IP is dropped: " +
		"set internalTrafficPolicy to Cluster in the Service of the exporter that is the oldest, or export pods of this cluster too"
	for name, test := range map[string]struct {
		policy corev1.ServiceInternalTrafficPolicy
		change func(*view)
		want   []string
	}{
		"Cluster": {corev1.ServiceInternalTrafficPolicyCluster, func(*view) {}, nil},
		"of another cluster, and behind gateways": {
			corev1.ServiceInternalTrafficPolicyLocal, func(*view) {},
			[]string{"internalTrafficPolicy is Local, so the endpoints of a get no traffic: they are on no node of this cluster", onGateways},
		},
		"of another cluster, but not available, and behind gateways": {
			corev1.ServiceInternalTrafficPolicyLocal, func(v *view) { v.Sources.Hub.Slices[0].Endpoints[0].Ready = clusterset.False }, []string{onGateways},
		},
		"behind gateways": {
			corev1.ServiceInternalTrafficPolicyLocal, func(v *view) { v.Sources.Hub.Exports, v.Sources.Hub.Slices = v.Sources.Hub.Exports[1:], nil },
			[]string{onGateways},
		},
		"of another cluster": {
			corev1.ServiceInternalTrafficPolicyLocal, func(v *view) { v.Sources.Hub.Exports = v.Sources.Hub.Exports[:1] }, []string{noNode},
		},
		"gateways on nodes that are not known": {
			corev1.ServiceInternalTrafficPolicyLocal, func(v *view) {
				v.Sources.Hub.Exports, v.Sources.Hub.Slices = v.Sources.Hub.Exports[1:], nil
				v.Sources.Gateways.Slices[0].Endpoints[0].NodeName = ""
			}, []string{noNode},
		},
		"no endpoint is available": {
			corev1.ServiceInternalTrafficPolicyLocal, func(v *view) { v.Sources.Hub.Exports, v.Sources.Hub.Slices = v.Sources.Hub.Exports[:1], nil }, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := near(func(e *clusterset.Export) { e.InternalTrafficPolicy = test.policy })
			test.change(&v)
			v.choose(map[ports.Owner]int32{{Service: key, Cluster: "b", Port: 80}: 10000})
			d := decide(v)
			check.Equal(t, "reported", test.want, check.Messages(dropped(d, render.Service(d.merged, d.site))))
		})
	}
}

// An import that prefers a zone says whose endpoints have none. Gateways have the zone of their node. spec: D6
func TestZonesMissing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		distribution string
		change       func(*view)
		without      []string
	}{
		"no preference":            {"", func(*view) {}, nil},
		"neither has a zone":       {"PreferClose", func(*view) {}, []string{"a", "gateways of this cluster"}},
		"the gateway has a zone":   {"PreferSameZone", func(v *view) { v.Sources.Gateways.Slices[0].Endpoints[0].Zone = "z" }, []string{"a"}},
		"the endpoint has a zone":  {"PreferSameNode", func(v *view) { v.Sources.Hub.Slices[0].Endpoints[0].Zone = "z" }, []string{"gateways of this cluster"}},
		"a headless import":        {"PreferClose", func(v *view) { headless(v) }, nil},
		"a setting that is unused": {"PreferClose", func(v *view) { v.Unsupported = unsupportedDistribution("PreferClose") }, nil},
		"both have": {"PreferClose", func(v *view) {
			v.Sources.Gateways.Slices[0].Endpoints[0].Zone, v.Sources.Hub.Slices[0].Endpoints[0].Zone = "z", "z"
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := near(func(e *clusterset.Export) { e.TrafficDistribution = test.distribution })
			test.change(&v)
			v.choose(map[ports.Owner]int32{{Service: key, Cluster: "b", Port: 80}: 10000})
			d := decide(v)
			check.Equal(t, "without zone", test.without, render.WithoutZone(d.merged, d.site, d.slices, d.kept))
			hinted := 0
			for _, slice := range desiredSlices(d) {
				for _, endpoint := range slice.Endpoints {
					if endpoint.Hints != nil {
						hinted++
					}
				}
			}
			want := 0
			if name == "both have" {
				want = 2
			}
			check.Equal(t, "endpoints with hints", want, hinted)
		})
	}
}

func headless(v *view) {
	for i := range v.Sources.Hub.Exports {
		v.Sources.Hub.Exports[i].Type, v.Sources.Hub.Exports[i].Affinity = mcsv1beta1.Headless, clusterset.Affinity{}
	}
}

func unsupportedDistribution(value string) map[clusterset.Setting]bool {
	return map[clusterset.Setting]bool{{Field: clusterset.FieldTrafficDistribution, Value: value}: true}
}

// A slice of gateways says how many endpoints the source has if it lists more gateways than that. spec: G2, L1
func TestAvailableOfWidenedSlices(t *testing.T) {
	t.Parallel()
	for available, want := range map[int32]string{1: "1", 2: ""} {
		p := newProbed().onlyB()
		p.Sources.Hub.Exports[0].Available[http.ID()] = available
		p.gather(t).opens(map[string][]int32{firstGateway: {80}, secondGateway: {80}})
		p.reconcile(t)
		check.Equal(t, "gateways", 2, len(p.Mirrored[0].Endpoints))
		check.Equal(t, "available endpoints", want, p.Mirrored[0].Annotations[clusterset.AnnotationAvailable])
	}
}
