// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// aliasOf returns a Service that has the endpoints of an import too.
func aliasOf(serviceImport string, service *corev1.Service) *corev1.Service {
	service.Annotations = map[string]string{clusterset.AnnotationImport: serviceImport}
	return service
}

// alias waits until the managed slices of an alias have exactly these endpoints: "<cluster> <address>:<port>:<number>".
func (m *member) alias(t *testing.T, k key, want ...string) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		found, err := m.aliasSlices(ctx, k)
		if err != nil {
			return err
		}
		var got []string
		for _, s := range found {
			for _, e := range s.Endpoints {
				text := s.Labels[mcsv1beta1.LabelSourceCluster] + " " + e.Addresses[0]
				for _, p := range s.Ports {
					text += fmt.Sprintf(":%s:%d", *p.Name, *p.Port)
				}
				got = append(got, text)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s: alias %s has the endpoints %q, want %q", m.ID, k, got, want)
		}
		return nil
	})
}

// aliasSlices returns the managed slices of a Service.
func (m *member) aliasSlices(ctx context.Context, k key) ([]discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := m.List(ctx, list, client.InNamespace(k.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: k.Name, discoveryv1.LabelManagedBy: clusterset.ManagedBy})
	return list.Items, err
}

// aliased waits until a Service has the condition of an alias with this status, reason and text. Without a reason, it has none.
func (m *member) aliased(t *testing.T, k key, status metav1.ConditionStatus, reason, text string) {
	t.Helper()
	world.Await(t, m, k, &corev1.Service{}, func(service *corev1.Service) error {
		c := meta.FindStatusCondition(service.Status.Conditions, conditions.TypeAlias)
		if c == nil && reason == "" {
			return nil
		}
		if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
			return fmt.Errorf("%s: conditions of Service %s are %+v, want %s/%s: %s", m.ID, k, service.Status.Conditions, status, reason, text)
		}
		return nil
	})
}

// testTrafficPolicy: the condition of an alias follows the traffic policies of its Service.
//
// spec: L1
func testTrafficPolicy(t *testing.T, m *member, k key) {
	t.Helper()
	before := &corev1.Service{}
	lab.Must(t, m.Get(t.Context(), k, before))
	set := func(spec corev1.ServiceSpec) {
		t.Helper()
		service := &corev1.Service{}
		world.Update(t, m, k, service, func() {
			service.Spec.Type, service.Spec.ExternalTrafficPolicy, service.Spec.InternalTrafficPolicy = spec.Type, spec.ExternalTrafficPolicy, spec.InternalTrafficPolicy
		})
	}
	set(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster)})
	m.aliased(t, k, metav1.ConditionFalse, conditions.ReasonTrafficPolicyLocal, "externalTrafficPolicy is Local, and none of the endpoints is on a node of this cluster")
	m.Event(t, k, conditions.ReasonTrafficPolicyLocal, "externalTrafficPolicy is Local, and none of the endpoints is on a node of this cluster")
	set(before.Spec)
	m.aliased(t, k, metav1.ConditionTrue, conditions.ReasonAliased, "the Service has the endpoints of ServiceImport web")
}

// annotate sets the annotation of an alias, or removes it if the import is empty.
func (m *member) annotate(t *testing.T, k key, serviceImport string) {
	t.Helper()
	service := &corev1.Service{}
	world.Update(t, m, k, service, func() {
		aliasOf(serviceImport, service)
		if serviceImport == "" {
			service.Annotations = nil
		}
	})
}

// testAlias: an alias has the endpoints of its import while the annotation and the import allow it. What is not ours stays.
//
// spec: L1
func testAlias(t *testing.T, a, b *member) {
	ns := world.Namespace(t, a, b)
	web, all, own := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "all"}, key{Namespace: ns, Name: "own"}
	lab.Must(t, a.Create(t.Context(), aliasOf("web", world.Service(all, world.Port("main", 80)))))
	a.aliased(t, all, metav1.ConditionFalse, conditions.ReasonNoImport, "this namespace has no ServiceImport web")
	a.Event(t, all, conditions.ReasonNoImport, "this namespace has no ServiceImport web")
	service, slice := b.ExportWeb(t, web, "10.2.0.1")
	lab.Must(t, b.Create(t.Context(), world.Slice(service, "v6", "fd00:2::1")))
	a.alias(t, all, "b 10.2.0.1:main:8080", "b fd00:2::1:main:8080")
	a.aliased(t, all, metav1.ConditionTrue, conditions.ReasonAliased, "the Service has the endpoints of ServiceImport web at the ports main/TCP")
	testTrafficPolicy(t, a, all)

	// own has a selector, and so slices of Kubernetes.
	ofOwn := aliasOf("web", world.Service(own, world.Port("http", 80), world.Port("metrics", 90)))
	ofOwn.Spec.Selector = map[string]string{"app": "own"}
	foreign := world.Slice(ofOwn, "v4", "10.1.0.1")
	foreign.Labels[discoveryv1.LabelManagedBy] = "test"
	world.Create(t, a, ofOwn, foreign)
	a.alias(t, own, "b 10.2.0.1:http:8080", "b fd00:2::1:http:8080")
	a.aliased(t, own, metav1.ConditionTrue, conditions.ReasonPortsNotMatched, "the import has no port like metrics/TCP")
	a.Event(t, own, conditions.ReasonPortsNotMatched, "the import has no port like metrics/TCP")

	world.Update(t, b, client.ObjectKeyFromObject(slice), slice, func() {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.2.0.2"}})
	})
	a.alias(t, all, "b 10.2.0.1:main:8080", "b 10.2.0.2:main:8080", "b fd00:2::1:main:8080")
	world.Update(t, b, web, service, func() { service.Spec.Ports = append(service.Spec.Ports, world.Port("admin", 81)) })
	a.alias(t, all)
	a.aliased(t, all, metav1.ConditionFalse, conditions.ReasonPortsNotMatched, "the import has no port like main/TCP")
	a.alias(t, own, "b 10.2.0.1:http:8080", "b 10.2.0.2:http:8080", "b fd00:2::1:http:8080")
	ofAll := &corev1.Service{}
	world.Update(t, a, all, ofAll, func() { ofAll.Spec.Ports[0].Name = "http" })
	a.alias(t, all, "b 10.2.0.1:http:8080", "b 10.2.0.2:http:8080", "b fd00:2::1:http:8080")

	a.annotate(t, all, "bank/web")
	a.alias(t, all)
	a.aliased(t, all, metav1.ConditionFalse, conditions.ReasonAliasRefused, `"bank/web" is refused`)
	a.Event(t, all, conditions.ReasonAliasRefused, `"bank/web" is refused`)
	a.annotate(t, all, "web")
	a.alias(t, all, "b 10.2.0.1:http:8080", "b 10.2.0.2:http:8080", "b fd00:2::1:http:8080")
	a.annotate(t, all, "")
	a.alias(t, all)
	a.aliased(t, all, "", "", "")

	a.editedSlices(t, own)
	lab.Must(t, b.Delete(t.Context(), world.Export(web)))
	a.alias(t, own)
	a.aliased(t, own, metav1.ConditionFalse, conditions.ReasonNoImport, "this namespace has no ServiceImport web")
	lab.Must(t, a.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
	after := world.Read(t, a, own, &corev1.Service{})
	if after.Spec.ClusterIP != ofOwn.Spec.ClusterIP || len(after.Spec.Selector) != 1 || len(after.Spec.Ports) != 2 {
		t.Errorf("the alias was changed: %+v", after.Spec)
	}
}

// editedSlices edits and deletes the slices of an alias, which the agent restores.
func (m *member) editedSlices(t *testing.T, k key) {
	t.Helper()
	before, err := m.aliasSlices(t.Context(), k)
	lab.Must(t, err)
	for i := range before {
		for what, edit := range map[string]func(*discoveryv1.EndpointSlice){
			"managed-by":   func(s *discoveryv1.EndpointSlice) { delete(s.Labels, discoveryv1.LabelManagedBy) },
			"alias-of":     func(s *discoveryv1.EndpointSlice) { delete(s.Labels, clusterset.LabelAliasOf) },
			"service-name": func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelServiceName] = "web" },
			"endpoints":    func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil },
		} {
			m.drifts(t, what, edited(&before[i], edit))
		}
		lab.Must(t, m.Delete(t.Context(), before[i].DeepCopy()))
		m.restored(t, "slice", &before[i])
	}
}

// TestAlias: an alias follows its annotation and its import.
//
// spec: L1
func TestAlias(t *testing.T) {
	t.Parallel()
	_, a, b := newPair(t)
	a.Start(t)
	b.Start(t)
	testAlias(t, a, b)
}

// TestAliasWithoutAgent: the slices of an alias end with the Service, also if no agent runs meanwhile, and an agent that starts copies
// what has changed.
//
// spec: L1
func TestAliasWithoutAgent(t *testing.T) {
	t.Parallel()
	_, a, b := newPair(t)
	stop := a.Start(t)
	b.Start(t)
	ns := world.Namespace(t, a, b)
	web, all, gone, headless := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "all"}, key{Namespace: ns, Name: "gone"}, key{Namespace: ns, Name: "pods"}
	_, slice := b.ExportWeb(t, web, "10.2.0.1")
	ofGone := aliasOf("web", world.Service(gone, world.Port("", 80)))
	world.Create(t, a, aliasOf("web", world.Service(all, world.Port("http", 80))), ofGone, aliasOf("web", world.Headless(headless)))
	a.alias(t, all, "b 10.2.0.1:http:8080")
	a.alias(t, gone, "b 10.2.0.1::8080")
	a.alias(t, headless, "b 10.2.0.1")
	stop()
	lab.Must(t, a.Delete(t.Context(), ofGone))
	world.Update(t, b, client.ObjectKeyFromObject(slice), slice, func() { slice.Endpoints[0].Addresses = []string{"10.2.0.9"} })
	a.Start(t)
	a.alias(t, gone)
	a.alias(t, all, "b 10.2.0.9:http:8080")
	a.alias(t, headless, "b 10.2.0.9")
	found, err := a.aliasSlices(t.Context(), headless)
	lab.Must(t, err)
	if _, isHeadless := found[0].Labels[corev1.IsHeadlessService]; !isHeadless || len(found) != 1 {
		t.Errorf("slices of the headless alias: %+v", found)
	}
	world.LogsNoErrors(t, a.Member, ns)
}

// TestAliasesOfEachOther: two clusters alias the same service and export it, and each aliases what the other exports. Each exports only
// its own endpoints.
//
// spec: L1, E1
func TestAliasesOfEachOther(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	a.Start(t)
	b.Start(t)
	ns := world.Namespace(t, a, b)
	web, x, y := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "x"}, key{Namespace: ns, Name: "y"}
	offer := func(m *member, k key, serviceImport, address string) {
		service := aliasOf(serviceImport, world.Service(k, world.Port("http", 80)))
		m.ExportService(t, service, world.Slice(service, "v4", address))
	}
	offer(a, web, "web", "10.1.0.1")
	offer(b, web, "web", "10.2.0.1")
	offer(a, x, "y", "10.1.0.2")
	offer(b, y, "x", "10.2.0.2")
	a.alias(t, web, "b 10.2.0.1:http:8080")
	b.alias(t, web, "a 10.1.0.1:http:8080")
	a.alias(t, x, "b 10.2.0.2:http:8080")
	b.alias(t, y, "a 10.1.0.2:http:8080")
	last := key{Namespace: ns, Name: "last"} // when it is imported, all before it would be
	a.ExportWeb(t, last, "10.1.0.3")
	b.ExportWeb(t, last, "10.2.0.3")
	for _, m := range []*member{a, b} {
		m.Endpoints(t, last, "a 10.1.0.3:http:8080", "b 10.2.0.3:http:8080")
		m.Endpoints(t, web, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
		m.Endpoints(t, x, "a 10.1.0.2:http:8080")
		m.Endpoints(t, y, "b 10.2.0.2:http:8080")
		records := world.List(t, w.HubClient, &hubv1alpha1.PublishedEndpointsList{}, client.InNamespace("member-"+m.ID))
		if len(records.Items) != 3 {
			t.Errorf("%s has published %d records of endpoints, want one for each of its three Services: %+v", m.ID, len(records.Items), records.Items)
		}
	}
}

// TestAliasThroughGateways: an alias has the gateways of its import at their listening port, but is no configuration of them.
//
// spec: L1, G2
func TestAliasThroughGateways(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
	a, b := w.members["a"], w.members["b"]
	w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network, s.Publish = "cloud", hubv1alpha1.PublishAvailability })
	a.Start(t, released)
	b.Start(t, released)
	w.installGateway(t, "a", "10.1.9.1")
	w.installGateway(t, "b", "10.1.9.1")
	ns := world.Namespace(t, a, b)
	web, all, headless := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "all"}, key{Namespace: ns, Name: "pods"}
	b.ExportWeb(t, web, "10.2.0.1")
	port := a.listens(t, web, "b", "10.1.9.1")
	world.Create(t, a, aliasOf("web", world.Service(all, world.Port("main", 80))),
		aliasOf("web", world.Headless(headless, world.Port("http", 80))))
	a.alias(t, all, fmt.Sprintf("b 10.1.9.1:main:%d", port))
	a.aliased(t, headless, metav1.ConditionFalse, conditions.ReasonEndpointsLeftOut, "the endpoints of b are left out, because they are reached through gateways")
	a.alias(t, headless)
	found, err := a.aliasSlices(t.Context(), all)
	lab.Must(t, err)
	for _, slice := range found {
		if slice.Labels[clusterset.LabelGateway] != "" || len(slice.Annotations) > 0 {
			t.Errorf("gateways read slice %s: labels %v, annotations %v", slice.Name, slice.Labels, slice.Annotations)
		}
	}
}
