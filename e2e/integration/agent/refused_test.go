// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// refusedSpecs are what no hub stores of a ServiceExport, each for another reason.
var refusedSpecs = map[string]mcsv1beta1.ServiceExportSpec{
	"too-long":    {ExportedAnnotations: map[string]string{"note": strings.Repeat("x", 4097)}},
	"no-value":    {ExportedLabels: map[string]string{"team": "no label has spaces"}},
	"no-key":      {ExportedLabels: map[string]string{"no key": "x"}},
	"too-many":    {ExportedLabels: manyLabels(100)},
	"no-note-key": {ExportedAnnotations: map[string]string{"no key": "x"}},
}

func manyLabels(n int) map[string]string {
	result := map[string]string{}
	for i := range n {
		result[fmt.Sprint("label-", i)] = "x"
	}
	return result
}

// TestRefusedForGood: exports that can never be stored do not keep the publication Partial, so that a withdrawal that an importer has
// missed is confirmed. After a refused update the older record stays, and is reported; if the hub loses it, importers keep what they have.
//
// spec: E3, C2
func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	ns := world.Namespace(t, a, b)
	world.CreateNamespace(t, ns+"-tenant", a, b)
	w.ChangeMember(t, "a", func(s *hubv1alpha1.MemberSpec) {
		s.Namespaces = []hubv1alpha1.NamespaceName{hubv1alpha1.NamespaceName(ns)}
	})
	stopA, stopB := a.Start(t), b.Start(t)
	web, older, large := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "older"}, key{Namespace: ns, Name: "large"}
	a.ExportWeb(t, web, "10.1.0.1")
	a.ExportWeb(t, older, "10.1.0.2")
	b.Endpoints(t, web, "a 10.1.0.1:http:8080")
	b.Endpoints(t, older, "a 10.1.0.2:http:8080")

	// A tenant exports what can never be stored, and changes an export into such a one.
	for name, spec := range refusedSpecs {
		k := key{Namespace: ns, Name: name}
		lab.Must(t, a.Create(t.Context(), world.Service(k, world.Port("http", 80))))
		lab.Must(t, a.Create(t.Context(), &mcsv1beta1.ServiceExport{ObjectMeta: world.Export(k).ObjectMeta, Spec: spec}))
		a.Condition(t, k, ready, metav1.ConditionFalse, "Failed")
	}
	forbidden := key{Namespace: ns + "-tenant", Name: "forbidden"}
	a.ExportWeb(t, forbidden, "10.1.0.3")
	a.Condition(t, forbidden, ready, metav1.ConditionFalse, "NotAllowed")
	lab.Must(t, a.Create(t.Context(), largeSlice(large)))
	a.ExportWeb(t, large, "10.1.0.4")
	a.Condition(t, large, ready, metav1.ConditionFalse, "Failed")
	b.Endpoints(t, large, "a 10.1.0.4:http:8080") // the other slice is published
	export := world.Export(older)
	world.Update(t, a, older, export, func() { export.Spec = refusedSpecs["too-long"] })
	a.Condition(t, older, ready, metav1.ConditionFalse, "Failed")
	a.Condition(t, older, conditions.TypeOutdated, metav1.ConditionTrue, conditions.ReasonUpdateRefused)

	// b misses a withdrawal, and a's publication begins anew.
	stopB()
	lab.Must(t, a.Delete(t.Context(), world.Export(web)))
	w.noRecords(t, "a", web)
	stopA()
	stopA = a.Start(t)
	world.Eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })
	stopB = b.Start(t)
	b.Gone(t, web)
	b.Endpoints(t, older, "a 10.1.0.2:http:8080")

	// The hub loses the older record, which it would refuse to store again.
	stopA()
	stopB()
	lab.Must(t, w.HubClient.DeleteAllOf(t.Context(), &hubv1alpha1.PublishedService{}, client.InNamespace("member-a")))
	lab.Must(t, w.HubClient.DeleteAllOf(t.Context(), &hubv1alpha1.PublishedEndpoints{}, client.InNamespace("member-a")))
	w.noRecords(t, "a", older, large)
	stopA = a.Start(t)
	a.Condition(t, older, conditions.TypeOutdated, metav1.ConditionTrue, conditions.ReasonRecordLost)
	stopA() // that it has been stored is known after another restart too
	a.Start(t)
	b.Start(t)
	b.ImportCondition(t, older, conditions.TypeDeletionPending, metav1.ConditionTrue, conditions.ReasonAwaitingConfirmation, "")
	for range 2 {
		a.beats(t, w)
		lab.Must(t, a.says(t.Context(), w, hubv1alpha1.PublicationPartial))
	}
	b.Endpoints(t, older, "a 10.1.0.2:http:8080")
	world.Update(t, a, older, export, func() { export.Spec = mcsv1beta1.ServiceExportSpec{} })
	a.Condition(t, older, ready, metav1.ConditionTrue, "Exported")
	b.WithoutCondition(t, older, conditions.TypeDeletionPending)
	world.Eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })
	if found := world.Read(t, a, older, &mcsv1beta1.ServiceExport{}); conditions.WasStored(found.Status.Conditions) && len(found.Status.Conditions) != 3 {
		t.Errorf("an export that is stored has the conditions %+v", found.Status.Conditions)
	}
}

// largeSlice returns a slice of a Service with more addresses than a record may have.
func largeSlice(k key) *discoveryv1.EndpointSlice {
	result := world.Slice(world.Service(k, world.Port("http", 80)), "large")
	for i := range 11 {
		endpoint := discoveryv1.Endpoint{}
		for j := range 100 {
			endpoint.Addresses = append(endpoint.Addresses, fmt.Sprintf("10.1.%d.%d", 10+i, j+1))
		}
		result.Endpoints = append(result.Endpoints, endpoint)
	}
	return result
}
