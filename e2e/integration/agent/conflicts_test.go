// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// TestConflicts has three members disagree. What they say of a service must be the same in all of them, whatever the
// order in which it came.
//
//nolint:tparallel // while they waited for their turn, other tests would start clusters
func TestConflicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Member("a"), lab.Member("b"), lab.Member("c"))
	for _, m := range w.members {
		m.start(t)
	}
	for name, story := range map[string]func(*testing.T, *world){
		"EveryReason":        testEveryReason,
		"PortsMixed":         testPortsMixed,
		"TheOldestLeaves":    testTheOldestLeaves,
		"EqualAges":          testEqualAges,
		"LyingAge":           testLyingAge,
		"ThirtyDisagree":     testThirtyDisagree,
		"IllegalLateLabel":   testIllegalLateLabel,
		"NamespaceTakenBack": testNamespaceTakenBack,
	} {
		t.Run(name, func(t *testing.T) { story(t, w) })
	}
}

// variant changes what a member exports.
type variant func(*corev1.Service, *mcsv1beta1.ServiceExport)

// exportVariant creates a Service with an endpoint for each of its ports, and its export. The Service keeps its clients,
// its traffic goes to the nearest zone, and it has a label and an annotation, so that there is something to disagree on.
func (m *member) exportVariant(t *testing.T, k key, address string, change variant) *mcsv1beta1.ServiceExport {
	t.Helper()
	service, exported := varied(k, change)
	lab.Must(t, m.Create(t.Context(), service))
	if address != "" {
		lab.Must(t, m.Create(t.Context(), slice(service, "v4", discoveryv1.AddressTypeIPv4, address)))
	}
	lab.Must(t, m.Create(t.Context(), exported))
	return exported
}

func varied(k key, change variant) (*corev1.Service, *mcsv1beta1.ServiceExport) {
	service, exported := clusterIPService(k, port("http", 80)), export(k)
	service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	service.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(600))}}
	service.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	service.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
	exported.Spec.ExportedLabels = map[string]string{"team": "blue"}
	exported.Spec.ExportedAnnotations = map[string]string{"docs": "https://example.com"}
	change(service, exported)
	return service, exported
}

func unchanged(*corev1.Service, *mcsv1beta1.ServiceExport) {}

// unvaried is the ServiceImport, as far as all clusters agree on it, of a service of which the oldest export is unchanged.
func unvaried() mcsv1beta1.ServiceImport {
	return mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"team": "blue", "app.kubernetes.io/managed-by": "tombolo-mcs.io"},
			Annotations: map[string]string{"docs": "https://example.com"},
		},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type:                  mcsv1beta1.ClusterSetIP,
			Ports:                 []mcsv1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
			IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
			SessionAffinity:       corev1.ServiceAffinityClientIP,
			SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(600))}},
			InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
			TrafficDistribution:   new(corev1.ServiceTrafficDistributionPreferClose),
		},
	}
}

// later waits until what is created now in any of the clusters is younger than the objects of the given time.
func (w *world) later(t *testing.T, than metav1.Time) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		for _, m := range w.members {
			probe := export(key{Namespace: metav1.NamespaceDefault, Name: "probe"})
			if err := m.Create(ctx, probe, client.DryRunAll); err != nil {
				return err
			}
			if !than.Time.Before(probe.CreationTimestamp.Time) {
				return fmt.Errorf("in %s it is still %s", m.id, than)
			}
		}
		return nil
	})
}

// conflicting waits until the export says these conflicts, and an Event for this reason goes with it.
func (m *member) conflicting(t *testing.T, k key, reason, message, event string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		e := &mcsv1beta1.ServiceExport{}
		if err := m.Get(ctx, k, e); err != nil {
			return err
		}
		c := meta.FindStatusCondition(e.Status.Conditions, string(conflict))
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason || c.Message != message || c.ObservedGeneration != e.Generation {
			return fmt.Errorf("%s: condition of %s is %+v, want\n%s\n%s", m.id, k, c, reason, message)
		}
		return m.hasEvent(ctx, k, event)
	})
}

// agreed waits until the import of a service is the same in all clusters, their own addresses and the derived Service's
// name apart, and is what is wanted (spec R7).
func (w *world) agreed(t *testing.T, k key, want mcsv1beta1.ServiceImport, exporters ...string) {
	t.Helper()
	wanted, err := json.Marshal(common(want, exporters))
	lab.Must(t, err)
	eventually(t, func(ctx context.Context) error {
		for _, m := range w.members {
			got := mcsv1beta1.ServiceImport{}
			if err := m.Get(ctx, k, &got); err != nil {
				return err
			}
			var names []string
			for _, status := range got.Status.Clusters {
				names = append(names, status.Cluster)
			}
			bytes, err := json.Marshal(common(got, names))
			if err != nil {
				return err
			}
			if diff := cmp.Diff(string(wanted), string(bytes)); diff != "" {
				return fmt.Errorf("%s: import %s (-want +got):\n%s", m.id, k, diff)
			}
		}
		return nil
	})
}

// common returns what all clusters must agree on of an import.
func common(i mcsv1beta1.ServiceImport, exporters []string) any {
	annotations := maps.Clone(i.Annotations)
	delete(annotations, "multicluster.kubernetes.io/derived-service")
	spec := i.Spec.DeepCopy()
	spec.IPs = nil
	return []any{i.Labels, annotations, spec, exporters}
}

// disagreement is one way to differ from the unvaried export, and the conflicts that it raises.
type disagreement struct {
	name      string
	change    variant
	conflicts []said
}

// said is a conflict as an export's condition says it.
type said struct {
	reason, field, using string
}

// message words a conflict after the KEP's model; ports and families are united (spec C5).
func (s said) message(oldest string, disagree, exporters int) string {
	source := fmt.Sprintf("from oldest service export in %q", oldest)
	if s.field == "ports" || s.field == "IP families" {
		source = fmt.Sprintf("from all service exports, that in %q first", oldest)
	}
	return fmt.Sprintf("Conflicting %s. Using %q %s. %d/%d clusters disagree.", s.field, s.using, source, disagree, exporters)
}

// disagreements returns all there are, in the order in which they are reported.
func disagreements() []disagreement {
	return []disagreement{
		{"ports", func(s *corev1.Service, _ *mcsv1beta1.ServiceExport) {
			s.Spec.Ports = []corev1.ServicePort{port("http", 81)}
		}, []said{{"PortConflict", "ports", "http:80/TCP"}}},
		{"type", func(s *corev1.Service, _ *mcsv1beta1.ServiceExport) {
			s.Spec.ClusterIP, s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ClusterIPNone, "", nil
		}, []said{{"TypeConflict", "type", "ClusterSetIP"}}},
		{"affinity", func(s *corev1.Service, _ *mcsv1beta1.ServiceExport) { // no affinity has no timeout
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ServiceAffinityNone, nil
		}, []said{
			{"SessionAffinityConflict", "session affinity", "ClientIP"},
			{"SessionAffinityConfigConflict", "session affinity config", "600s"},
		}},
		{"timeout", func(s *corev1.Service, _ *mcsv1beta1.ServiceExport) {
			s.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds = new(int32(601))
		}, []said{{"SessionAffinityConfigConflict", "session affinity config", "600s"}}},
		{"labels", func(_ *corev1.Service, e *mcsv1beta1.ServiceExport) {
			e.Spec.ExportedLabels = map[string]string{"team": "red"}
		}, []said{{"LabelsConflict", "exported labels", "team=blue"}}},
		{"annotations", func(_ *corev1.Service, e *mcsv1beta1.ServiceExport) {
			e.Spec.ExportedAnnotations = nil
		}, []said{{"AnnotationsConflict", "exported annotations", "docs=https://example.com"}}},
		{"policy", func(s *corev1.Service, _ *mcsv1beta1.ServiceExport) {
			s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		}, []said{{"InternalTrafficPolicyConflict", "internal traffic policy", "Cluster"}}},
		{"distribution", func(s *corev1.Service, _ *mcsv1beta1.ServiceExport) {
			s.Spec.TrafficDistribution = nil
		}, []said{{"TrafficDistributionConflict", "traffic distribution", "PreferClose"}}},
		{"families", func(s *corev1.Service, _ *mcsv1beta1.ServiceExport) {
			s.Spec.IPFamilyPolicy, s.Spec.IPFamilies = new(corev1.IPFamilyPolicySingleStack), []corev1.IPFamily{corev1.IPv4Protocol}
		}, []said{{"IPFamilyConflict", "IP families", "IPv4, IPv6"}}},
	}
}

// disagreeing is a service that is exported as it is by c, the oldest, and otherwise by a and b.
type disagreeing struct {
	a, b []string // names of disagreements
}

// changed returns the changes of disagreements of these names.
func changed(names []string) variant {
	return func(s *corev1.Service, e *mcsv1beta1.ServiceExport) {
		for _, d := range disagreements() {
			if slices.Contains(names, d.name) {
				d.change(s, e)
			}
		}
	}
}

// verdict returns the reason and the message of the condition where these exporters disagree with c.
func verdict(disagree ...[]string) (reason, message string) {
	var reasons, messages []string
	for _, d := range disagreements() {
		count := 0
		for _, names := range disagree {
			if slices.Contains(names, d.name) {
				count++
			}
		}
		for _, s := range d.conflicts {
			if count > 0 {
				reasons, messages = append(reasons, s.reason), append(messages, s.message("c", count, 3))
			}
		}
	}
	return strings.Join(reasons, ","), strings.Join(messages, " ")
}

// Each reason by itself and all together: every exporter says the same, with an Event, the oldest's values hold, and the
// conflict goes with those who disagree.
//
// spec: C3, C4, C5, R1, R3, R4, R5, R7
func testEveryReason(t *testing.T, w *world) {
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	ns := namespace(t, a, b, c)
	services := map[key]disagreeing{{Namespace: ns, Name: "everything"}: {
		a: []string{"ports", "affinity", "labels", "annotations", "policy", "distribution", "families"}, b: []string{"type"},
	}}
	for _, d := range disagreements() {
		services[key{Namespace: ns, Name: d.name}] = disagreeing{a: []string{d.name}, b: []string{d.name}}
	}
	var last metav1.Time
	for k := range services {
		last = c.exportVariant(t, k, "", unchanged).CreationTimestamp
	}
	w.later(t, last)
	for k, s := range services {
		a.exportVariant(t, k, "", changed(s.a))
		b.exportVariant(t, k, "", changed(s.b))
	}
	// An Event's reason has 128 characters at most: the note says the rest.
	const shortened = "PortConflict,TypeConflict,SessionAffinityConflict,SessionAffinityConfigConflict,LabelsConflict,AnnotationsConflict"
	for k, s := range services {
		reason, message := verdict(s.a, s.b)
		event := reason
		if k.Name == "everything" {
			event = shortened
		}
		for _, m := range w.members {
			m.conflicting(t, k, reason, message, event)
		}
		w.agreed(t, k, unvaried(), "a", "b", "c")
	}
	for k, s := range services {
		a.makeUnvaried(t, k)
		reason, message := verdict(nil, s.b)
		for _, m := range w.members {
			m.conflicting(t, k, reason, message, reason)
		}
		w.agreed(t, k, unvaried(), "a", "b", "c")
	}
	for k := range services {
		lab.Must(t, b.Delete(t.Context(), export(k)))
		for _, m := range []*member{a, c} {
			if got := m.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts"); got.Message != "No other cluster exports this service differently." {
				t.Errorf("%s: the message on %s is %s", m.id, k, got.Message)
			}
		}
		w.agreed(t, k, unvaried(), "a", "c")
	}
}

// makeUnvaried makes what a member exports the unvaried export. A Service keeps its kind, so it is made anew.
func (m *member) makeUnvaried(t *testing.T, k key) {
	t.Helper()
	service, exported := varied(k, unchanged)
	lab.Must(t, m.Delete(t.Context(), clusterIPService(k)))
	lab.Must(t, m.Create(t.Context(), service))
	current := export(k)
	eventually(t, func(ctx context.Context) error { // the agent writes the status meanwhile
		if err := m.Get(ctx, k, current); err != nil {
			return err
		}
		current.Spec = exported.Spec
		return m.Update(ctx, current)
	})
}

// Ports with and without names, of one number and of one name, in three clusters.
//
// spec: R1, R2, R7
func testPortsMixed(t *testing.T, w *world) {
	members := []*member{w.members["a"], w.members["b"], w.members["c"]}
	ns := namespace(t, members...)
	udp := func(name string, number int32) corev1.ServicePort {
		p := port(name, number)
		p.Protocol = corev1.ProtocolUDP
		return p
	}
	cases := map[string]struct {
		ports     [3][]corev1.ServicePort // of a, b and c
		union     []mcsv1beta1.ServicePort
		derived   []string
		endpoints []string
	}{
		"unnamed": { // c's admin has another number than b's, whose number c calls web
			ports: [3][]corev1.ServicePort{{port("", 80)}, {port("web", 80), port("admin", 9090)}, {port("admin", 9091), port("web", 9090)}},
			union: []mcsv1beta1.ServicePort{{Protocol: "TCP", Port: 80}, {Name: "admin", Protocol: "TCP", Port: 9090}},
			endpoints: []string{
				"a 10.1.0.1:unnamed:8080", "b 10.2.0.1:unnamed:8080", "b 10.2.0.1:admin:17090", "c 10.3.0.1:admin:17090",
			},
			derived: []string{"unnamed 80/TCP", "admin 9090/TCP"},
		},
		"swapped": { // the very names that the other uses
			ports: [3][]corev1.ServicePort{{port("x", 1), port("y", 2)}, {port("y", 1), port("x", 2)}, {port("x", 2)}},
			union: []mcsv1beta1.ServicePort{{Name: "x", Protocol: "TCP", Port: 1}, {Name: "y", Protocol: "TCP", Port: 2}},
			endpoints: []string{
				"a 10.1.0.1:x:8001", "a 10.1.0.1:y:8002", "b 10.2.0.1:x:8001", "b 10.2.0.1:y:8002", "c 10.3.0.1:y:8002",
			},
			derived: []string{"x 1/TCP", "y 2/TCP"},
		},
		"lost": { // b has nothing that anybody can send to
			ports:     [3][]corev1.ServicePort{{port("http", 80)}, {port("http", 81)}, {port("", 80)}},
			union:     []mcsv1beta1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80}},
			endpoints: []string{"a 10.1.0.1:http:8080", "c 10.3.0.1:http:8080"},
			derived:   []string{"http 80/TCP"},
		},
		"called-unnamed": { // the name that the port without a name would have
			ports:     [3][]corev1.ServicePort{{port("unnamed", 80)}, {port("", 81)}, {port("unnamed-2", 82)}},
			union:     []mcsv1beta1.ServicePort{{Name: "unnamed", Protocol: "TCP", Port: 80}, {Protocol: "TCP", Port: 81}, {Name: "unnamed-2", Protocol: "TCP", Port: 82}},
			endpoints: []string{"a 10.1.0.1:unnamed:8080", "b 10.2.0.1:unnamed-2:8081", "c 10.3.0.1:unnamed-2-2:8082"},
			derived:   []string{"unnamed 80/TCP", "unnamed-2 81/TCP", "unnamed-2-2 82/TCP"},
		},
		"protocols": { // one number, two protocols; c's name for UDP is taken
			ports:     [3][]corev1.ServicePort{{port("dns", 53)}, {udp("dns-udp", 53)}, {udp("dns", 53)}},
			union:     []mcsv1beta1.ServicePort{{Name: "dns", Protocol: "TCP", Port: 53}, {Name: "dns-udp", Protocol: "UDP", Port: 53}},
			endpoints: []string{"a 10.1.0.1:dns:8053", "b 10.2.0.1:dns-udp:8053", "c 10.3.0.1:dns-udp:8053"},
			derived:   []string{"dns 53/TCP", "dns-udp 53/UDP"},
		},
	}
	for name, test := range cases {
		for i, m := range members {
			m.exportVariant(t, key{Namespace: ns, Name: name}, fmt.Sprintf("10.%d.0.1", i+1), func(s *corev1.Service, _ *mcsv1beta1.ServiceExport) {
				s.Spec.Ports = test.ports[i]
			})
		}
	}
	for name, test := range cases {
		k := key{Namespace: ns, Name: name}
		want := unvaried()
		want.Spec.Ports = test.union
		w.agreed(t, k, want, "a", "b", "c")
		for _, m := range members {
			m.endpoints(t, k, test.endpoints...)
			m.condition(t, k, conflict, metav1.ConditionTrue, "PortConflict")
			_, derived := m.imported(t, k)
			var got []string
			for _, p := range derived.Spec.Ports {
				got = append(got, fmt.Sprintf("%s %d/%s", p.Name, p.Port, p.Protocol))
			}
			if diff := cmp.Diff(test.derived, got); diff != "" {
				t.Errorf("%s: ports of %s (-want +got):\n%s", m.id, derived.Name, diff)
			}
		}
	}
}

// Where the oldest leaves, the next oldest's word counts; no address changes.
//
// spec: R1, R2, R3, R4, R7, I5, E3, C4
func testTheOldestLeaves(t *testing.T, w *world) {
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	k := key{Namespace: namespace(t, a, b, c), Name: "web"}
	says := func(team string, timeout int32, ports ...corev1.ServicePort) variant {
		return func(s *corev1.Service, e *mcsv1beta1.ServiceExport) {
			s.Spec.Ports, s.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds = ports, &timeout
			e.Spec.ExportedLabels["team"] = team
		}
	}
	wanted := func(team string, timeout int32, ports ...mcsv1beta1.ServicePort) mcsv1beta1.ServiceImport {
		want := unvaried()
		want.Labels["team"], want.Spec.Ports, want.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds = team, ports, &timeout
		return want
	}
	tcp := func(name string, number int32) mcsv1beta1.ServicePort {
		return mcsv1beta1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: number}
	}
	first := c.exportVariant(t, k, "10.3.0.1", says("c", 3, port("http", 80)))
	w.later(t, first.CreationTimestamp)
	second := a.exportVariant(t, k, "10.1.0.1", says("a", 1, port("web", 80), port("http", 8080)))
	w.later(t, second.CreationTimestamp)
	b.exportVariant(t, k, "10.2.0.1", says("b", 2, port("http", 80), port("web", 8080)))

	w.agreed(t, k, wanted("c", 3, tcp("http", 80), tcp("web", 8080)), "a", "b", "c")
	derived := map[string]*corev1.Service{}
	for id, m := range w.members {
		m.endpoints(t, k, // a's http has the number of the web of b, which is the youngest
			"c 10.3.0.1:http:8080", "a 10.1.0.1:http:8080", "a 10.1.0.1:web:16080", "b 10.2.0.1:http:8080", "b 10.2.0.1:web:16080")
		_, derived[id] = m.imported(t, k)
	}
	const reason = "PortConflict,SessionAffinityConfigConflict,LabelsConflict"
	lab.Must(t, c.Delete(t.Context(), export(k)))
	w.agreed(t, k, wanted("a", 1, tcp("web", 80), tcp("http", 8080)), "a", "b")
	for _, m := range w.members {
		m.endpoints(t, k, "a 10.1.0.1:web:8080", "a 10.1.0.1:http:16080", "b 10.2.0.1:web:8080", "b 10.2.0.1:http:16080")
	}
	message := said{"", "ports", "web:80/TCP, http:8080/TCP"}.message("a", 1, 2) + " " +
		said{"", "session affinity config", "1s"}.message("a", 1, 2) + " " + said{"", "exported labels", "team=a"}.message("a", 1, 2)
	a.conflicting(t, k, reason, message, reason)
	b.conflicting(t, k, reason, message, reason)

	lab.Must(t, a.Delete(t.Context(), export(k)))
	w.agreed(t, k, wanted("b", 2, tcp("http", 80), tcp("web", 8080)), "b")
	b.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	for id, m := range w.members {
		m.endpoints(t, k, "b 10.2.0.1:http:8080", "b 10.2.0.1:web:16080")
		_, after := m.imported(t, k)
		if after.UID != derived[id].UID || !slices.Equal(after.Spec.ClusterIPs, derived[id].Spec.ClusterIPs) {
			t.Errorf("%s: the derived Service was %v and is %v", id, derived[id], after)
		}
	}
	lab.Must(t, b.Delete(t.Context(), export(k)))
	for _, m := range w.members {
		m.gone(t, k)
	}
}
