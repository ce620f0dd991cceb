// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// hasFamilies waits until an import is ready with these families, in this order, and returns it. Its addresses are then of
// these families, and those of its derived Service.
func (m *member) hasFamilies(t *testing.T, k key, want ...corev1.IPFamily) *mcsv1beta1.ServiceImport {
	t.Helper()
	found, _ := m.ImportedWith(t, k, func(serviceImport *mcsv1beta1.ServiceImport, derived *corev1.Service) error {
		if diff := cmp.Diff([][]corev1.IPFamily{want, want}, [][]corev1.IPFamily{serviceImport.Spec.IPFamilies, derived.Spec.IPFamilies}); diff != "" {
			return fmt.Errorf("families of it and its derived Service (-want +got):\n%s", diff)
		}
		if serviceImport.Spec.Type == mcsv1beta1.ClusterSetIP {
			if diff := cmp.Diff(derived.Spec.ClusterIPs, serviceImport.Spec.IPs); diff != "" || len(serviceImport.Spec.IPs) != len(want) {
				return fmt.Errorf("its addresses are %v, those of its derived Service %v", serviceImport.Spec.IPs, derived.Spec.ClusterIPs)
			}
		}
		return nil
	})
	return found
}

// TestSingleStack: clusters with one family, or with the other, or both.
//
// spec: I5, R5, C6, D5
//
//nolint:tparallel // the part comes before the agents
func TestSingleStack(t *testing.T) {
	t.Parallel()
	four, six := lab.Member("b"), lab.Member("c")
	four.IPFamilies, six.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}, []corev1.IPFamily{corev1.IPv6Protocol}
	w := newEnv(t, membership.Hub(), lab.Member("a"), four, six)
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	t.Run("Accepted", func(t *testing.T) { testAccepted(t, a, b) }) // without agents
	for _, m := range []*member{a, b, c} {
		m.Start(t)
	}
	k := key{Namespace: world.Namespace(t, a, b, c), Name: "web"}

	// From the one with IPv4 only: the dual-stack cluster has one address, the one with IPv6 none.
	b.ExportWeb(t, k, "10.2.0.1")
	b.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	first := a.hasFamilies(t, k, "IPv4").Spec.IPs[0]
	b.hasFamilies(t, k, "IPv4")
	c.ImportCondition(t, k, "Ready", metav1.ConditionFalse, "IPFamilyNotSupported", unsupported("[IPv4]", "[IPv6]"))
	if mirrored := c.Slices(t, k); len(mirrored) > 0 {
		t.Errorf("slices in c: %v", mirrored)
	}

	// The one with IPv6 exports it too, which heals it there, and adds an address in the dual-stack cluster.
	inC := world.Service(k, world.Port("http", 80))
	c.ExportService(t, inC, world.Slice(inC, "v6", "fd00:3::1"))
	c.hasFamilies(t, k, "IPv6")
	c.Endpoints(t, k, "c fd00:3::1:http:8080")
	b.Endpoints(t, k, "b 10.2.0.1:http:8080")
	if got := a.hasFamilies(t, k, "IPv4", "IPv6").Spec.IPs; got[0] != first {
		t.Errorf("the first address of a was %s, its addresses are %v", first, got)
	}
	a.Endpoints(t, k, "b 10.2.0.1:http:8080", "c fd00:3::1:http:8080")
	for _, m := range []*member{b, c} {
		m.Condition(t, k, conflict, metav1.ConditionTrue, "IPFamilyConflict")
	}

	// The first withdraws: the dual-stack cluster keeps its address, the one with IPv4 has no exporter left.
	lab.Must(t, b.Delete(t.Context(), world.Export(k)))
	a.Endpoints(t, k, "c fd00:3::1:http:8080")
	if got := a.hasFamilies(t, k, "IPv4", "IPv6").Spec.IPs; got[0] != first {
		t.Errorf("the first address of a was %s, its addresses are %v", first, got)
	}
	b.ImportCondition(t, k, "Ready", metav1.ConditionFalse, "IPFamilyNotSupported", unsupported("[IPv6]", "[IPv4]"))
	c.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	lab.Must(t, b.Create(t.Context(), world.Export(k)))
	b.Endpoints(t, k, "b 10.2.0.1:http:8080")
	b.hasFamilies(t, k, "IPv4")

	// A dual-stack exporter reaches both.
	dual := key{Namespace: k.Namespace, Name: "dual"}
	inA, _ := a.ExportWeb(t, dual, "10.1.0.1")
	lab.Must(t, a.Create(t.Context(), world.Slice(inA, "v6", "fd00:1::1")))
	b.hasFamilies(t, dual, "IPv4")
	b.Endpoints(t, dual, "a 10.1.0.1:http:8080")
	c.hasFamilies(t, dual, "IPv6")
	c.Endpoints(t, dual, "a fd00:1::1:http:8080")

	// A headless import has all families. If its type changes to one that this cluster cannot have, no slice is left.
	mixed := key{Namespace: k.Namespace, Name: "mixed"}
	pets := world.Headless(mixed, world.Port("http", 80))
	a.ExportService(t, pets, world.Slice(pets, "v6", "fd00:1::4"))
	b.Endpoints(t, mixed, "a fd00:1::4:http:8080")
	w.Enroll(t, "later")
	w.Publish(t, "later", mixed, func(s *hubv1alpha1.PublishedService) {
		s.Spec.ExportedAt = metav1.NewTime(time.Now().Add(time.Minute))
		s.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv6"}
	})
	a.Condition(t, mixed, conflict, metav1.ConditionTrue, "TypeConflict,InternalTrafficPolicyConflict,IPFamilyConflict")
	lab.Must(t, a.Delete(t.Context(), world.Export(mixed)))
	b.Endpoints(t, mixed)
	b.ImportCondition(t, mixed, "Ready", metav1.ConditionFalse, "IPFamilyNotSupported", "")
}

func unsupported(exported, local string) string {
	return "The service is exported with IP families " + exported + ", this cluster's Services have " + local + ". " +
		"Export it from a cluster with a common family, or make either side dual-stack."
}

// TestWhileDown: what became of derived Services and of the services behind them while the agent was down.
//
// spec: I5, I6, E6, D1, D2, D7
func TestWhileDown(t *testing.T) {
	t.Parallel()
	_, a, _ := newPair(t)
	stop := a.Start(t)
	ns := world.Namespace(t, a)
	before, derived := map[string]*mcsv1beta1.ServiceImport{}, map[string]*corev1.Service{}
	// For each service, which of its two addresses others take.
	thefts := map[string][]int{"none-taken": {}, "first-taken": {0}, "second-taken": {1}, "both-taken": {0, 1}}
	for name := range thefts {
		a.ExportWeb(t, key{Namespace: ns, Name: name})
	}
	changing := key{Namespace: ns, Name: "changing"}
	source, _ := a.ExportWeb(t, changing, "10.1.0.1")
	for name := range thefts {
		before[name], derived[name] = a.Imported(t, key{Namespace: ns, Name: name})
	}
	original, first := a.Imported(t, changing)

	stop()
	var thieves []*corev1.Service
	for name, which := range thefts {
		lab.Must(t, a.Delete(t.Context(), derived[name].DeepCopy()))
		for _, i := range which {
			thieves = append(thieves, a.take(t, key{Namespace: ns, Name: fmt.Sprintf("%s-%d", name, i)}, before[name].Spec.IPs[i]))
		}
	}
	lab.Must(t, a.Delete(t.Context(), source.DeepCopy()))
	becomesHeadless := world.Headless(changing, world.Port("http", 80))
	lab.Must(t, a.Create(t.Context(), becomesHeadless))
	stop = a.Start(t)
	for name, which := range thefts {
		k := key{Namespace: ns, Name: name}
		a.restores(t, before[name], derived[name], which)
		if after, _ := a.Imported(t, k); len(which) == 0 && after.ResourceVersion != before[name].ResourceVersion {
			t.Errorf("the import %s was written without need", name)
		}
	}
	for _, thief := range thieves {
		a.untouched(t, thief)
	}
	a.becomes(t, changing, first.Name, mcsv1beta1.Headless)
	a.Event(t, changing, "DerivedServiceReplaced", "")
	a.untouched(t, becomesHeadless)

	// And back. The addresses that it had are not promised to it.
	stop()
	lab.Must(t, a.Delete(t.Context(), becomesHeadless.DeepCopy()))
	source = world.Service(changing, world.Port("http", 80))
	lab.Must(t, a.Create(t.Context(), source))
	a.take(t, key{Namespace: ns, Name: "another"}, original.Spec.IPs[0])
	a.Start(t)
	a.becomes(t, changing, first.Name, mcsv1beta1.ClusterSetIP)
	a.hasFamilies(t, changing, "IPv4", "IPv6")
	a.Endpoints(t, changing, "a 10.1.0.1:http:8080")
	a.untouched(t, source)
}

// take creates another user's Service with this address. An address is not free in the moment when its Service is deleted.
func (m *member) take(t *testing.T, k key, address string) *corev1.Service {
	t.Helper()
	service := world.Service(k, world.Port("http", 80))
	service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	service.Spec.ClusterIP, service.Spec.ClusterIPs = address, []string{address}
	service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	if slices.Contains([]byte(address), ':') {
		service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
	}
	world.Eventually(t, func(ctx context.Context) error { return m.Create(ctx, service) })
	return service
}

// restores waits until a derived Service is back, with no address that others have taken, the first
// of its own if it can be, and the import says so.
func (m *member) restores(t *testing.T, before *mcsv1beta1.ServiceImport, derived *corev1.Service, taken []int) {
	t.Helper()
	m.ImportedWith(t, client.ObjectKeyFromObject(before), func(after *mcsv1beta1.ServiceImport, restored *corev1.Service) error {
		if restored.UID == derived.UID || restored.Name != derived.Name || len(after.Spec.IPs) != 2 {
			return fmt.Errorf("it has addresses %v and derived Service %s", after.Spec.IPs, restored.Name)
		}
		if diff := cmp.Diff(restored.Spec.ClusterIPs, after.Spec.IPs); diff != "" {
			return fmt.Errorf("addresses of the derived Service and the import (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before.Spec.IPFamilies, after.Spec.IPFamilies); diff != "" {
			return fmt.Errorf("its families (-before +after):\n%s", diff)
		}
		for i, address := range after.Spec.IPs {
			kept, due := address == before.Spec.IPs[i], !slices.Contains(taken, i)
			if kept && !due || !kept && due && (i == 0 || len(taken) == 0) { // the second depends on the first
				return fmt.Errorf("its addresses were %v, %v of them are taken, and now they are %v", before.Spec.IPs, taken, after.Spec.IPs)
			}
		}
		return nil
	})
}
