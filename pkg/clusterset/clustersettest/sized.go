// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersettest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// perSlice is the number of endpoints that Kubernetes' controller puts into a slice.
const perSlice = 100

// Size is the size of a service.
type Size struct{ Exporters, Endpoints int }

// Sizes returns the sizes for benchmarks.
func Sizes() []Size {
	return []Size{{1, 10}, {1, 1000}, {10, 10}, {10, 1000}}
}

// String returns a name for a benchmark.
func (s Size) String() string {
	return fmt.Sprintf("exporters=%d/endpoints=%d", s.Exporters, s.Endpoints)
}

// Exports returns the exports of a typical service of this size: two ports, a few labels and annotations, no conflicts.
func (s Size) Exports() []clusterset.Export {
	result := make([]clusterset.Export, 0, s.Exporters)
	for i := range s.Exporters {
		result = append(result, clusterset.Export{
			Cluster: sizedCluster(i),
			Key:     clusterset.ServiceKey{Namespace: "shop", Name: "checkout"},
			Age:     time.Date(2026, time.January, 1, 0, i, 0, 0, time.UTC),
			Type:    mcsv1beta1.ClusterSetIP,
			Ports: []clusterset.Port{
				{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, AppProtocol: "http"},
				{Name: "metrics", Protocol: corev1.ProtocolTCP, Port: 9090},
			},
			IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol},
			Affinity:              clusterset.Affinity{Mode: corev1.ServiceAffinityNone},
			InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicyCluster,
			Labels:                map[string]string{"team": "payments", "example.com/tier": "1"},
			Annotations:           map[string]string{"example.com/owner": "payments@example.com"},
		})
	}
	return result
}

// Slices returns the slices of all exporters. The endpoints are distributed evenly among exporters and three zones, nine of ten are
// ready, and slices are as full as Kubernetes fills them.
func (s Size) Slices() []clusterset.Slice {
	var result []clusterset.Slice
	for i := range s.Exporters {
		var slice *clusterset.Slice
		for e := range s.Endpoints / s.Exporters {
			if e%perSlice == 0 {
				result = append(result, clusterset.Slice{
					Cluster: sizedCluster(i), ID: clusterset.SliceID(fmt.Sprintf("checkout-%d", e)), AddressType: discoveryv1.AddressTypeIPv4,
					Ports: []clusterset.EndpointPort{
						{Name: "http", Protocol: corev1.ProtocolTCP, Port: 8080, AppProtocol: "http"},
						{Name: "metrics", Protocol: corev1.ProtocolTCP, Port: 9090},
					},
				})
				slice = &result[len(result)-1]
			}
			slice.Endpoints = append(slice.Endpoints, sizedEndpoint(i, e))
		}
	}
	return result
}

// SizedNetwork is the range of all addresses that Slices returns.
const SizedNetwork = "10.0.0.0/8"

func sizedEndpoint(cluster, e int) clusterset.Endpoint {
	ready := clusterset.True
	if e%10 == 9 {
		ready = clusterset.False
	}
	return clusterset.Endpoint{
		Addresses: []string{fmt.Sprintf("10.%d.%d.%d", cluster+1, e/250, e%250+1)}, Zone: fmt.Sprintf("zone-%d", e%3),
		Ready: ready, Serving: ready, Terminating: clusterset.False,
	}
}

func sizedCluster(i int) clusterset.ClusterID {
	return clusterset.ClusterID(fmt.Sprintf("cluster-%d", i))
}
