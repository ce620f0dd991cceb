// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// numbered returns a DNS label of the maximum length that is unique for each number.
func numbered(n int) string { return fmt.Sprintf("x%062d", n) }

// qualified returns a qualified name of the maximum length.
func qualified(n int) string { return strings.Repeat("d", 253) + "/" + numbered(n) }

// largestEndpoints returns a PublishedEndpoints as large as the schema allows.
func largestEndpoints() *hubv1alpha1.PublishedEndpoints {
	record := endpointsOf("a", testKey, "0123456789")
	for i := range hubv1alpha1.MaxServicePorts {
		record.Spec.Ports = append(record.Spec.Ports, hubv1alpha1.PublishedEndpointPort{
			Name: numbered(i), Protocol: "SCTP", Port: 80, AppProtocol: qualified(i),
		})
	}
	for g := range hubv1alpha1.MaxGroups {
		group := hubv1alpha1.EndpointGroup{Zone: numbered(g), Ready: new(true), Serving: new(true), Terminating: new(false)}
		for i := range hubv1alpha1.MaxEndpoints / hubv1alpha1.MaxGroups {
			group.Addresses = append(group.Addresses, hubv1alpha1.IPAddress(fmt.Sprintf("fd00:aaaa:aaaa:aaaa:aaaa:aaaa:%x:%x", 0x1000+g, 0x1000+i)))
			group.Hostnames = append(group.Hostnames, hubv1alpha1.Hostname(numbered(i)))
		}
		record.Spec.Groups = append(record.Spec.Groups, group)
	}
	return record
}

// largestService returns a PublishedService as large as the schema and the policies allow.
func largestService() *hubv1alpha1.PublishedService {
	const annotations = 256 << 10
	record := recordOf("a", testKey)
	record.Spec.Labels = map[string]hubv1alpha1.LabelValue{}
	record.Spec.Annotations = map[string]hubv1alpha1.AnnotationValue{}
	record.Spec.Selection = &hubv1alpha1.PublishedSelection{Labels: map[string]hubv1alpha1.LabelValue{}}
	for i := range hubv1alpha1.MaxMetadataKeys {
		key := qualified(i)
		record.Spec.Labels[key] = hubv1alpha1.LabelValue(numbered(i))
		record.Spec.Annotations[key] = hubv1alpha1.AnnotationValue(strings.Repeat("x", annotations/hubv1alpha1.MaxMetadataKeys-len(key)))
		record.Spec.Selection.Labels[key] = hubv1alpha1.LabelValue(numbered(i))
	}
	for i := range hubv1alpha1.MaxServicePorts {
		record.Spec.Ports = append(record.Spec.Ports, hubv1alpha1.PublishedPort{
			Name: numbered(i), Protocol: "SCTP", Port: int32(i + 1), AppProtocol: qualified(i),
		})
		record.Spec.Selection.TargetPorts = append(record.Spec.Selection.TargetPorts, hubv1alpha1.TargetPort(numbered(i)[:15]))
	}
	return record
}

// TestLargestRecords: the memory that a store needs for the largest records that the hub accepts. docs/security.md uses this number.
func TestLargestRecords(t *testing.T) { //nolint:paralleltest // other tests would use the heap at the same time
	const count = 10
	for name, tc := range map[string]struct {
		record client.Object
		fresh  func() client.Object
		kind   kind
		most   uint64
	}{
		"a slice":   {largestEndpoints(), func() client.Object { return &hubv1alpha1.PublishedEndpoints{} }, kindEndpoints, 220_000},
		"a service": {largestService(), func() client.Object { return &hubv1alpha1.PublishedService{} }, kindService, 420_000},
	} {
		text, err := json.Marshal(tc.record)
		check.Must(t, err)
		f := newFill(t)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range count {
			record := tc.fresh()
			check.Must(t, json.Unmarshal(text, record))
			record.SetName(strings.Replace(tc.record.GetName(), testKey.Name, fmt.Sprintf("web-%d", i), 1))
			f.watch(tc.kind, table.Update, record)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		held := (after.HeapAlloc - before.HeapAlloc) / count
		t.Logf("%s: %d bytes as JSON, %d in a store", name, len(text), held)
		if len(f.Keys()) != count || held > tc.most {
			t.Errorf("%s takes %d bytes, more than %d, or not %d are held", name, held, tc.most, count)
		}
	}
}
