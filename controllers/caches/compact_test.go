// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// sliceOf returns a slice with n endpoints, managed by the given controller.
func sliceOf(manager string, endpoints int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", ResourceVersion: "7",
			Labels: map[string]string{discoveryv1.LabelManagedBy: manager, discoveryv1.LabelServiceName: "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(80))}},
	}
	for i := range endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.1.%d.%d", i/250, i%250), fmt.Sprintf("10.2.%d.%d", i/250, i%250)}[:1+i%2],
			Conditions: discoveryv1.EndpointConditions{Ready: new(i%3 > 0), Serving: new(true), Terminating: new(false)},
			Zone:       new(fmt.Sprintf("zone-%d", i%2)),
			Hostname:   new(fmt.Sprintf("web-%d", i)),
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("web-%d", i)},
		})
	}
	slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.9.9.9"}})
	return slice
}

// compactOf returns what a cache stores instead of an object.
func compactOf[T any](t *testing.T, object T) T {
	t.Helper()
	stored, err := Compact(object)
	check.Must(t, err)
	return stored.(T)
}

// other is a controller whose slices are not ours.
const other = "endpointslice-controller.k8s.io"

// TestCompact: the cache stores the used fields of a slice, and each value once.
func TestCompact(t *testing.T) {
	slice := sliceOf(other, 100)
	want := slice.DeepCopy()
	slice.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	for i := range want.Endpoints {
		want.Endpoints[i].TargetRef = nil
	}
	slice.Endpoints[100].DeprecatedTopology = map[string]string{"a": "b"}
	got := compactOf(t, slice)
	check.Equal(t, "slice", want, got)
	if first, third := got.Endpoints[0], got.Endpoints[2]; first.Zone != third.Zone || first.Conditions.Serving != third.Conditions.Serving {
		t.Error("two endpoints hold the same zone or condition twice")
	}
	got.Endpoints[0].Addresses = append(got.Endpoints[0].Addresses, "more")
	if got.Endpoints[1].Addresses[0] == "more" {
		t.Error("an endpoint's addresses run into the next one's")
	}
	check.Equal(t, "what is compact already changes", want.Endpoints[1:], compactOf(t, got).Endpoints[1:])
	if something, err := Compact("a tombstone"); something != "a tombstone" || err != nil {
		t.Errorf("something else becomes %v, %v", something, err)
	}
}

// TestCompactMirror: the cache stores of a mirrored slice what is needed to detect a difference from the desired one.
func TestCompactMirror(t *testing.T) {
	slice := sliceOf(clusterset.ManagedBy, 100)
	want := slice.DeepCopy()
	want.Endpoints = plan.Condense(want.Endpoints)
	check.Equal(t, "mirror", want, compactOf(t, slice))
	check.Equal(t, "what is compact already changes", want, compactOf(t, slice))
}

// TestCompactLost: the cache stores whether an object without our managed-by label is ours.
//
// spec: I7
func TestCompactLost(t *testing.T) {
	for manager, want := range map[string]bool{clusterset.FieldManager: true, "somebody": false} {
		service := &corev1.Service{}
		service.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: manager, FieldsV1: metav1.NewFieldsV1("{}")}}
		for range 2 { // a compact object does not change
			if _, err := Compact(service); err != nil {
				t.Fatal(err)
			}
			if got := clusterset.HasLostLabel(service); got != want || len(service.ManagedFields) > 1 {
				t.Errorf("written by %s: lost %v, want %v; managed fields %v", manager, got, want, service.ManagedFields)
			}
		}
	}
}

// TestCompactSharesNames: the names of labels and annotations, and the values that many objects have, are the same strings in all objects.
func TestCompactSharesNames(t *testing.T) {
	t.Parallel()
	object := func() *corev1.Service {
		return compactOf(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{strings.Clone(clusterset.LabelManagedBy): strings.Clone(clusterset.ManagedBy), "app": "web"},
			Annotations: map[string]string{strings.Clone("a"): "b"},
		}})
	}
	first, second := object(), object()
	want := map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy, "app": "web"}
	check.Equal(t, "labels", want, first.Labels)
	names := func(o *corev1.Service) []*byte {
		var result []*byte
		for _, all := range []map[string]string{o.Labels, o.Annotations} {
			for _, name := range slices.Sorted(maps.Keys(all)) {
				result = append(result, unsafe.StringData(name))
			}
		}
		return append(result, unsafe.StringData(o.Labels[clusterset.LabelManagedBy]))
	}
	if !slices.Equal(names(first), names(second)) {
		t.Error("two objects have copies of the same strings")
	}
}

// TestCompactTakesLess measures the memory of objects that were decoded as those in the cache are.
func TestCompactTakesLess(t *testing.T) {
	endpoints, err := sliceOf(other, 99).Marshal()
	check.Must(t, err)
	imported, err := json.Marshal(&mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Labels: onlyManaged, Annotations: map[string]string{clusterset.AnnotationDerivedService: "derived-web"}},
		Spec:       mcsv1beta1.ServiceImportSpec{Ports: []mcsv1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}, IPs: []string{"10.96.0.7"}},
		Status: mcsv1beta1.ServiceImportStatus{
			Clusters:   []mcsv1beta1.ClusterStatus{{Cluster: "a"}},
			Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now()}},
		},
	})
	check.Must(t, err)
	for name, decode := range map[string]func() any{
		"slice": func() any {
			slice := &discoveryv1.EndpointSlice{}
			check.Must(t, slice.Unmarshal(endpoints))
			return slice
		},
		"import": func() any {
			serviceImport := &mcsv1beta1.ServiceImport{}
			check.Must(t, json.Unmarshal(imported, serviceImport))
			return serviceImport
		},
	} {
		usual, less := heapOf(decode), heapOf(func() any { return compactOf(t, decode()) })
		t.Logf("%s: %d bytes, %d when compact", name, usual, less)
		if less > usual*4/5 {
			t.Errorf("%s: %d bytes, %d when compact: that is no great difference", name, usual, less)
		}
	}
}

// heapOf returns how many bytes of the heap an object takes.
func heapOf(create func() any) uint64 {
	const count = 200
	var before, after runtime.MemStats
	objects := make([]any, 0, count)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range count {
		objects = append(objects, create())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(objects)
	return (after.HeapAlloc - before.HeapAlloc) / count
}
