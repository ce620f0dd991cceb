// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

const (
	imported = "The service is imported."
	leftOut  = imported + ` Left out: %s, which this cluster's API server does not know. ` +
		`Upgrade this cluster and restart the agent, or export the service without it.`
)

// TestUnknownSettings: what an importer's API server does not know, or does not take over, is left out of the import and
// reported; it is tried once in the life of an agent.
//
// spec: D6, D7
//
//nolint:tparallel // the second story begins where the first ends
func TestUnknownSettings(t *testing.T) {
	t.Parallel()
	old := lab.Member("b")
	old.Audit = true
	old.APIServerArgs = []string{"--emulated-version=1.33"} // before PreferSameNode
	w := newEnv(t, membership.Hub(), lab.Member("a"), old)
	t.Run("forged", func(t *testing.T) { testForgedSettings(t, w) })
	t.Run("older", func(t *testing.T) { testOlderImporter(t, w) })
}

// testForgedSettings has member a export settings that no Kubernetes knows, to member b.
func testForgedSettings(t *testing.T, w *env) {
	b := w.members["b"]
	stop := b.Start(t)
	ns := world.Namespace(t, b)
	world.Create(t, w.HubClient, world.Heartbeat("a"))
	newDistribution := func(s *hubv1alpha1.PublishedService) { s.Spec.TrafficDistribution = "PreferSomethingNew" }
	web, other := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "other"}
	w.Publish(t, "a", web, newDistribution, "10.1.0.1")
	b.leavesOut(t, web, `trafficDistribution "PreferSomethingNew"`)
	b.Event(t, web, "SettingLeftOut", "")
	b.Endpoints(t, web, "a 10.1.0.1:http:8080")
	lab.Equal(t, "writes that the API server refused", 1, b.refused(t))

	// It is not tried again: not for the next look, and not for another service.
	w.move(t, web, "10.1.0.2")
	b.Endpoints(t, web, "a 10.1.0.2:http:8080")
	w.Publish(t, "a", other, newDistribution, "10.1.0.3")
	b.leavesOut(t, other, `trafficDistribution "PreferSomethingNew"`)
	lab.Equal(t, "writes that the API server refused", 1, b.refused(t))

	// A change of the import is no new reason to say it.
	w.edit(t, web, func(s *hubv1alpha1.PublishedService) { s.Spec.Ports[0].Port = 81 })
	importBefore, serviceBefore := b.ImportedWith(t, web, func(i *mcsv1beta1.ServiceImport, _ *corev1.Service) error {
		if c := meta.FindStatusCondition(i.Status.Conditions, "Ready"); i.Spec.Ports[0].Port != 81 || c.ObservedGeneration != i.Generation {
			return fmt.Errorf("it still has port %d and condition %+v", i.Spec.Ports[0].Port, c)
		}
		return nil
	})

	// A restarted agent tries again, is refused again, and changes nothing.
	stop()
	b.Start(t)
	w.move(t, web, "10.1.0.4")
	b.Endpoints(t, web, "a 10.1.0.4:http:8080") // it has looked
	w.move(t, web, "10.1.0.5")
	b.Endpoints(t, web, "a 10.1.0.5:http:8080")
	importAfter, serviceAfter := b.Imported(t, web)
	lab.Equal(t, "what was written without need", []any{importBefore, serviceBefore}, []any{importAfter, serviceAfter})
	reports := b.EventCounts(t, web.Namespace)["SettingLeftOut ServiceImport "+web.Name]
	lab.Equal(t, "how often it was reported that something is left out", 1, reports)
	if n := b.refused(t); n < 2 || n > 3 { // both services may be tried at once
		t.Errorf("the API server refused %d writes, want 2 or 3", n)
	}

	// Two at once, in a headless service too; what is known is taken over.
	for name, kind := range map[string]mcsv1beta1.ServiceImportType{"pets": mcsv1beta1.Headless, "both": mcsv1beta1.ClusterSetIP} {
		k := key{Namespace: ns, Name: name}
		w.Publish(t, "a", k, func(s *hubv1alpha1.PublishedService) {
			s.Spec.Type, s.Spec.InternalTrafficPolicy, s.Spec.TrafficDistribution = kind, "Near", "example.com/PreferOther"
		}, "10.1.0.6")
		b.leavesOut(t, k, `internalTrafficPolicy "Near" and trafficDistribution "example.com/PreferOther"`)
	}
	w.edit(t, web, func(s *hubv1alpha1.PublishedService) { s.Spec.TrafficDistribution = "PreferClose" })
	b.distributes(t, web, "PreferClose", imported+" "+conditions.ZonesMissing("PreferClose", []string{"a"}))
}

// testOlderImporter has member a export what its own API server knows and b's does not, and then an admission policy of
// a drop it in silence.
func testOlderImporter(t *testing.T, w *env) {
	a, b := w.members["a"], w.members["b"]
	stop := a.Start(t)
	b.Start(t)
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	service := world.Service(k, world.Port("http", 80))
	service.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferSameNode)
	a.ExportService(t, service, world.Slice(service, "v4", "10.1.0.9"))
	a.distributes(t, k, "PreferSameNode", imported)
	a.hints(t, k, map[string]string{"10.1.0.9": "zone-1"})
	b.leavesOut(t, k, `trafficDistribution "PreferSameNode"`)
	b.hints(t, k, map[string]string{"10.1.0.9": ""})

	stop()
	dropping := a.dropDistribution(t)
	stop = a.Start(t)
	_, derived := a.Imported(t, k)
	lab.Must(t, a.Delete(t.Context(), derived))
	a.leavesOut(t, k, `trafficDistribution "PreferSameNode"`)
	a.Event(t, k, "SettingLeftOut", "")

	// The API server has learnt it, and a restarted agent tries again.
	dropping()
	stop()
	a.Start(t)
	a.distributes(t, k, "PreferSameNode", imported)
	a.hints(t, k, map[string]string{"10.1.0.9": "zone-1"})
}

// dropDistribution has the member's API server drop the traffic distribution of derived Services, until stop is called.
func (m *member) dropDistribution(t *testing.T) (stop func()) {
	t.Helper()
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "older"},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
			}}}},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "derived", Expression: "object.metadata.name.startsWith('derived-') && has(object.spec.trafficDistribution)",
			}},
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeJSONPatch,
				JSONPatch: &admissionv1.JSONPatch{Expression: `[JSONPatch{op: "remove", path: "/spec/trafficDistribution"}]`},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "older"}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "older"},
	}
	probe := func(want string) func(context.Context) error {
		return func(ctx context.Context) error {
			service := world.Service(key{Namespace: "default", Name: "derived-probe"}, world.Port("http", 80))
			service.Spec.TrafficDistribution = new("PreferClose")
			if err := m.Create(ctx, service, client.DryRunAll); err != nil {
				return err
			}
			if got := distribution(service); got != want {
				return fmt.Errorf("the probe's traffic distribution is %q, want %q", got, want)
			}
			return nil
		}
	}
	world.Create(t, m, policy, binding)
	world.Eventually(t, probe(""))
	return func() {
		lab.Must(t, m.Delete(t.Context(), binding))
		world.Eventually(t, probe("PreferClose"))
	}
}

// leavesOut waits until an import is ready without these settings.
func (m *member) leavesOut(t *testing.T, k key, settings string) {
	t.Helper()
	m.distributes(t, k, "", fmt.Sprintf(leftOut, settings))
	serviceImport, derived := m.Imported(t, k)
	if *derived.Spec.InternalTrafficPolicy != "Cluster" || *serviceImport.Spec.InternalTrafficPolicy != "Cluster" {
		t.Errorf("internal traffic policies are %q and %q", *derived.Spec.InternalTrafficPolicy, *serviceImport.Spec.InternalTrafficPolicy)
	}
}

// distributes waits until an import and its derived Service have this traffic distribution, and the import says this.
func (m *member) distributes(t *testing.T, k key, want, message string) {
	t.Helper()
	m.ImportedWith(t, k, func(serviceImport *mcsv1beta1.ServiceImport, derived *corev1.Service) error {
		inImport := ""
		if d := serviceImport.Spec.TrafficDistribution; d != nil {
			inImport = *d
		}
		gotMessage := meta.FindStatusCondition(serviceImport.Status.Conditions, "Ready").Message
		if inImport != want || distribution(derived) != want || gotMessage != message {
			return fmt.Errorf("traffic distributions are %q and %q, want %q; message %q\nwant    %q",
				inImport, distribution(derived), want, gotMessage, message)
		}
		return nil
	})
}

func distribution(service *corev1.Service) string {
	if service.Spec.TrafficDistribution == nil {
		return ""
	}
	return *service.Spec.TrafficDistribution
}

// hints waits until each address that is mirrored for an import has a hint for this zone, or none if it is empty.
func (m *member) hints(t *testing.T, k key, want map[string]string) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		mirrored, err := m.Mirrored(ctx, k)
		if err != nil {
			return err
		}
		got := map[string]string{}
		for _, s := range mirrored {
			for _, e := range s.Endpoints {
				zones := []string{}
				if e.Hints != nil {
					for _, zone := range e.Hints.ForZones {
						zones = append(zones, zone.Name)
					}
					for _, node := range e.Hints.ForNodes {
						zones = append(zones, "node "+node.Name)
					}
				}
				got[e.Addresses[0]] = strings.Join(zones, ",")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s: hints of %s (-want +got):\n%s", m.ID, k, diff)
		}
		return nil
	})
}

// refused returns how many writes of derived Services the member's API server has refused as invalid.
func (m *member) refused(t *testing.T) int {
	t.Helper()
	answers, err := audit.Answers(m.Cluster.AuditLog())
	lab.Must(t, err)
	count := 0
	for _, a := range answers {
		if a.Resource == "services" && a.Code == http.StatusUnprocessableEntity {
			count++
		}
	}
	return count
}

// edit changes the record of a service of member a.
func (w *env) edit(t *testing.T, k key, change func(*hubv1alpha1.PublishedService)) {
	t.Helper()
	record := &hubv1alpha1.PublishedService{}
	world.Update(t, w.HubClient, key{Namespace: "member-a", Name: k.Namespace + "." + k.Name}, record, func() { change(record) })
}

// move gives the forged endpoints of a service of member a another address.
func (w *env) move(t *testing.T, k key, address hubv1alpha1.IPAddress) {
	t.Helper()
	record := &hubv1alpha1.PublishedEndpoints{}
	world.Update(t, w.HubClient, key{Namespace: "member-a", Name: k.Namespace + "." + k.Name + ".0123456789"}, record, func() {
		record.Spec.Groups[0].Addresses = []hubv1alpha1.IPAddress{address}
	})
}
