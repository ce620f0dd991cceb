// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	exportedToAll := w.specOf(t, "a", web)
	t.Run("annotation", func(t *testing.T) { testGrantedOnly(t, w, secret) })

	grant := grantOf(web, "b")
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
	if text := w.specOf(t, "a", web); text != exportedToAll {
		t.Errorf("the record was\n%s\nand is\n%s", exportedToAll, text)
	}
	world.LogsNoErrors(t, a.Member, ns)
}

// testGrantedOnly: an export with the annotation is exported to no other cluster.
func testGrantedOnly(t *testing.T, w *env, k key) {
	a, b := w.members["a"], w.members["b"]
	service := world.Service(k, world.Port("http", 80))
	lab.Must(t, a.Create(t.Context(), service))
	lab.Must(t, a.Create(t.Context(), world.Slice(service, "v4", "10.1.0.2")))
	exported := world.Export(k)
	exported.Annotations = map[string]string{clusterset.AnnotationGrantedOnly: "true"}
	lab.Must(t, a.Create(t.Context(), exported))
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
	own := grantOf(k, "a")
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
	lab.Must(t, c.Delete(t.Context(), world.Export(k)))
	lab.Must(t, c.Delete(t.Context(), other))
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

// grantOf returns a grant of an export to some clusters.
func grantOf(k key, clusters ...policyv1alpha1.ClusterID) *policyv1alpha1.ServiceExportGrant {
	return &policyv1alpha1.ServiceExportGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name},
		Spec: policyv1alpha1.ServiceExportGrantSpec{
			Exports: []policyv1alpha1.ObjectName{policyv1alpha1.ObjectName(k.Name)}, To: []policyv1alpha1.Peer{{Clusters: clusters}},
		},
	}
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

// specOf returns the record of a member's export.
func (w *env) specOf(t *testing.T, id string, k key) string {
	t.Helper()
	record := &hubv1alpha1.PublishedService{}
	lab.Must(t, w.HubClient.Get(t.Context(), key{Namespace: "member-" + id, Name: k.Namespace + "." + k.Name}, record))
	return fmt.Sprintf("%+v", record.Spec)
}
