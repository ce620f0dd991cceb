// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// agreement is what all clusters must agree on of an import, apart from what they have of their own (spec R7).
type agreement struct {
	Team, Ports, Exporters string
	Timeout                int32
}

// agreed waits until the import of a service is this in both clusters.
func (w *env) agreed(t *testing.T, k key, want agreement) {
	t.Helper()
	for _, m := range w.members {
		m.ImportedWith(t, k, func(i *mcsv1beta1.ServiceImport, _ *corev1.Service) error {
			got := agreement{Team: i.Labels["team"]}
			var ports, exporters []string
			for _, p := range i.Spec.Ports {
				ports = append(ports, fmt.Sprintf("%s:%d", p.Name, p.Port))
			}
			for _, status := range i.Status.Clusters {
				exporters = append(exporters, status.Cluster)
			}
			got.Ports, got.Exporters = strings.Join(ports, " "), strings.Join(exporters, " ")
			if config := i.Spec.SessionAffinityConfig; config != nil {
				got.Timeout = *config.ClientIP.TimeoutSeconds
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("-want +got:\n%s", diff)
			}
			return nil
		})
	}
}

// exportTeam exports a Service with a session affinity of this timeout and the label team.
func (m *member) exportTeam(t *testing.T, k key, address, team string, timeout int32, ports ...corev1.ServicePort) *mcsv1beta1.ServiceExport {
	t.Helper()
	service, exported := world.Service(k, ports...), world.Export(k)
	service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	service.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
	exported.Spec.ExportedLabels = map[string]string{"team": team}
	world.Create(t, m, service, world.Slice(service, "v4", address), exported)
	return exported
}

// later waits until what is created now in any of the clusters is younger than an object of the given time.
func (w *env) later(t *testing.T, than metav1.Time) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		for _, m := range w.members {
			probe := world.Export(key{Namespace: metav1.NamespaceDefault, Name: "probe"})
			if err := m.Create(ctx, probe, client.DryRunAll); err != nil {
				return err
			}
			if !than.Time.Before(probe.CreationTimestamp.Time) {
				return fmt.Errorf("in %s it is still %s", m.ID, than)
			}
		}
		return nil
	})
}

// dispute has both members export a service with different ports, and returns it when both report the conflict.
func (w *env) dispute(t *testing.T, ns string) key {
	t.Helper()
	k := key{Namespace: ns, Name: "disputed"}
	a, b := w.members["a"], w.members["b"]
	a.ExportWeb(t, k, "10.1.9.1")
	w.later(t, a.Condition(t, k, ready, metav1.ConditionTrue, "Exported").LastTransitionTime)
	younger := world.Service(k, world.Port("http", 81))
	b.ExportService(t, younger, world.Slice(younger, "v4", "10.2.9.1"))
	for _, m := range w.members {
		m.Condition(t, k, conflict, metav1.ConditionTrue, "PortConflict")
		m.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
		m.Event(t, k, "PortConflict", "")
		m.Endpoints(t, k, "a 10.1.9.1:http:8080")
	}
	return k
}

// If the oldest export leaves, the values of the next oldest count; no address changes.
//
// spec: R1, R2, R3, R4, R5, R7, I5, E3, C3, C4, C5
func testOldestLeaves(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	w.Enroll(t, "oldest")
	w.Publish(t, "oldest", k, func(s *hubv1alpha1.PublishedService) {
		s.Spec.Labels = map[string]hubv1alpha1.LabelValue{"team": "oldest"}
		s.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv4", "IPv6"}
		s.Spec.SessionAffinity, s.Spec.SessionAffinityTimeoutSeconds = corev1.ServiceAffinityClientIP, 3
	})
	record := w.record(t, "oldest", k)
	w.later(t, record.CreationTimestamp)
	second := a.exportTeam(t, k, "10.1.0.1", "a", 1, world.Port("web", 80), world.Port("http", 8080))
	w.later(t, second.CreationTimestamp)
	b.exportTeam(t, k, "10.2.0.1", "b", 2, world.Port("http", 80), world.Port("web", 8080))

	w.agreed(t, k, agreement{"oldest", "http:80 web:8080", "a b oldest", 3})
	derived := map[string]*corev1.Service{}
	for id, m := range w.members { // the names of a's ports are swapped
		m.Endpoints(t, k, "a 10.1.0.1:http:8080", "a 10.1.0.1:web:16080", "b 10.2.0.1:http:8080", "b 10.2.0.1:web:16080")
		_, derived[id] = m.Imported(t, k)
	}
	lab.Must(t, w.HubClient.Delete(t.Context(), record))
	w.agreed(t, k, agreement{"a", "web:80 http:8080", "a b", 1})
	for _, m := range w.members {
		m.Endpoints(t, k, "a 10.1.0.1:web:8080", "a 10.1.0.1:http:16080", "b 10.2.0.1:web:8080", "b 10.2.0.1:http:16080")
		m.Condition(t, k, conflict, metav1.ConditionTrue, "PortConflict,SessionAffinityConfigConflict,LabelsConflict")
		m.Event(t, k, "PortConflict,SessionAffinityConfigConflict,LabelsConflict", `Using "web:80/TCP, http:8080/TCP" from all service exports, that in "a" first. 1/2 clusters disagree.`)
	}

	lab.Must(t, a.Delete(t.Context(), world.Export(k)))
	w.agreed(t, k, agreement{"b", "http:80 web:8080", "b", 2})
	b.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	for id, m := range w.members {
		m.Endpoints(t, k, "b 10.2.0.1:http:8080", "b 10.2.0.1:web:16080")
		_, after := m.Imported(t, k)
		if diff := cmp.Diff(derived[id].Spec.ClusterIPs, after.Spec.ClusterIPs); diff != "" || after.UID != derived[id].UID {
			t.Errorf("%s: the derived Service was replaced, addresses (-before +after):\n%s", id, diff)
		}
	}
	lab.Must(t, b.Delete(t.Context(), world.Export(k)))
	for _, m := range w.members {
		m.Gone(t, k)
	}
}

// A member that may no longer publish services of a namespace exports none of it, in its own cluster either, and reports
// that. Exports of other members are not affected; when the namespace is allowed again, all is as before.
//
// spec: C7, I2, R7
func testNamespaceNotAllowed(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	alone := key{Namespace: k.Namespace, Name: "alone"}
	exported := a.exportTeam(t, k, "10.1.0.1", "blue", 600, world.Port("http", 80))
	a.ExportWeb(t, alone, "10.1.0.2")
	w.later(t, exported.CreationTimestamp)
	b.exportTeam(t, k, "10.2.0.1", "red", 600, world.Port("http", 80))
	complete := func() {
		t.Helper()
		w.agreed(t, k, agreement{"blue", "http:80", "a b", 600})
		a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
		for _, m := range w.members {
			m.Condition(t, k, conflict, metav1.ConditionTrue, "LabelsConflict")
			m.Endpoints(t, alone, "a 10.1.0.2:http:8080")
		}
	}
	complete()

	w.ChangeMember(t, "a", func(s *hubv1alpha1.MemberSpec) { s.Namespaces = []hubv1alpha1.NamespaceName{"elsewhere"} })
	w.agreed(t, k, agreement{"red", "http:80", "b", 600})
	for _, m := range w.members {
		m.Endpoints(t, k, "b 10.2.0.1:http:8080")
		m.Gone(t, alone)
	}
	message := fmt.Sprintf("The hub refuses the export: the Member of cluster a does not allow namespace %s: "+
		"do not export from it, or let an administrator of the hub add it to the Member", k.Namespace)
	for _, of := range []key{k, alone} {
		if got := a.Condition(t, of, ready, metav1.ConditionFalse, "NotAllowed").Message; got != message {
			t.Errorf("message on %s: %s\nwant: %s", of, got, message)
		}
	}
	for _, m := range w.members { // a no longer takes part
		m.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	}
	w.ChangeMember(t, "a", func(s *hubv1alpha1.MemberSpec) { s.Namespaces = nil })
	complete()
}

// testInvalidExport: an export that the hub's schema refuses costs a few writes and no more, though the API server lists what is wrong
// with it in another order each time. It is published once it is valid.
//
// spec: C2, C3
func testInvalidExport(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	lab.Must(t, a.Create(t.Context(), world.Service(k, world.Port("http", 80))))
	invalid := world.Export(k)
	invalid.Spec = mcsv1beta1.ServiceExportSpec{ExportedAnnotations: map[string]string{}, ExportedLabels: map[string]string{}}
	for i := range 10 {
		name := fmt.Sprintf("key-%d", i)
		invalid.Spec.ExportedAnnotations[name], invalid.Spec.ExportedLabels[name] = strings.Repeat("x", 4097), "no label has spaces"
	}
	before := w.settled(t)
	lab.Must(t, a.Create(t.Context(), invalid))
	a.Condition(t, k, ready, metav1.ConditionFalse, "Failed")
	for range 3 { // an endless loop writes dozens of times a second
		a.beats(t, w)
	}
	spent := w.settled(t).since(before)
	for what, most := range map[string]int{"a serviceexports/status PUT 200": 3, "hub publishedservices POST 422": 3} {
		if spent[what] > most {
			t.Errorf("%d writes %q, want %d at most", spent[what], what, most)
		}
	}
	world.Update(t, a, k, invalid, func() { invalid.Spec = mcsv1beta1.ServiceExportSpec{} })
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	b.Imported(t, k)
}
