// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset/clustersettest"
)

// testAccepted: whatever clusters export, and whatever they export next, a real API server accepts what is rendered, and has then what
// was rendered: the next plan is empty. A cluster without IPv6 does so too, and both names of a derived Service do.
//
// spec: R1, R2, R5, I3, I4, I5, I6, D1, D2, D3, D4, D6, D7, D8, C3
func testAccepted(t *testing.T, members ...*member) {
	var importers []*importer
	for _, m := range members {
		world.CreateNamespace(t, clustersettest.Extreme().Key.Namespace, m)
		importers = append(importers, &importer{Client: m, families: clusterset.FamiliesOf(m.Cluster.ServiceCIDRs)})
	}
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.SampledFrom(importers).Draw(t, "importer")
		i.clear(ctx, t)
		service := clustersettest.Extreme().Key.Name
		names := []string{clusterset.ShortDerivedName(service), clusterset.LongDerivedName(service)}
		i.take(ctx, t, i.take(ctx, t, holding{derivedName: rapid.SampledFrom(names).Draw(t, "derived name")}))
		i.clear(ctx, t)
	})
}

// importer is a cluster in which rendered objects are written.
type importer struct {
	client.Client
	families []corev1.IPFamily
}

// holding is what a cluster holds of the import.
type holding struct {
	// derivedName is what the derived Service is called, given once.
	derivedName string

	services []*corev1.Service
	slices   []*discoveryv1.EndpointSlice
	imports  []*mcsv1beta1.ServiceImport
}

func (h holding) serviceImport() *mcsv1beta1.ServiceImport {
	if len(h.imports) == 0 {
		return nil
	}
	return h.imports[0]
}

// clear removes what an earlier check left.
func (i *importer) clear(ctx context.Context, t *rapid.T) {
	in := client.InNamespace(clustersettest.Extreme().Key.Namespace)
	for _, kind := range []client.Object{&mcsv1beta1.ServiceImport{}, &discoveryv1.EndpointSlice{}, &corev1.Service{}} {
		if err := i.DeleteAllOf(ctx, kind, in); err != nil {
			t.Fatal(err)
		}
	}
}

// take draws exports and makes what the cluster holds what is rendered of them. It returns what the cluster holds then.
func (i *importer) take(ctx context.Context, t *rapid.T, before holding) holding {
	exports := clustersettest.Extreme().Exports(t)
	for _, e := range exports {
		if err := record.Check(e); err != nil {
			t.Fatalf("%+v is no valid export: %v", e, err)
		}
	}
	merged, _ := merge.Merge(exports)
	site := i.site(before, merged)
	service, mirrored := render.Service(merged, site), render.Slices(merged, site, drawSlices(t, exports))
	writer := apply.ToMember(i, i)
	after := holding{
		derivedName: before.derivedName,
		services:    carryOut(ctx, t, writer, before.services, plan.Service(service, before.services)),
		slices:      carryOut(ctx, t, writer, before.slices, plan.EndpointSlices(mirrored, before.slices)),
	}
	if len(after.services) > 0 && len(after.services[0].Spec.ClusterIPs) < len(service.Spec.ClusterIPs) { // the second address comes after the first
		after.services = carryOut(ctx, t, writer, after.services, plan.Service(service, after.services))
	}
	serviceImport := render.ServiceImport(merged, site, clusterIPs(after.services))
	after.imports = carryOut(ctx, t, writer, before.imports, plan.ServiceImport(serviceImport, before.serviceImport()))
	status := render.ImportStatus(merged)
	status.Conditions = []metav1.Condition{conditions.Conflict(merged)} // the longest that there is
	status.Conditions[0].LastTransitionTime = metav1.NewTime(clustersettest.Extreme().Start)
	after.imports = carryOut(ctx, t, writer, after.imports, plan.ServiceImportStatus(status, after.serviceImport()))

	nothing(t, plan.Service(service, after.services))
	nothing(t, plan.EndpointSlices(mirrored, after.slices))
	nothing(t, plan.ServiceImport(serviceImport, after.serviceImport()))
	nothing(t, plan.ServiceImportStatus(status, after.serviceImport()))
	if service != nil {
		got := after.services[0].Spec
		if diff := cmp.Diff(service.Spec.Selector, got.Selector) + cmp.Diff(service.Spec.Ports, got.Ports); diff != "" {
			t.Errorf("selector and ports of the derived Service (-rendered +got):\n%s", diff)
		}
		if len(before.services) > 0 {
			stays(t, before.services[0], after.services[0])
		}
	}
	return after
}

// stays fails the test where a derived Service has another address than before, or is another without need: one of the other
// kind, or one whose selector goes and takes the endpoints along that it has found.
func stays(t *rapid.T, before, after *corev1.Service) {
	if isHeadless(before) != isHeadless(after) {
		return
	}
	replaced := len(before.Spec.Selector) > 0 && len(after.Spec.Selector) == 0
	if (before.UID != after.UID) != replaced || before.Spec.ClusterIP != after.Spec.ClusterIP {
		t.Errorf("the derived Service was %s with %v, selecting %v, and is %s with %v, selecting %v",
			before.UID, before.Spec.ClusterIPs, before.Spec.Selector, after.UID, after.Spec.ClusterIPs, after.Spec.Selector)
	}
}

// site returns what controllers/imports makes of what a cluster holds.
func (i *importer) site(held holding, merged merge.Merged) render.Site {
	site := render.Site{IPFamilies: i.families, DerivedName: held.derivedName}
	if s := held.serviceImport(); s != nil && s.Spec.Type == mcsv1beta1.ClusterSetIP && merged.Type == mcsv1beta1.ClusterSetIP && len(s.Spec.IPs) > 0 {
		site.IPs, site.ExistingFamilies = s.Spec.IPs, s.Spec.IPFamilies
	}
	for _, service := range held.services {
		if isHeadless(service) == (merged.Type == mcsv1beta1.Headless) {
			site.ExistingFamilies = service.Spec.IPFamilies
		}
	}
	return site
}

func isHeadless(s *corev1.Service) bool { return s.Spec.ClusterIP == corev1.ClusterIPNone }

// clusterIPs returns the addresses of the derived Service, if there is one and it has any.
func clusterIPs(services []*corev1.Service) []string {
	if len(services) == 0 || isHeadless(services[0]) {
		return nil
	}
	return services[0].Spec.ClusterIPs
}

// drawSlices draws EndpointSlices that exporters may have for their Services: pods may lack a named port, and a slice
// written by hand may have ports that the Service has not.
func drawSlices(t *rapid.T, exports []clusterset.Export) []clusterset.Slice {
	var drawn []clusterset.Slice
	for n, export := range exports {
		family := rapid.SampledFrom(export.IPFamilies).Draw(t, "family")
		source := clusterset.Slice{Cluster: export.Cluster, ID: clusterset.SliceID(string(family)), AddressType: discoveryv1.AddressType(family)}
		for _, port := range append(slices.Clone(export.Ports), clusterset.Port{Name: "by-hand", Protocol: corev1.ProtocolTCP}) {
			if rapid.IntRange(0, 4).Draw(t, "has port") > 0 {
				source.Ports = append(source.Ports, clusterset.EndpointPort{
					Name: port.Name, Protocol: port.Protocol, AppProtocol: port.AppProtocol,
					Port: rapid.SampledFrom([]int32{8080, 0, 65535}).Draw(t, "target port"), // 0: left open
				})
			}
		}
		source.Endpoints = rapid.SliceOfN(drawEndpoint(n+1, family), 0, 3).Draw(t, "endpoints")
		drawn = append(drawn, source)
	}
	return drawn
}

func drawEndpoint(network int, family corev1.IPFamily) *rapid.Generator[clusterset.Endpoint] {
	format := "10.%d.0.%d"
	if family == corev1.IPv6Protocol {
		format = "fd00:%d::%d"
	}
	condition := rapid.SampledFrom([]clusterset.Condition{clusterset.Unset, clusterset.True, clusterset.False})
	return rapid.Custom(func(t *rapid.T) clusterset.Endpoint {
		endpoint := clusterset.Endpoint{
			Hostname: rapid.SampledFrom([]string{"", "web-0", "0"}).Draw(t, "hostname"),
			Zone:     rapid.SampledFrom([]string{"", "eu-1a", "EU_1.b"}).Draw(t, "zone"),
			NodeName: rapid.SampledFrom([]string{"", "node-1.example.com"}).Draw(t, "node"),
			Ready:    condition.Draw(t, "ready"), Serving: condition.Draw(t, "serving"), Terminating: condition.Draw(t, "terminating"),
		}
		for _, host := range rapid.SliceOfNDistinct(rapid.IntRange(1, 9), 1, 2, rapid.ID).Draw(t, "addresses") {
			endpoint.Addresses = append(endpoint.Addresses, fmt.Sprintf(format, network, host))
		}
		return endpoint
	})
}

// carryOut returns what the cluster holds of a kind after these changes, as the API server answered them.
func carryOut[T client.Object](ctx context.Context, t *rapid.T, w apply.Writer, held []T, changes []plan.Change[T]) []T {
	written, err := apply.Do(ctx, w, changes)
	if err != nil {
		t.Fatal(err)
	}
	untouched := slices.DeleteFunc(slices.Clone(held), func(h T) bool {
		return slices.ContainsFunc(changes, func(c plan.Change[T]) bool { return c.Object.GetName() == h.GetName() })
	})
	return append(untouched, written...)
}

// nothing fails the test where something is left to do.
func nothing[T client.Object](t *rapid.T, changes []plan.Change[T]) {
	for _, change := range changes {
		t.Errorf("%s is still to do (-is +should be):\n%s", change.Verb, cmp.Diff(change.Existing, change.Object))
	}
}
