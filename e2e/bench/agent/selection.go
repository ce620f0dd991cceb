// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// The full size of selection: so many members, each of which has some of the namespaces whose services are exported.
const (
	selectionSize  = 100
	allNamespaces  = 100
	concerning     = 10 // namespaces of a member
	selectionTime  = 30 * time.Second
	namespaceLabel = "namespace"
)

// design is a way to read the records of the namespaces that a member has.
type design struct {
	name string
	// selectors returns the selectors of the watches of a member with these namespaces.
	selectors func(namespaces []string) []url.Values
}

// designs are one watch of all records, as agents have, one for each namespace, and one for a set of namespaces, which the API server can
// select by labels only. The first one has no watch, and shows what the changes themselves cost.
var designs = []design{
	{"none", func([]string) []url.Values { return nil }},
	{"all", func([]string) []url.Values { return []url.Values{nil} }},
	{"fields", func(namespaces []string) []url.Values {
		var result []url.Values
		for _, ns := range namespaces {
			result = append(result, url.Values{"fieldSelector": {"spec.namespace=" + ns}})
		}
		return result
	}},
	{"labels", func(namespaces []string) []url.Values {
		return []url.Values{{"labelSelector": {namespaceLabel + " in (" + strings.Join(namespaces, ",") + ")"}}}
	}},
}

// selection measures a hub whose members read all records, or only those of their namespaces, in three ways. Events are discarded without
// decoding.
func selection(ctx context.Context, b *bench, w *world) error {
	r := &membersRun{bench: b, w: w}
	var err error
	if r.publishers, err = w.admit(ctx, b.size); err != nil {
		return err
	}
	if err := w.allowSelection(ctx); err != nil {
		return err
	}
	records, err := r.publishLabelled(ctx)
	if err != nil {
		return err
	}
	order := slices.Clone(designs)
	for round := range b.rounds {
		for _, d := range order {
			if err := r.readBy(ctx, round, d, records); err != nil {
				return fmt.Errorf("design %s: %w", d.name, err)
			}
		}
		slices.Reverse(order)
	}
	return nil
}

// allowSelection has the hub select records by the namespace of the service, and store labels of records, both of which the product does
// not need.
func (w *world) allowSelection(ctx context.Context) error {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("publishedendpoints." + hubv1alpha1.GroupVersion.Group)
	const add = `[{"op":"add","path":"/spec/versions/0/selectableFields","value":[{"jsonPath":".spec.namespace"}]}]`
	if err := w.hubClient.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, []byte(add))); err != nil {
		return err
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "metadata.hub.tombolo-mcs.io"}}
	if err := w.hubClient.Delete(ctx, binding); err != nil {
		return err
	}
	return pause(ctx, 5*time.Second) // the API server reads both
}

func namespaceOf(i int) string { return fmt.Sprintf("ns-%02d", i%allNamespaces) }

// namespacesOf returns the namespaces of the i-th member. Each namespace is in as many members as the others.
func namespacesOf(i int) []string {
	var result []string
	for j := range concerning {
		result = append(result, namespaceOf(i+j*(allNamespaces/concerning)+i/allNamespaces))
	}
	return result
}

// publishLabelled publishes a slice of ten endpoints for each service.
func (r *membersRun) publishLabelled(ctx context.Context) ([]*recordedSlice, error) {
	result := make([]*recordedSlice, r.bench.services)
	for i := range result {
		from, ns := r.publishers[i%len(r.publishers)], namespaceOf(i)
		record := &hubv1alpha1.PublishedEndpoints{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: from.id.HubNamespace(), Name: fmt.Sprintf("%s.%s.%010x", ns, serviceName(i), 0),
				Labels: map[string]string{namespaceLabel: ns},
			},
			Spec: hubv1alpha1.PublishedEndpointsSpec{
				Namespace: hubv1alpha1.NamespaceName(ns), Service: hubv1alpha1.ServiceName(serviceName(i)), AddressType: "IPv4",
				Ports:  []hubv1alpha1.PublishedEndpointPort{{Name: "http", Protocol: "TCP", Port: 8080}},
				Groups: []hubv1alpha1.EndpointGroup{{Zone: "zone-1", Ready: new(true)}},
			},
		}
		for n := range 10 {
			group := &record.Spec.Groups[0]
			group.Addresses = append(group.Addresses, hubv1alpha1.IPAddress(address(from.number, 1+n)))
		}
		result[i] = &recordedSlice{from: from, record: record}
	}
	return result, each(ctx, setupWidth, result, func(ctx context.Context, s *recordedSlice) error { return createRecords(ctx, s.from, s.record) })
}

// readBy opens the watches of a design for all members and measures the hub while endpoints change.
func (r *membersRun) readBy(ctx context.Context, round int, d design, records []*recordedSlice) error {
	watching, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	seen, began := &watchers{}, time.Now()
	numbers := map[*member]int{}
	for i, m := range r.publishers {
		numbers[m] = i
	}
	err := each(ctx, setupWidth, r.publishers, func(_ context.Context, m *member) error {
		connection, err := m.ownClient()
		if err != nil {
			return err
		}
		for _, selector := range d.selectors(namespacesOf(numbers[m])) {
			stream, err := openWatch(watching, connection, m, "publishedendpoints", &hubv1alpha1.PublishedEndpointsList{}, selector)
			if err != nil {
				return err
			}
			running.Go(func() { seen.count(stream) })
		}
		return nil
	})
	if err != nil {
		return err
	}
	opened := time.Since(began)
	before, err := r.load(ctx)
	if err != nil {
		return err
	}
	stop := startChanges(ctx, r.rate, func(ctx context.Context, i int) error {
		s := records[i%len(records)]
		s.mu.Lock()
		defer s.mu.Unlock()
		s.record.Spec.Groups[0].Addresses[0] = hubv1alpha1.IPAddress(address(s.from.number, s.from.nextAddress()))
		return s.from.remote.Update(ctx, s.record)
	})
	pauseErr := pause(ctx, scaled(selectionTime, len(r.publishers), selectionSize))
	made, err := stop()
	if err != nil || pauseErr != nil {
		return fmt.Errorf("changes: %w", err)
	}
	after, err := r.load(ctx)
	if err != nil {
		return err
	}
	seconds, used := after.at.Sub(before.at).Seconds(), after.cpu.since(before.cpu)
	name := fmt.Sprintf("Selection/members=%d", len(r.publishers))
	for unit, value := range map[string]float64{
		"cpu-percent": 100 * used["kube-apiserver"] / seconds, "watch-events/s": (after.events - before.events) / seconds,
		"KB/s": float64(seen.bytes.Load()) / 1000 / seconds, "changes/s": made,
	} {
		r.Add(name, d.name, unit, value)
	}
	r.log("round %d of %d, %s: opened in %.1f s; %.1f changes/s, %.0f%% of a core, %.0f events/s, %.0f KB/s", round+1, r.rounds, d.name,
		opened.Seconds(), made, 100*used["kube-apiserver"]/seconds, (after.events-before.events)/seconds, float64(seen.bytes.Load())/1000/seconds)
	return nil
}
