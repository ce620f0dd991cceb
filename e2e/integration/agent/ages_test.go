// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// Of exports of the same second that of the smaller cluster ID counts, in whatever order they came.
//
// spec: R7, R3, R4
func testEqualAges(t *testing.T, w *world) {
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	k := key{Namespace: namespace(t, a, b, c), Name: "web"}
	exports := map[*member]*mcsv1beta1.ServiceExport{}
	for _, m := range w.members {
		var service *corev1.Service
		service, exports[m] = varied(k, changed(nil))
		exports[m].Spec.ExportedLabels["team"] = m.id
		lab.Must(t, m.Create(t.Context(), service))
	}
	eventually(t, func(ctx context.Context) error {
		var at []string
		for _, m := range []*member{c, b, a} {
			fresh := exports[m].DeepCopy()
			lab.Must(t, client.IgnoreNotFound(m.Delete(ctx, fresh.DeepCopy())))
			lab.Must(t, m.Create(ctx, fresh))
			at = append(at, fresh.CreationTimestamp.String())
		}
		if len(slices.Compact(at)) > 1 {
			return fmt.Errorf("the exports are of different seconds: %v", at)
		}
		return nil
	})
	want := unvaried()
	want.Labels["team"] = "a"
	w.agreed(t, k, want, "a", "b", "c")
	for _, m := range w.members {
		m.conflicting(t, k, "LabelsConflict", said{"", "exported labels", "team=a"}.message("a", 2, 3), "LabelsConflict")
	}
	lab.Must(t, a.Delete(t.Context(), export(k)))
	want.Labels["team"] = "b"
	w.agreed(t, k, want, "b", "c")
}

// claim returns a member's record of a service that is exported like the unvaried one, with the label team=<id>, and as
// it claims at that time.
func claim(id string, k key, at time.Time) *hubv1alpha1.PublishedService {
	return &hubv1alpha1.PublishedService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + id, Name: k.Namespace + "." + k.Name},
		Spec: hubv1alpha1.PublishedServiceSpec{
			Namespace: hubv1alpha1.NamespaceName(k.Namespace), Service: hubv1alpha1.ServiceName(k.Name),
			ExportedAt: metav1.NewTime(at), Type: mcsv1beta1.ClusterSetIP, IPFamilies: []hubv1alpha1.IPFamily{"IPv4", "IPv6"},
			Ports:           []hubv1alpha1.PublishedPort{{Name: "http", Protocol: "TCP", Port: 80}},
			SessionAffinity: corev1.ServiceAffinityClientIP, SessionAffinityTimeoutSeconds: 600,
			InternalTrafficPolicy: "Cluster", TrafficDistribution: "PreferClose",
			Labels:      map[string]hubv1alpha1.LabelValue{"team": hubv1alpha1.LabelValue(id)},
			Annotations: map[string]hubv1alpha1.AnnotationValue{"docs": "https://example.com"},
		},
	}
}

// enroll makes a member of a cluster that does not exist, as the hub's administrator does it. It has no quota, which
// would take its time.
func (w *world) enroll(t *testing.T, id string, ages hubv1alpha1.ClaimedAges) {
	t.Helper()
	namespace := "member-" + id
	lab.Must(t, w.hubKube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	lab.Must(t, w.hubKube.Create(t.Context(), &hubv1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "member"},
		Spec:       hubv1alpha1.MemberSpec{ClusterID: id, PodCIDRs: []hubv1alpha1.CIDR{"10.99.0.0/16"}, ClaimedAges: ages},
	}))
}

// createRecord creates a record on the hub as soon as its policies have found the Member.
func createRecord(t *testing.T, hub client.Client, r *hubv1alpha1.PublishedService) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(hub.Create(ctx, r.DeepCopy())) // where it was made, and not told
	})
}

// A member that says that its export is of long ago wins over no older one, unless the hub's administrator trusts it.
//
// spec: R8, R6, R7
func testLyingAge(t *testing.T, w *world) {
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	k := key{Namespace: namespace(t, a, b, c), Name: "web"}
	credentials, err := membership.Admit(t.Context(), w.hub, manifests.MemberOptions{
		ClusterID: "a-liar", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.98.0.0/16")},
	})
	lab.Must(t, err)
	liar, err := client.New(credentials, client.Options{Scheme: w.hubKube.Scheme()})
	lab.Must(t, err)
	w.enroll(t, "elder", hubv1alpha1.ClaimedAgesTrusted)
	createRecord(t, w.hubKube, claim("elder", k, time.Now().Add(-time.Hour)))
	a.exportVariant(t, k, "10.1.0.1", unchanged)
	long := time.Date(2001, time.January, 1, 0, 0, 0, 0, time.UTC)
	createRecord(t, liar, claim("a-liar", k, long))

	says := func(oldest string) {
		t.Helper()
		want := unvaried()
		want.Labels["team"] = oldest
		w.agreed(t, k, want, "a", "a-liar", "elder")
		a.conflicting(t, k, "LabelsConflict", said{"", "exported labels", "team=" + oldest}.message(oldest, 2, 3), "LabelsConflict")
	}
	says("elder")
	again := claim("a-liar", k, long.AddDate(-100, 0, 0)) // it repeats it louder
	current := &hubv1alpha1.PublishedService{}
	lab.Must(t, liar.Get(t.Context(), client.ObjectKeyFromObject(again), current))
	again.ResourceVersion = current.ResourceVersion
	again.Spec.Annotations["docs"] = "said again"
	lab.Must(t, liar.Update(t.Context(), again))
	a.conflicting(t, k, "LabelsConflict,AnnotationsConflict", said{"", "exported labels", "team=elder"}.message("elder", 2, 3)+" "+
		said{"", "exported annotations", "docs=https://example.com"}.message("elder", 1, 3), "LabelsConflict,AnnotationsConflict")
	again.Spec.Annotations["docs"] = "https://example.com"
	lab.Must(t, liar.Update(t.Context(), again))
	says("elder")

	member := &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a-liar", Name: "member"}}
	lab.Must(t, w.hubKube.Get(t.Context(), client.ObjectKeyFromObject(member), member))
	member.Spec.ClaimedAges = hubv1alpha1.ClaimedAgesTrusted
	if err := liar.Update(t.Context(), member.DeepCopy()); err == nil {
		t.Error("a member trusts itself")
	}
	lab.Must(t, w.hubKube.Update(t.Context(), member))
	says("a-liar")
	member.Spec.ClaimedAges = hubv1alpha1.ClaimedAgesBounded
	lab.Must(t, w.hubKube.Update(t.Context(), member))
	says("elder")
}

// Thirty clusters disagree with the oldest in everything, whose own words are as long as they can be: what users read is
// within the API's bounds, and still says who counts and how many disagree.
//
// spec: C3, C4, C5, R7
func testThirtyDisagree(t *testing.T, w *world) {
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	k := key{Namespace: namespace(t, a, b, c), Name: "web"}
	a.exportVariant(t, k, "10.1.0.1", func(s *corev1.Service, e *mcsv1beta1.ServiceExport) {
		s.Spec.Ports = nil
		for i := range int32(100) {
			s.Spec.Ports = append(s.Spec.Ports, port(fmt.Sprintf("p%03d-%s", i, strings.Repeat("x", 58)), 1000+i))
		}
		e.Spec.ExportedLabels, e.Spec.ExportedAnnotations = map[string]string{}, map[string]string{}
		for i := range 60 {
			e.Spec.ExportedLabels[fmt.Sprintf("label-%02d", i)] = strings.Repeat("v", 63)
			e.Spec.ExportedAnnotations[fmt.Sprintf("note-%02d", i)] = strings.Repeat("\"\n\u00fc\U0001f600", 512)
		}
	})
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	for i := range 30 {
		id := fmt.Sprintf("thirty-%02d-%s", i, strings.Repeat("x", 46)) // 56 characters
		w.enroll(t, id, hubv1alpha1.ClaimedAgesBounded)
		r := claim(id, k, time.Now().Add(time.Minute))
		r.Spec.Labels["team"] = "red"
		r.Spec.Ports[0].Port += int32(i)
		r.Spec.IPFamilies = r.Spec.IPFamilies[:1]
		r.Spec.InternalTrafficPolicy, r.Spec.TrafficDistribution = "Local", ""
		if i > 0 {
			r.Spec.SessionAffinity, r.Spec.SessionAffinityTimeoutSeconds = corev1.ServiceAffinityNone, 0
		} else { // which has no affinity to disagree on
			r.Spec.Type, r.Spec.SessionAffinity, r.Spec.SessionAffinityTimeoutSeconds = mcsv1beta1.Headless, "", 0
		}
		createRecord(t, w.hubKube, r)
	}
	var reasons []string
	for _, d := range disagreements() {
		if d.name != "timeout" {
			for _, s := range d.conflicts {
				reasons = append(reasons, s.reason)
			}
		}
	}
	condition := a.condition(t, k, conflict, metav1.ConditionTrue, strings.Join(reasons, ","))
	eventually(t, func(ctx context.Context) error {
		e := &mcsv1beta1.ServiceExport{}
		if err := a.Get(ctx, k, e); err != nil {
			return err
		}
		condition = *meta.FindStatusCondition(e.Status.Conditions, string(conflict))
		winner, all := strings.Count(condition.Message, ` in "a"`), strings.Count(condition.Message, "30/31 clusters disagree.")
		if winner != len(reasons) || all != len(reasons)-3 {
			return fmt.Errorf("the winner is named %d times, all %d times in: %s", winner, all, condition.Message)
		}
		return nil
	})
	for _, part := range []string{
		`Conflicting type. Using "ClusterSetIP" from oldest service export in "a". 1/31 clusters disagree. `,
		`Conflicting session affinity. Using "ClientIP" from oldest service export in "a". 29/31 clusters disagree. `,
		`Conflicting session affinity config. Using "600s" from oldest service export in "a". 29/31 clusters disagree. `,
	} {
		if !strings.Contains(condition.Message, part) {
			t.Errorf("it is not said that %s, but:\n%s", part, condition.Message)
		}
	}
	if !utf8.ValidString(condition.Message) {
		t.Errorf("message %q", condition.Message)
	}
	for _, m := range w.members {
		serviceImport, derived := m.imported(t, k)
		eventually(t, func(ctx context.Context) error {
			lab.Must(t, m.Get(ctx, k, serviceImport))
			lab.Must(t, m.Get(ctx, client.ObjectKeyFromObject(derived), derived))
			if n := len(serviceImport.Status.Clusters); n != 31 || len(derived.Spec.Ports) != 100 && len(derived.Spec.Ports) != 101 {
				return fmt.Errorf("%s: %d exporters, %d ports", m.id, n, len(derived.Spec.Ports))
			}
			return nil
		})
	}
	eventually(t, func(ctx context.Context) error { return a.hasNote(ctx, k, `Conflicting ports. Using "p000-`) })
}

// hasNote returns nil once there is an Event about an export of this name whose note begins like this.
func (m *member) hasNote(ctx context.Context, k key, begin string) error {
	list := &eventsv1.EventList{}
	if err := m.List(ctx, list, client.InNamespace(k.Namespace)); err != nil {
		return err
	}
	for _, event := range list.Items {
		if event.Regarding.Name == k.Name && event.Regarding.Kind == "ServiceExport" && strings.HasPrefix(event.Note, begin) {
			return nil
		}
	}
	return errors.New(m.id + ": no Event about " + k.String() + " begins with " + begin)
}

// An export to which a label is added that no object can have is not taken to the hub, where the others' imports and its
// own go on with what it said before (spec C7).
//
// spec: C7, R7, C2
func testIllegalLateLabel(t *testing.T, w *world) {
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	k := key{Namespace: namespace(t, a, b, c), Name: "web"}
	exported := a.exportVariant(t, k, "10.1.0.1", unchanged)
	a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
	w.agreed(t, k, unvaried(), "a")
	lab.Must(t, a.Get(t.Context(), k, exported))
	exported.Spec.ExportedLabels["not a label!"] = "red"
	lab.Must(t, a.Update(t.Context(), exported))
	a.condition(t, k, ready, metav1.ConditionFalse, "Failed")

	b.exportVariant(t, k, "10.2.0.1", unchanged)
	w.agreed(t, k, unvaried(), "a", "b")
	for _, m := range w.members {
		m.endpoints(t, k, "a 10.1.0.1:http:8080", "b 10.2.0.1:http:8080")
	}
}

// A member that may not publish services of a namespace any more exports none of it, in its own cluster either, and says so. What
// the others export of the same name goes on without it, and when it may publish again all is as it was.
//
// spec: C7, I2, R7
func testNamespaceTakenBack(t *testing.T, w *world) {
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	k := key{Namespace: namespace(t, a, b, c), Name: "web"}
	alone := key{Namespace: k.Namespace, Name: "alone"}
	exported := a.exportVariant(t, k, "10.1.0.1", unchanged)
	a.exportVariant(t, alone, "10.1.0.2", unchanged)
	variants := []struct {
		member        *member
		address, team string
	}{{b, "10.2.0.1", "red"}, {c, "10.3.0.1", "green"}}
	for _, v := range variants {
		w.later(t, exported.CreationTimestamp)
		exported = v.member.exportVariant(t, k, v.address, func(_ *corev1.Service, e *mcsv1beta1.ServiceExport) {
			e.Spec.ExportedLabels = map[string]string{"team": v.team}
		})
	}
	whole := func() {
		t.Helper()
		w.agreed(t, k, unvaried(), "a", "b", "c")
		w.agreed(t, alone, unvaried(), "a")
		a.condition(t, k, ready, metav1.ConditionTrue, "Exported")
		for _, m := range w.members {
			m.condition(t, k, conflict, metav1.ConditionTrue, "LabelsConflict")
		}
	}
	whole()

	w.allow(t, "a", "elsewhere")
	want := unvaried()
	want.Labels["team"] = "red"
	w.agreed(t, k, want, "b", "c")
	for _, m := range w.members {
		m.endpoints(t, k, "b 10.2.0.1:http:8080", "c 10.3.0.1:http:8080")
		m.gone(t, alone)
	}
	message := fmt.Sprintf("The hub refuses the export: the Member of cluster a does not allow namespace %s: "+
		"do not export from it, or let an administrator of the hub add it to the Member", k.Namespace)
	for _, of := range []key{k, alone} {
		if got := a.condition(t, of, ready, metav1.ConditionFalse, "Failed").Message; got != message {
			t.Errorf("%s says %s\nwant %s", of, got, message)
		}
	}
	a.condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts") // it is no part of what the two disagree on
	b.condition(t, k, conflict, metav1.ConditionTrue, "LabelsConflict")
	w.allow(t, "a")
	whole()
}

// allow has a member publish services of these namespaces only; of all where none is named.
func (w *world) allow(t *testing.T, id string, namespaces ...hubv1alpha1.NamespaceName) {
	t.Helper()
	found := &hubv1alpha1.Member{}
	lab.Must(t, w.hubKube.Get(t.Context(), key{Namespace: "member-" + id, Name: hubv1alpha1.MemberName}, found))
	found.Spec.Namespaces = namespaces
	lab.Must(t, w.hubKube.Update(t.Context(), found))
}
