// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func ownWeb() clusterset.Export {
	return clusterset.Export{
		Cluster: "own", Key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}, Age: epoch.Add(-time.Hour),
		Type: mcsv1beta1.ClusterSetIP, Ports: []clusterset.Port{{Name: "http", Protocol: "TCP", Port: 80}},
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Affinity: clusterset.Affinity{Mode: corev1.ServiceAffinityNone},
		Labels: map[string]string{"team": "blue"},
	}
}

// spec: C7, R7
func TestAcceptable(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range hubv1alpha1.MaxMetadataKeys + 1 {
		many[fmt.Sprint("key-", i)] = ""
	}
	tests := map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"legal":              {labels: map[string]string{"team": "red"}, annotations: map[string]string{"any": "te\nxt"}},
		"no label":           {labels: map[string]string{"not a label!": ""}, want: `label "not a label!" is illegal or reserved`},
		"no value":           {labels: map[string]string{"team": "-red"}, want: `label "team" is illegal or reserved`},
		"no annotation":      {annotations: map[string]string{"!": ""}, want: `annotation "!" is illegal, too long or reserved`},
		"too many of either": {annotations: many, want: "it has more than 64 labels or annotations"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			export := ownWeb()
			export.Labels, export.Annotations = test.labels, test.annotations
			got := ""
			if err := Acceptable(export); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("it is refused because %q, want %q", got, test.want)
			}
		})
	}
}

// TestOwnExport: our own record says what others take from it, with the age that they take it for.
//
// spec: C7, R7, R8
func TestOwnExport(t *testing.T) {
	t.Parallel()
	f := newFill(t)
	record := EncodeService(ownWeb())
	record.CreationTimestamp = metav1.NewTime(epoch)
	see := func(step string, want *clusterset.Export) {
		t.Helper()
		if diff := cmp.Diff(want, f.Service(ownWeb().Key).OwnExport, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	see("without a record", nil)
	f.list(kindService, record)
	see("without a Member", nil)
	f.list(kindMember, memberOf("own"))
	want := ownWeb()
	want.Age = epoch.Add(-10 * time.Minute)
	see("with both", &want)
	refused := record.DeepCopy()
	refused.Spec.Labels = map[string]hubv1alpha1.LabelValue{"not a label!": ""}
	f.watch(kindService, table.Update, refused)
	see("with a record that others refuse", nil)
	other := memberOf("own")
	other.Spec.ClusterID = "another"
	f.watch(kindService, table.Update, record)
	f.watch(kindMember, table.Update, other)
	see("with a Member of another", nil)
}

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
