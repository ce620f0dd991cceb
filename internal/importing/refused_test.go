// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const quota = "exceeded quota: few, requested: services=1, used: services=5, limited: services=5"

// errRefused is the error of a refused write.
var errRefused = errors.New("refused")

// refusing returns what refuses the changes of one kind of object.
func refusing(kind string, verbs ...plan.Verb) func(plan.Change[plan.Object]) *Refused {
	return func(change plan.Change[plan.Object]) *Refused {
		if clusterset.KindOf(change.Object) != kind || !slices.Contains(verbs, change.Verb) {
			return nil
		}
		return &Refused{Kind: Forbidden, Reason: quota, Err: errRefused}
	}
}

// observedOf returns what is observed of a service that cluster a exports, with endpoints.
func observedOf(exports ...clusterset.Export) Observed {
	o := Observed{
		Cluster: "own", Namespace: NamespaceAllowed, Families: []corev1.IPFamily{corev1.IPv4Protocol}, Policies: liveness.DefaultPolicies(),
		States: map[clusterset.ClusterID]liveness.State{}, Now: time.Unix(1000, 123456789),
		Sources: sources.Sources{Key: key, Hub: sources.Hub{Exports: exports, Listed: true, LocalMember: &hubv1alpha1.Member{}}},
	}
	for _, export := range exports {
		o.States[export.Cluster] = liveness.Live
		o.Sources.Hub.Slices = append(o.Sources.Hub.Slices, sliceOf(export, "10.1.0.1"))
	}
	return o
}

func sliceOf(export clusterset.Export, address string) clusterset.Slice {
	slice := clusterset.Slice{Cluster: export.Cluster, ID: "0", AddressType: "IPv4", Endpoints: []clusterset.Endpoint{{Addresses: []string{address}}}}
	for _, port := range export.Ports {
		slice.Ports = append(slice.Ports, clusterset.EndpointPort{Name: port.Name, Protocol: port.Protocol, Port: 8080})
	}
	return slice
}

// addressesOf returns the addresses of the mirrored slices.
func addressesOf(o Observed) string {
	var result []string
	for _, slice := range o.Mirrored {
		for _, endpoint := range slice.Endpoints {
			result = append(result, endpoint.Addresses...)
		}
	}
	return strings.Join(result, " ")
}

// TestRefusedObjects: whatever object is refused, what needs no refused write goes on, the import is not Ready, an Event says so, and the
// error of the write decides about the next attempt.
//
// spec: C6, E3
func TestRefusedObjects(t *testing.T) {
	t.Parallel()
	rolled := func(o *Observed) { o.Sources.Hub.Slices[0] = sliceOf(o.Sources.Hub.Exports[0], "10.1.0.2") }
	affinity := func(o *Observed) {
		o.Sources.Hub.Exports[0].Affinity = clusterset.Affinity{Mode: corev1.ServiceAffinityClientIP}
		rolled(o)
	}
	renamed := func(o *Observed) {
		o.Sources.Hub.Exports[0] = exportOf("a", 1, clusterset.Port{Name: "web", Protocol: corev1.ProtocolTCP, Port: 80})
		rolled(o)
	}
	for name, test := range map[string]struct {
		kind   string
		verbs  []plan.Verb
		change func(*Observed) // nil: the import is new
		// addresses are those of the mirrored slices at the end.
		addresses string
		// noImport: the import has no conditions.
		noImport bool
		part     string
	}{
		"derived Service of a new import":    {"Service", []plan.Verb{plan.Create}, nil, "10.1.0.1", false, "Service shop/derived-43254079"},
		"derived Service, pods and affinity": {"Service", []plan.Verb{plan.Update}, affinity, "10.1.0.2", false, "Service shop/derived-43254079"},
		"derived Service, pods and a port":   {"Service", []plan.Verb{plan.Update}, renamed, "10.1.0.2", false, "Service shop/derived-43254079"},
		"slice of a new import":              {"EndpointSlice", []plan.Verb{plan.Create}, nil, "", false, "EndpointSlice shop/derived-43254079-a-0"},
		"slice of rolled pods":               {"EndpointSlice", []plan.Verb{plan.Update}, rolled, "10.1.0.1", false, "EndpointSlice shop/derived-43254079-a-0"},
		"slice of a renamed port":            {"EndpointSlice", []plan.Verb{plan.Update}, renamed, "10.1.0.1", false, "EndpointSlice shop/derived-43254079-a-0"},
		"slice to delete":                    {"EndpointSlice", []plan.Verb{plan.Delete}, func(o *Observed) { o.Sources.Hub.Slices = nil }, "10.1.0.1", false, "EndpointSlice shop/derived-43254079-a-0"},
		"ServiceImport of a new import":      {"ServiceImport", []plan.Verb{plan.Create}, nil, "10.1.0.1", true, "ServiceImport shop/web"},
		"ServiceImport, pods and affinity":   {"ServiceImport", []plan.Verb{plan.Update}, affinity, "10.1.0.2", false, "ServiceImport shop/web"},
		"status of the ServiceImport of an import": {
			"ServiceImport",
			[]plan.Verb{plan.UpdateStatus},
			func(o *Observed) { o.Sources.Hub.Exports = append(o.Sources.Hub.Exports, exportOf("b", 2, http)) },
			"10.1.0.1", true, "ServiceImport shop/web",
		},
		"ServiceImport that is withdrawn, and its Service": {
			"Service", []plan.Verb{plan.Delete}, func(o *Observed) { o.Sources.Hub.Exports, o.Sources.Hub.Slices = nil, nil }, "", false, "Service shop/derived-43254079",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, server := observedOf(exportOf("a", 1, http)), &apiServer{}
			if test.change != nil {
				server.settle(t, &o)
				test.change(&o)
			}
			server.refuse = refusing(test.kind, test.verbs...)
			p := server.settle(t, &o)
			check.Equal(t, "addresses", test.addresses, addressesOf(o))
			if !errors.Is(p.Err(), errRefused) {
				t.Errorf("error %v", p.Err())
			}
			want := test.part + " cannot be written: " + quota + "; raise the quota, or change the rights or the policy that refuse it."
			event := p.Events[len(p.Events)-1]
			check.Equal(t, "Event", []any{"ImportRefused", want, true}, []any{event.Reason, event.Note, event.IsState})
			if test.noImport {
				return
			}
			ready := meta.FindStatusCondition(o.ServiceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
			check.Equal(t, "Ready", []any{metav1.ConditionFalse, want}, []any{ready.Status, ready.Message})

			o.Refused, server.refuse = nil, nil // it is gathered again
			p = server.settle(t, &o)
			check.Must(t, p.Err())
			if p.IsImported {
				ready = meta.FindStatusCondition(o.ServiceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
				check.Equal(t, "Ready when it is accepted", metav1.ConditionTrue, ready.Status)
			}
		})
	}
}

// TestChangedByAPolicy: labels that a policy adds are its own, and are neither repaired nor reported. If it changes a field of the import, the
// import says so, and the write is repeated until the policy is gone.
//
// spec: C6
func TestChangedByAPolicy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(plan.Object)
		ready  metav1.ConditionStatus
	}{
		"a label": {func(object plan.Object) {
			labels := map[string]string{"policy": "x"}
			for k, v := range object.GetLabels() {
				labels[k] = v
			}
			object.SetLabels(labels)
		}, metav1.ConditionTrue},
		"the affinity": {func(object plan.Object) {
			if service, ok := object.(*corev1.Service); ok {
				service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
			}
		}, metav1.ConditionFalse},
		"a label of ours": {func(object plan.Object) {
			if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
				slice.Labels = map[string]string{discoveryv1.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: "web", mcsv1beta1.LabelSourceCluster: "a"}
			}
		}, metav1.ConditionFalse},
		"the addresses": {func(object plan.Object) {
			if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
				slice.Endpoints[0].Addresses = []string{"10.9.9.9"}
			}
		}, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, server := observedOf(exportOf("a", 1, http)), &apiServer{change: test.change}
			p := server.settle(t, &o)
			ready := meta.FindStatusCondition(o.ServiceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
			check.Equal(t, "Ready: "+ready.Message, test.ready, ready.Status)
			check.Equal(t, "it is repeated", test.ready == metav1.ConditionFalse, errors.Is(p.Err(), plan.ErrChanged))
			o.Refused, server.writes = nil, nil
			server.settle(t, &o)
			if test.ready == metav1.ConditionTrue && len(server.writes) > 1 {
				t.Errorf("%d writes of the same: %v", len(server.writes), server.writes)
			}
			server.change, o.Refused = nil, nil
			check.Must(t, server.settle(t, &o).Err())
			ready = meta.FindStatusCondition(o.ServiceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
			check.Equal(t, "Ready without the policy: "+ready.Message, metav1.ConditionTrue, ready.Status)
		})
	}
}

// TestFinalizers: an object that waits for the finalizer of another controller is not created again, and the import says what it waits for.
//
// spec: C6, E1
func TestFinalizers(t *testing.T) {
	t.Parallel()
	o, server := observedOf(exportOf("a", 1, http)), &apiServer{}
	server.settle(t, &o)
	o.Services[0].Finalizers = []string{"example.com/billing"}
	o.Sources.Hub.Exports[0].Type = mcsv1beta1.Headless
	server.writes = nil
	p := server.settle(t, &o)
	for _, change := range server.writes {
		if _, isService := change.Object.(*corev1.Service); isService && change.Verb == plan.Create {
			t.Error("a Service is created while another one has its name")
		}
	}
	ready := meta.FindStatusCondition(o.ServiceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
	const want = "Service shop/derived-43254079 cannot be written: it is being deleted, and waits for its finalizers example.com/billing; " +
		"find the controller of the finalizer, or remove the finalizer."
	check.Equal(t, "Ready", []any{metav1.ConditionFalse, want}, []any{ready.Status, ready.Message})
	check.Must(t, p.Err()) // the deletion of the Service is an event
	o.Services, o.Refused = nil, nil
	server.settle(t, &o)
	check.Equal(t, "cluster IP", corev1.ClusterIPNone, o.Services[0].Spec.ClusterIP)
}

// TestLostAddresses: addresses that cannot be granted again are replaced, and an Event says so.
//
// spec: I5
func TestLostAddresses(t *testing.T) {
	t.Parallel()
	o, server := observedOf(exportOf("a", 1, http)), &apiServer{}
	server.settle(t, &o)
	lost := o.ServiceImport.Spec.IPs[0]
	o.Services = nil
	p := PlanOf(o)
	check.Equal(t, "address that is asked for", lost, p.Stages[0][0].Object.(*corev1.Service).Spec.ClusterIP)
	refused := Refused{Change: p.Stages[0][0], Kind: Invalid, Reason: "the provided IP is not in the valid range", Err: errRefused}
	o = o.With(p, Outcome{Refused: []Refused{refused}, AddressesLost: true})
	check.Equal(t, "Event", "AddressReplaced", PlanOf(o).Events[0].Reason)
	check.Must(t, server.settle(t, &o).Err())
	if got := o.ServiceImport.Spec.IPs; len(got) != 1 || got[0] == lost {
		t.Errorf("addresses %v, before %s", got, lost)
	}
}

// TestReasonsOfRefusals: the condition of an import names what is refused as users know it, each reason once: the quota and the hostnames, not
// the names of Services that contain hashes.
//
// spec: C6, G9
func TestReasonsOfRefusals(t *testing.T) {
	t.Parallel()
	var refused []Refused
	for i := range 2 {
		ip := clusterset.VirtualIP{Service: clusterset.ServiceKey{Namespace: "shop", Name: "db"}, Cluster: "b", Hostname: fmt.Sprintf("db-%d", i)}
		refused = append(refused, Refused{Change: plan.Change[plan.Object]{Object: render.VirtualService(ip, nil, nil, nil)}, Kind: Forbidden, Reason: quota})
	}
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "derived-1"}}
	refused = append(refused, Refused{Change: plan.Change[plan.Object]{Object: foreign}, Kind: Unmanaged, Reason: "it is not managed by Tombolo"})
	check.Equal(t, "message", "Hostname db-0 of cluster b, hostname db-1 of cluster b cannot be written: "+quota+
		"; raise the quota, or change the rights or the policy that refuse it. "+
		"Service shop/derived-1 cannot be written: it is not managed by Tombolo.", conditions.ImportPending(refusalsOf(refused)).Message)
}

// TestSettles: whatever is refused or changed, the loop ends, and an import whose objects differ from the desired ones is never Ready.
//
// spec: C6
func TestSettles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ports := []clusterset.Port{http, admin, otherHTTP}
		o, server := observedOf(exportOf("a", 1, http)), &apiServer{}
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			var exports []clusterset.Export
			for i, id := range []clusterset.ClusterID{"a", "b"} {
				if rapid.Bool().Draw(t, string(id)+" exports") {
					export := exportOf(id, i, rapid.SampledFrom(ports).Draw(t, "port"))
					export.Type = rapid.SampledFrom([]mcsv1beta1.ServiceImportType{mcsv1beta1.ClusterSetIP, mcsv1beta1.ClusterSetIP, mcsv1beta1.Headless}).Draw(t, "type")
					if export.Type == mcsv1beta1.Headless {
						export.Affinity = clusterset.Affinity{}
					}
					exports = append(exports, export)
				}
			}
			existing, addresses := o.Existing, rapid.SampledFrom([]string{"10.1.0.1", "10.1.0.2"})
			o = observedOf(exports...)
			o.Existing = existing
			for i := range o.Sources.Hub.Slices {
				o.Sources.Hub.Slices[i].Endpoints[0].Addresses = []string{addresses.Draw(t, "address")}
			}
			kinds := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"Service", "EndpointSlice", "ServiceImport"}), rapid.ID).Draw(t, "refused kinds")
			verbs := rapid.SliceOfDistinct(rapid.SampledFrom([]plan.Verb{plan.Create, plan.Update, plan.Delete}), rapid.ID).Draw(t, "refused verbs")
			server.refuse = func(change plan.Change[plan.Object]) *Refused {
				for _, kind := range kinds {
					if r := refusing(kind, verbs...)(change); r != nil {
						return r
					}
				}
				return nil
			}
			server.writes = nil
			p := server.settle(t, &o)
			if o.ServiceImport == nil || !clusterset.IsManaged(o.ServiceImport.Labels) {
				continue
			}
			ready := meta.FindStatusCondition(o.ServiceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
			if ready != nil && ready.Status == metav1.ConditionTrue && len(p.Refused) > 0 {
				t.Fatalf("Ready although %d changes are refused: %s", len(p.Refused), ready.Message)
			}
			o.Refused, server.refuse = nil, nil
			again := PlanOf(o)
			if len(p.Refused) == 0 && p.IsImported && !again.isEmpty() {
				t.Fatalf("nothing was refused, and the same observation gives another plan: %v", again.Stages)
			}
		}
	})
}

// TestRetainedAddresses: the addresses of an import that is withdrawn are retained before its derived Service is deleted, and those of an import
// whose namespace is deleted. An import that exists again gets them, unless they are lost.
//
// spec: I5
func TestRetainedAddresses(t *testing.T) {
	t.Parallel()
	o, server := observedOf(exportOf("a", 1, http)), &apiServer{}
	server.settle(t, &o)
	addresses := o.ServiceImport.Spec.IPs
	withdrawnImport := o
	withdrawnImport.Sources.Hub = sources.Hub{Listed: true, LocalMember: &hubv1alpha1.Member{}}
	check.Equal(t, "withdrawn", addresses, PlanOf(withdrawnImport).Retain)
	check.Equal(t, "its namespace is deleted", addresses, PlanOf(Observed{Namespace: NamespaceNotFound, Last: addresses}).Retain)

	again := observedOf(exportOf("a", 1, http))
	again.Retained = addresses
	p := PlanOf(again)
	check.Equal(t, "addresses that are asked for", addresses, p.Stages[0][0].Object.(*corev1.Service).Spec.ClusterIPs)
	again = again.With(p, Outcome{Refused: []Refused{{Change: p.Stages[0][0], Kind: Invalid, Err: errRefused}}, AddressesLost: true})
	p = PlanOf(again)
	check.Equal(t, "addresses after they are lost", []string(nil), p.Stages[0][0].Object.(*corev1.Service).Spec.ClusterIPs)
	check.Equal(t, "Event", "AddressReplaced", p.Events[0].Reason)
	headless := observedOf(exportOf("a", 1, http))
	headless.Sources.Hub.Exports[0].Type, headless.Retained = mcsv1beta1.Headless, addresses
	check.Equal(t, "of a headless service", []string{corev1.ClusterIPNone}, PlanOf(headless).Stages[0][0].Object.(*corev1.Service).Spec.ClusterIPs)
}
