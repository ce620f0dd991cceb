// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestDeletedWhileHubIsUnreachable: an import that is deleted by hand is restored from what is left of it, with the same addresses,
// though the hub is unreachable and the agent has started since. What no import can be made of stays as it is.
//
// spec: I5, I7, E3
func TestDeletedWhileHubIsUnreachable(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.Start(t)
	stop := b.Start(t)
	ns := world.Namespace(t, a, b)
	type held struct {
		k        key
		imported *mcsv1beta1.ServiceImport
		derived  *corev1.Service
		mirrored []discoveryv1.EndpointSlice
	}
	all := map[string]held{}
	for _, name := range []string{"import", "import-and-service", "import-and-slices", "all-but-slices"} {
		h := held{k: key{Namespace: ns, Name: name}}
		service := world.Service(h.k, world.Port("", 80))
		a.ExportService(t, service, world.Slice(service, "v4", "10.1.0.1"))
		b.Endpoints(t, h.k, "a 10.1.0.1:unnamed:8080")
		h.imported, h.derived = b.Imported(t, h.k)
		var err error
		h.mirrored, err = b.Mirrored(t.Context(), h.k)
		lab.Must(t, err)
		all[name] = h
	}
	w.settled(t)
	lab.Must(t, w.Hub.APIServer.Stop(t.Context()))
	stop()
	for name, objects := range map[string][]client.Object{
		"import":             {all["import"].imported},
		"import-and-service": {all["import-and-service"].derived}, // its import goes while the agent runs
		"import-and-slices":  {all["import-and-slices"].imported, &all["import-and-slices"].mirrored[0]},
		"all-but-slices":     {all["all-but-slices"].imported, all["all-but-slices"].derived},
	} {
		for _, object := range objects {
			lab.Must(t, b.Delete(t.Context(), object.DeepCopyObject().(client.Object)))
			t.Logf("%s: deleted %T", name, object)
		}
	}
	b.Start(t)
	same := func(name string, uid bool) {
		t.Helper()
		h := all[name]
		imported, derived := b.Imported(t, h.k)
		lab.Equal(t, fmt.Sprintf("%s: the import's spec", name), h.imported.Spec, imported.Spec)
		if diff := cmp.Diff(h.derived.Spec.ClusterIPs, derived.Spec.ClusterIPs); diff != "" || uid && h.derived.UID != derived.UID {
			t.Errorf("%s: the derived Service is another (-before +after):\n%s", name, diff)
		}
	}
	same("import", true)
	same("import-and-slices", true)
	same("import-and-service", false)
	again, _ := b.Imported(t, all["import-and-service"].k)
	lab.Must(t, b.Delete(t.Context(), again))
	b.restored(t, "an import deleted under a running agent", again)
	b.Endpoints(t, all["import"].k, "a 10.1.0.1:unnamed:8080")
	b.Endpoints(t, all["all-but-slices"].k, "a 10.1.0.1:unnamed:8080")
	lab.Must(t, world.Absent(b.Get(t.Context(), all["all-but-slices"].k, &mcsv1beta1.ServiceImport{})))

	lab.Must(t, w.Hub.APIServer.Start(t.Context()))
	for name, h := range all {
		b.Endpoints(t, h.k, "a 10.1.0.1:unnamed:8080")
		if name != "all-but-slices" {
			same(name, name != "import-and-service")
		}
		b.Imported(t, h.k)
	}
	lab.Must(t, a.Delete(t.Context(), world.Export(all["import"].k)))
	b.Gone(t, all["import"].k)
}

// TestServiceRecreated: while the Service of a ServiceExport is missing, the export's record stays on the hub, inactive, so that the
// export keeps its age; others import nothing of it.
//
// spec: E6, R3, R8
func TestServiceRecreated(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.Start(t)
	b.Start(t)
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	service, _ := a.ExportWeb(t, k, "10.1.0.1")
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	record := &hubv1alpha1.PublishedService{}
	onHub := key{Namespace: "member-a", Name: k.Namespace + "." + k.Name}
	lab.Must(t, w.HubClient.Get(t.Context(), onHub, record))
	w.later(t, record.CreationTimestamp)

	lab.Must(t, a.Delete(t.Context(), service.DeepCopy()))
	a.Condition(t, k, valid, metav1.ConditionFalse, "NoService")
	b.Gone(t, k)
	inactive := &hubv1alpha1.PublishedService{}
	lab.Must(t, w.HubClient.Get(t.Context(), onHub, inactive))
	if !inactive.Spec.Inactive || inactive.UID != record.UID {
		t.Errorf("the record is %+v, want that of before, inactive", inactive)
	}
	if left := w.publishedEndpoints(t, "a", k); len(left) > 0 {
		t.Errorf("endpoints are left on the hub: %v", left)
	}
	service.ResourceVersion = ""
	lab.Must(t, a.Create(t.Context(), service))
	lab.Must(t, client.IgnoreAlreadyExists(a.Create(t.Context(), world.Slice(service, "v4", "10.1.0.1"))))
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	lab.Must(t, w.HubClient.Get(t.Context(), onHub, inactive))
	if inactive.Spec.Inactive || inactive.UID != record.UID {
		t.Errorf("the record is %+v, want that of before", inactive)
	}

	lab.Must(t, a.Delete(t.Context(), service.DeepCopy())) // and then its ServiceExport
	a.Condition(t, k, valid, metav1.ConditionFalse, "NoService")
	lab.Must(t, a.Delete(t.Context(), world.Export(k)))
	w.noRecords(t, "a", k)
	b.Gone(t, k)
}
