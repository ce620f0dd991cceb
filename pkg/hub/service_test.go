// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// One member cannot flood the others through one service, and is named where it tries. The others' part stays whole.
func TestContributionIsBounded(t *testing.T) {
	t.Parallel()
	web := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	f := newFill(t)
	f.list(kindMember, memberOf("own"), memberOf("a"), memberOf("b"))
	f.list(kindHeartbeat)
	var services, endpoints []any
	for id, slices := range map[clusterset.ClusterID]int{"a": 102, "b": 1} {
		services = append(services, onTheHub(t, EncodeService(clusterset.Export{
			Cluster: id, Key: web, Type: mcsv1beta1.Headless, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		})))
		for i := range slices {
			slice := clusterset.Slice{Cluster: id, ID: fmt.Sprintf("s%03d", i), AddressType: discoveryv1.AddressTypeIPv4}
			for j := range 100 {
				slice.Endpoints = append(slice.Endpoints, clusterset.Endpoint{Addresses: []string{fmt.Sprintf("10.1.%d.%d", i, j)}})
			}
			endpoints = append(endpoints, onTheHub(t, EncodeEndpoints(web, slice)))
		}
	}
	f.list(kindService, services...)
	f.list(kindEndpoints, endpoints...)

	got := f.Service(web)
	count := map[clusterset.ClusterID]int{}
	for _, slice := range got.Slices {
		count[slice.Cluster]++
	}
	if count["a"] != 100 || count["b"] != 1 {
		t.Errorf("slices of each member: %v, want 100 of a and 1 of b", count)
	}
	if len(got.Refused) != 1 || !strings.HasPrefix(got.Refused[0].Error(), "refused of what cluster a contributes to service shop/web: 2 of 102 slices") {
		t.Errorf("refused: %v", got.Refused)
	}
}
