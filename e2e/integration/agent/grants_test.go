// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestGrants: an export is imported only by the clusters to which ServiceExportGrants grant it. Conflicts are reported between all exports.
//
// spec: A1, A5, E3, R7, C4
//
//nolint:tparallel // each story begins where the one before ends
func TestGrants(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.Member("b"), lab.Member("c"))
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	for _, m := range w.members {
		m.Start(t)
	}
	ns := world.Namespace(t, a, b, c)
	web, secret := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "secret"}
	a.ExportWeb(t, web, "10.1.0.1")
	c.Endpoints(t, web, "a 10.1.0.1:http:8080")
	exportedToAll := w.record(t, "a", web).Spec
	t.Run("annotation", func(t *testing.T) { testGrantedOnly(t, w, secret) })

	grant := world.Grant(web, peers("b"))
	lab.Must(t, a.Create(t.Context(), grant))
	a.exportedTo(t, web, "cluster b")
	c.Gone(t, web)
	a.exportedTo(t, secret, "no other cluster: no ServiceExportGrant names one")
	b.Endpoints(t, web, "a 10.1.0.1:http:8080")
	a.Endpoints(t, web, "a 10.1.0.1:http:8080")

	t.Run("conflict", func(t *testing.T) { testUngrantedConflict(t, w, web, grant) })
	t.Run("region", func(t *testing.T) { testGrantedRegion(t, w, web, grant) })

	lab.Must(t, a.Delete(t.Context(), grant))
	a.exportedTo(t, web, "the clusterset")
	c.Endpoints(t, web, "a 10.1.0.1:http:8080")
	lab.Equal(t, "the record as it was and is", exportedToAll, w.record(t, "a", web).Spec)
	world.LogsNoErrors(t, a.Member, ns)
}

// testGrantedOnly: an export with the annotation is exported to no other cluster.
func testGrantedOnly(t *testing.T, w *env, k key) {
	a, b := w.members["a"], w.members["b"]
	service := world.Service(k, world.Port("http", 80))
	exported := world.Export(k)
	exported.Annotations = map[string]string{clusterset.AnnotationGrantedOnly: "true"}
	world.Create(t, a, service, world.Slice(service, "v4", "10.1.0.2"), exported)
	a.exportedTo(t, k, "no other cluster: no ServiceExportGrant names one")
	a.Endpoints(t, k, "a 10.1.0.2:http:8080")
	b.Gone(t, k)
	world.Update(t, a, k, exported, func() { exported.Annotations = nil })
	b.Endpoints(t, k, "a 10.1.0.2:http:8080")
	world.Update(t, a, k, exported, func() { exported.Annotations = map[string]string{clusterset.AnnotationGrantedOnly: "true"} })
	b.Gone(t, k)
}

// testUngrantedConflict: c exports the service differently. a exports it to b only: c imports nothing of a, but both report the conflict.
func testUngrantedConflict(t *testing.T, w *env, k key, grant *policyv1alpha1.ServiceExportGrant) {
	a, b, c := w.members["a"], w.members["b"], w.members["c"]
	other := world.Service(k, world.Port("http", 81))
	c.ExportService(t, other, world.Slice(other, "v4", "10.3.0.1"))
	own := world.Grant(k, peers("a"))
	lab.Must(t, c.Create(t.Context(), own))
	c.exportedTo(t, k, "cluster a")
	for _, m := range []*member{a, c} {
		m.Condition(t, k, conflict, metav1.ConditionTrue, "PortConflict")
	}
	imports := func(m *member, want string) {
		t.Helper()
		m.ImportedWith(t, k, func(i *mcsv1beta1.ServiceImport, _ *corev1.Service) error {
			var clusters, ports []string
			for _, status := range i.Status.Clusters {
				clusters = append(clusters, status.Cluster)
			}
			for _, port := range i.Spec.Ports {
				ports = append(ports, fmt.Sprint(port.Port))
			}
			if got := strings.Join(clusters, " ") + ": " + strings.Join(ports, " "); got != want {
				return fmt.Errorf("it is %s, want %s", got, want)
			}
			return nil
		})
	}
	imports(a, "a c: 80")
	imports(b, "a: 80")
	imports(c, "c: 81")
	lab.Must(t, c.Delete(t.Context(), own))
	imports(b, "a c: 80")
	imports(c, "c: 81")
	world.Update(t, a, key{Namespace: grant.Namespace, Name: grant.Name}, grant, func() { grant.Spec.To[0].Clusters = []policyv1alpha1.ClusterID{"b", "c"} })
	a.exportedTo(t, k, "clusters b, c")
	imports(c, "a c: 80")
	world.Delete(t, c, world.Export(k), other)
	imports(c, "a: 80")
	a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
}

// testGrantedRegion: an export is granted to the clusters of a region, and follows the properties of the members.
func testGrantedRegion(t *testing.T, w *env, k key, grant *policyv1alpha1.ServiceExportGrant) {
	a, c := w.members["a"], w.members["c"]
	region := func(name hubv1alpha1.PropertyValue) {
		w.ChangeMember(t, "c", func(s *hubv1alpha1.MemberSpec) { s.Properties = properties{"region": name} })
	}
	region("eu")
	before := grant.DeepCopy()
	world.Update(t, a, key{Namespace: grant.Namespace, Name: grant.Name}, grant, func() {
		grant.Spec.To = []policyv1alpha1.Peer{{PropertySelector: &policyv1alpha1.PropertySelector{
			MatchProperties: map[string]policyv1alpha1.PropertyValue{"region": "eu"},
		}}}
	})
	a.exportedTo(t, k, "cluster c")
	c.Endpoints(t, k, "a 10.1.0.1:http:8080")
	region("us")
	a.exportedTo(t, k, "no other cluster: no ServiceExportGrant names one")
	c.Gone(t, k)
	region("eu")
	a.exportedTo(t, k, "cluster c")
	w.ChangeMember(t, "c", func(s *hubv1alpha1.MemberSpec) { s.Properties = nil })
	c.Gone(t, k)
	world.Update(t, a, key{Namespace: grant.Namespace, Name: grant.Name}, grant, func() { grant.Spec = before.Spec })
}

// exportedTo waits until the condition Ready of an export says to whom it is exported.
func (m *member) exportedTo(t *testing.T, k key, whom string) {
	t.Helper()
	world.Eventually(t, func(context.Context) error {
		if got := m.Condition(t, k, ready, metav1.ConditionTrue, "Exported").Message; got != "The service is exported to "+whom+"." {
			return errors.New(got)
		}
		return nil
	})
}

func peers(clusters ...policyv1alpha1.ClusterID) policyv1alpha1.Peer {
	return policyv1alpha1.Peer{Clusters: clusters}
}

// reasons waits until the conditions of a grant or a policy have these reasons.
func (m *member) reasons(t *testing.T, of client.Object, accepted, enforced string) {
	t.Helper()
	world.Await(t, m, client.ObjectKeyFromObject(of), of, func(object client.Object) error {
		var found []metav1.Condition
		switch o := object.(type) {
		case *policyv1alpha1.ServiceExportGrant:
			found = o.Status.Conditions
		case *policyv1alpha1.ClusterServiceAccessPolicy:
			found = o.Status.Conditions
		}
		got := map[string]string{}
		for _, c := range found {
			if c.ObservedGeneration == object.GetGeneration() {
				got[c.Type] = c.Reason
			}
		}
		want := map[string]string{policyv1alpha1.ConditionAccepted: accepted, policyv1alpha1.ConditionEnforced: enforced}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s: conditions of %s (-want +got):\n%s", m.ID, client.ObjectKeyFromObject(of), diff)
		}
		return nil
	})
}

// testAccessStatus: the agent of a, whose gateways were installed after it has started, says where rules are enforced. b is in another
// network.
func testAccessStatus(t *testing.T, w *env, k key) {
	a := w.members["a"]
	g, p := world.Grant(k, peers("b")), world.DenyImports("no-imports-from-b", peers("b"))
	world.Create(t, a, g, p)
	a.reasons(t, g, policyv1alpha1.ReasonExportsNotFound, policyv1alpha1.ReasonEnforced)
	a.reasons(t, p, policyv1alpha1.ReasonAccepted, policyv1alpha1.ReasonEnforced)
	lab.Must(t, a.Create(t.Context(), world.Export(k)))
	a.reasons(t, g, policyv1alpha1.ReasonAccepted, policyv1alpha1.ReasonEnforced)
	lab.Must(t, a.Delete(t.Context(), world.Export(k)))
	a.reasons(t, g, policyv1alpha1.ReasonExportsNotFound, policyv1alpha1.ReasonEnforced)
	// The schema does not check the operators of selectors.
	world.Update(t, a, client.ObjectKeyFromObject(p), p, func() {
		p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "stage", Operator: "Likes"}}}
	})
	a.reasons(t, p, policyv1alpha1.ReasonInvalidSelector, policyv1alpha1.ReasonEnforced)
	w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network = "" })
	a.reasons(t, p, policyv1alpha1.ReasonInvalidSelector, policyv1alpha1.ReasonEnforced) // b publishes no addresses
	a.reasons(t, g, policyv1alpha1.ReasonExportsNotFound, policyv1alpha1.ReasonSameNetwork)
	w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network = "cloud" })
	a.reasons(t, g, policyv1alpha1.ReasonExportsNotFound, policyv1alpha1.ReasonEnforced)
	world.Delete(t, a, g, p)
}
