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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// An import keeps the order of its families and its addresses when an export with another order becomes the oldest.
//
// spec: I5, R5, R6
func testFamilyOrderStays(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	inA, inB := clusterIPService(k, port("http", 80)), clusterIPService(k, port("http", 80))
	inA.Spec.IPFamilies, inB.Spec.IPFamilies = families("IPv6", "IPv4"), families("IPv4", "IPv6")
	a.exportService(t, inA, slice(inA, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	before := map[string]*mcsv1beta1.ServiceImport{}
	for _, m := range []*member{a, b} {
		before[m.id] = m.hasFamilies(t, k, "IPv6", "IPv4")
	}
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.exportService(t, inB, slice(inB, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1"))
	for _, m := range []*member{a, b} {
		m.endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	}
	a.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	lab.Must(t, a.Delete(t.Context(), export(k)))
	for _, m := range []*member{a, b} {
		m.endpoints(t, k, "b 10.2.0.1:http:8080")
		after := m.hasFamilies(t, k, "IPv6", "IPv4")
		if diff := cmp.Diff(before[m.id].Spec.IPs, after.Spec.IPs); diff != "" {
			t.Errorf("%s: addresses (-before +after):\n%s", m.id, diff)
		}
	}
}

// A headless import has all families that any exporter has.
//
// spec: I5, I6, R5
func testHeadlessFamilies(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "pets"}
	inA, inB := headlessService(k, port("http", 80)), headlessService(k, port("http", 80))
	for service, family := range map[*corev1.Service]corev1.IPFamily{inA: corev1.IPv6Protocol, inB: corev1.IPv4Protocol} {
		service.Spec.IPFamilyPolicy, service.Spec.IPFamilies = new(corev1.IPFamilyPolicySingleStack), []corev1.IPFamily{family}
	}
	a.exportService(t, inA, slice(inA, "v6", discoveryv1.AddressTypeIPv6, "fd00:1::1"))
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.hasFamilies(t, k, "IPv6")
	b.exportService(t, inB, slice(inB, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1"))
	for _, m := range []*member{a, b} {
		m.hasFamilies(t, k, "IPv6", "IPv4")
		m.endpoints(t, k, "a fd00:1::1:http:8080", "b 10.2.0.1:http:8080")
		m.condition(t, k, conflict, metav1.ConditionTrue, "IPFamilyConflict")
	}
	lab.Must(t, b.Delete(t.Context(), export(k)))
	for _, m := range []*member{a, b} {
		m.hasFamilies(t, k, "IPv6")
		m.endpoints(t, k, "a fd00:1::1:http:8080")
	}
}

func families(all ...corev1.IPFamily) []corev1.IPFamily { return all }

// hasFamilies waits until an import is ready with these families, in this order, and returns it. Its addresses are then of
// these families, and those of its derived Service.
func (m *member) hasFamilies(t *testing.T, k key, want ...corev1.IPFamily) *mcsv1beta1.ServiceImport {
	t.Helper()
	var found *mcsv1beta1.ServiceImport
	eventually(t, func(context.Context) error {
		serviceImport, derived := m.imported(t, k)
		if diff := cmp.Diff([][]corev1.IPFamily{want, want}, [][]corev1.IPFamily{serviceImport.Spec.IPFamilies, derived.Spec.IPFamilies}); diff != "" {
			return fmt.Errorf("%s: families of import %s and its derived Service (-want +got):\n%s", m.id, k, diff)
		}
		if serviceImport.Spec.Type == mcsv1beta1.ClusterSetIP {
			if diff := cmp.Diff(derived.Spec.ClusterIPs, serviceImport.Spec.IPs); diff != "" || len(serviceImport.Spec.IPs) != len(want) {
				return fmt.Errorf("%s: addresses of import %s are %v, those of its derived Service %v", m.id, k, serviceImport.Spec.IPs, derived.Spec.ClusterIPs)
			}
		}
		found = serviceImport
		return nil
	})
	return found
}

// TestSingleStack: clusters with one family, or with the other, or both.
//
// spec: I5, R5, C6, D5
func TestSingleStack(t *testing.T) {
	t.Parallel()
	four, six := lab.Member("b"), lab.Member("c")
	four.IPFamilies, six.IPFamilies = families("IPv4"), families("IPv6")
	w := newWorld(t, lab.Member("a"), four, six)
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	for _, m := range []*member{a, b, c} {
		m.start(t)
	}
	k := key{Namespace: namespace(t, a, b, c), Name: "web"}

	// From the one with IPv4 only: the dual-stack cluster has one address, the one with IPv6 none.
	inB := clusterIPService(k, port("http", 80))
	b.exportService(t, inB, slice(inB, "v4", discoveryv1.AddressTypeIPv4, "10.2.0.1"))
	b.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	first := a.hasFamilies(t, k, "IPv4").Spec.IPs[0]
	b.hasFamilies(t, k, "IPv4")
	c.unsupported(t, k, "[IPv4]", "[IPv6]")
	if mirrored, err := c.mirrored(t.Context(), k); err != nil || len(mirrored) > 0 {
		t.Errorf("slices in c: %v (%v)", mirrored, err)
	}

	// The one with IPv6 exports it too, which heals it there, and adds an address in the dual-stack cluster.
	inC := clusterIPService(k, port("http", 80))
	c.exportService(t, inC, slice(inC, "v6", discoveryv1.AddressTypeIPv6, "fd00:3::1"))
	c.hasFamilies(t, k, "IPv6")
	c.endpoints(t, k, "c fd00:3::1:http:8080")
	b.endpoints(t, k, "b 10.2.0.1:http:8080")
	if got := a.hasFamilies(t, k, "IPv4", "IPv6").Spec.IPs; got[0] != first {
		t.Errorf("the first address of a was %s, its addresses are %v", first, got)
	}
	a.endpoints(t, k, "b 10.2.0.1:http:8080", "c fd00:3::1:http:8080")
	for _, m := range []*member{b, c} {
		m.condition(t, k, conflict, metav1.ConditionTrue, "IPFamilyConflict")
	}

	// The first withdraws: the dual-stack cluster keeps its address, the one with IPv4 has nobody to reach.
	lab.Must(t, b.Delete(t.Context(), export(k)))
	a.endpoints(t, k, "c fd00:3::1:http:8080")
	if got := a.hasFamilies(t, k, "IPv4", "IPv6").Spec.IPs; got[0] != first {
		t.Errorf("the first address of a was %s, its addresses are %v", first, got)
	}
	b.unsupported(t, k, "[IPv6]", "[IPv4]")
	c.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	lab.Must(t, b.Create(t.Context(), export(k)))
	b.endpoints(t, k, "b 10.2.0.1:http:8080")
	b.hasFamilies(t, k, "IPv4")

	// A dual-stack exporter reaches both.
	dual := key{Namespace: k.Namespace, Name: "dual"}
	inA := clusterIPService(dual, port("http", 80))
	a.exportService(t, inA, slice(inA, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"), slice(inA, "v6", discoveryv1.AddressTypeIPv6, "fd00:1::1"))
	b.hasFamilies(t, dual, "IPv4")
	b.endpoints(t, dual, "a 10.1.0.1:http:8080")
	c.hasFamilies(t, dual, "IPv6")
	c.endpoints(t, dual, "a fd00:1::1:http:8080")
}

// unsupported waits until an import says that this cluster has none of the exporters' families.
func (m *member) unsupported(t *testing.T, k key, exported, own string) {
	t.Helper()
	want := "The service is exported with IP families " + exported + ", this cluster's Services have " + own + ". " +
		"Export it from a cluster with a common family, or make either side dual-stack."
	eventually(t, func(ctx context.Context) error {
		serviceImport := &mcsv1beta1.ServiceImport{}
		if err := m.Get(ctx, k, serviceImport); err != nil {
			return err
		}
		c := meta.FindStatusCondition(serviceImport.Status.Conditions, "Ready")
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "IPFamilyNotSupported" || c.Message != want {
			return fmt.Errorf("%s: condition of import %s: %+v, want %s", m.id, k, c, want)
		}
		return nil
	})
}

// TestWhileDown: what became of derived Services and of the services behind them while the agent was down.
//
// spec: I5, I6, E6, D1, D2, D7
func TestWhileDown(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a := w.members["a"]
	stop := a.start(t)
	ns := namespace(t, a)
	before, derived := map[string]*mcsv1beta1.ServiceImport{}, map[string]*corev1.Service{}
	// For each service, which of its two addresses others take.
	thefts := map[string][]int{"none-taken": {}, "first-taken": {0}, "second-taken": {1}, "both-taken": {0, 1}}
	for name := range thefts {
		k := key{Namespace: ns, Name: name}
		a.exportService(t, clusterIPService(k, port("http", 80)))
	}
	changing := key{Namespace: ns, Name: "changing"}
	source := clusterIPService(changing, port("http", 80))
	a.exportService(t, source, slice(source, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	for name := range thefts {
		before[name], derived[name] = a.imported(t, key{Namespace: ns, Name: name})
	}
	original, first := a.imported(t, changing)

	stop()
	var thieves []*corev1.Service
	for name, which := range thefts {
		lab.Must(t, a.Delete(t.Context(), derived[name].DeepCopy()))
		for _, i := range which {
			thieves = append(thieves, a.take(t, key{Namespace: ns, Name: fmt.Sprintf("%s-%d", name, i)}, before[name].Spec.IPs[i]))
		}
	}
	lab.Must(t, a.Delete(t.Context(), source.DeepCopy()))
	becomesHeadless := headlessService(changing, port("http", 80))
	lab.Must(t, a.Create(t.Context(), becomesHeadless))
	stop = a.start(t)
	for name, which := range thefts {
		k := key{Namespace: ns, Name: name}
		a.restores(t, before[name], derived[name], which)
		if after, _ := a.imported(t, k); len(which) == 0 && after.ResourceVersion != before[name].ResourceVersion {
			t.Errorf("the import %s was written without need", name)
		}
	}
	for _, thief := range thieves {
		a.untouched(t, thief)
	}
	a.becomes(t, changing, first.Name, mcsv1beta1.Headless)
	eventually(t, func(ctx context.Context) error { return a.hasEvent(ctx, changing, "DerivedServiceReplaced") })
	a.untouched(t, becomesHeadless)

	// And back. The addresses that it had are not promised to it.
	stop()
	lab.Must(t, a.Delete(t.Context(), becomesHeadless.DeepCopy()))
	source = clusterIPService(changing, port("http", 80))
	lab.Must(t, a.Create(t.Context(), source))
	a.take(t, key{Namespace: ns, Name: "another"}, original.Spec.IPs[0])
	a.start(t)
	a.becomes(t, changing, first.Name, mcsv1beta1.ClusterSetIP)
	a.hasFamilies(t, changing, "IPv4", "IPv6")
	a.endpoints(t, changing, "a 10.1.0.1:http:8080")
	a.untouched(t, source)
}

// TestSelectorWithoutImport: a derived Service that has to be replaced, because somebody has given it a selector, has its addresses
// still where the import that would remember them has been deleted too.
//
// spec: I5, E1
func TestSelectorWithoutImport(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a := w.members["a"]
	stop := a.start(t)
	k := key{Namespace: namespace(t, a), Name: "web"}
	a.exportService(t, clusterIPService(k, port("http", 80)))
	before, derived := a.imported(t, k)
	stop()
	selecting := derived.DeepCopy()
	selecting.Spec.Selector = map[string]string{"app": "mine"}
	lab.Must(t, a.Update(t.Context(), selecting))
	lab.Must(t, a.Delete(t.Context(), before.DeepCopy()))
	a.start(t)
	a.restores(t, before, derived, nil)
}

// take creates somebody else's Service with this address. An address is not free in the moment when its Service is deleted.
func (m *member) take(t *testing.T, k key, address string) *corev1.Service {
	t.Helper()
	service := clusterIPService(k, port("http", 80))
	service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	service.Spec.ClusterIP, service.Spec.ClusterIPs = address, []string{address}
	service.Spec.IPFamilies = families(corev1.IPv4Protocol)
	if slices.Contains([]byte(address), ':') {
		service.Spec.IPFamilies = families(corev1.IPv6Protocol)
	}
	eventually(t, func(ctx context.Context) error {
		created := service.DeepCopy()
		if err := m.Create(ctx, created); err != nil {
			return err
		}
		service = created
		return nil
	})
	return service
}

// restores waits until a derived Service is back, with no address that others have taken, the first
// of its own if it can be, and the import says so.
func (m *member) restores(t *testing.T, before *mcsv1beta1.ServiceImport, derived *corev1.Service, taken []int) {
	t.Helper()
	k := key{Namespace: before.Namespace, Name: before.Name}
	eventually(t, func(context.Context) error {
		after, restored := m.imported(t, k)
		if restored.UID == derived.UID || restored.Name != derived.Name || len(after.Spec.IPs) != 2 {
			return fmt.Errorf("import %s has addresses %v and derived Service %s", k, after.Spec.IPs, restored.Name)
		}
		if diff := cmp.Diff(restored.Spec.ClusterIPs, after.Spec.IPs); diff != "" {
			return fmt.Errorf("addresses of the derived Service and the import %s (-want +got):\n%s", k, diff)
		}
		if diff := cmp.Diff(before.Spec.IPFamilies, after.Spec.IPFamilies); diff != "" {
			return fmt.Errorf("families of import %s (-before +after):\n%s", k, diff)
		}
		for i, address := range after.Spec.IPs {
			kept, due := address == before.Spec.IPs[i], !slices.Contains(taken, i)
			if kept && !due || !kept && due && (i == 0 || len(taken) == 0) { // the second stands or falls with the first
				return fmt.Errorf("addresses of import %s were %v, %v of them are taken, and now they are %v", k, before.Spec.IPs, taken, after.Spec.IPs)
			}
		}
		return nil
	})
}
