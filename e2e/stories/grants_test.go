// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// exportIsGrantedToOneCluster: a grants web to one of two clusters: first to b, which uses gateways, then to c, which reaches the pods of a
// directly, then to both by deleting the grant. The cluster that is not named has nothing of it, although it imports another service of the
// same namespace. The ServiceExport and the commands say to whom it is exported. Within a, no request fails.
func exportIsGrantedToOneCluster(s *scene) {
	a, b, c := s.in("a"), s.in("b"), s.third()
	grant := &policyv1alpha1.ServiceExportGrant{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: policyv1alpha1.ServiceExportGrantSpec{
		Exports: []policyv1alpha1.ObjectName{"web"}, To: []policyv1alpha1.Peer{{Clusters: []policyv1alpha1.ClusterID{"b"}}},
	}}
	a.create(grant)
	a.offer("web", 2)
	for _, p := range []*place{a, b} {
		p.awaitGranted("web")
	}
	own := a.load("tcp4", s.name("web"), 80, 20)
	a.create(forWeb("for-all"), export("for-all")) // later than web: when c imports it, c has read the record of web
	c.awaitImport("for-all", "a")
	c.awaitAnyAnswer("tcp4", s.name("for-all"), 80)
	c.hasNothingOf("web")
	a.exportedTo("web", "b")

	granted := b.load("tcp4", s.name("web"), 80, 20)
	address := b.awaitImport("web", "a").Spec.IPs[0]
	b.expectAnswers("tcp4", address, 80, "a")
	granted.endClean()
	change(a, "web", &policyv1alpha1.ServiceExportGrant{}, func(g *policyv1alpha1.ServiceExportGrant) { g.Spec.To[0].Clusters[0] = "c" })
	c.awaitGranted("web")
	b.hasNothingOf("web")
	b.expectNoAnswer("tcp4", address, 80)
	b.expectAnswers("tcp4", s.name("for-all"), 80, "a")
	a.exportedTo("web", "c")
	lab.Must(s, c.usesGateways("web", "a", false))

	a.remove(grant)
	for _, p := range []*place{b, c} {
		p.awaitGranted("web")
	}
	lab.Must(s, b.usesGateways("web", "a", true))
	own.endClean()
}

// awaitGranted waits until a service of cluster a is imported in this cluster, has a name, and answers.
func (p *place) awaitGranted(service string) {
	p.Helper()
	p.awaitImport(service, "a")
	p.awaitName(service)
	p.awaitAnyAnswer("tcp4", p.name(service), 80)
	p.expectAnswers("tcp4", p.name(service), 80, "a")
}

// hasNothingOf waits until this cluster has no objects of an import, and its DNS no name. trace says why.
func (p *place) hasNothingOf(service string) {
	p.Helper()
	p.awaitGone(service)
	p.awaitDNS("A", p.name(service), "NXDOMAIN")
	want := fmt.Sprintf("not granted to this cluster by ServiceExportGrant %s/%s", p.namespace, service)
	out, err := p.Kubectl(p.Context(), "", "clusterset", "trace", p.namespace+"/"+service, "--all-contexts", "--from", p.cluster.Name)
	if err == nil || !strings.Contains(out, want) {
		p.Errorf("trace in cluster %s: %v, want %q in\n%s", p.cluster.Name, err, want, out)
	}
}

// exportedTo waits until the ServiceExport says that it is exported to a cluster, and expects that "explain" says the same.
func (p *place) exportedTo(service, cluster string) {
	p.Helper()
	p.eventually("to whom "+service+" is exported", func(context.Context) error {
		got := p.awaitExport(service, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
		if want := "The service is exported to cluster " + cluster + "."; got != want {
			return fmt.Errorf("the condition says %q, want %q", got, want)
		}
		return nil
	})
	out, err := p.Kubectl(p.Context(), "", "clusterset", "explain", p.namespace+"/"+service, "--all-contexts")
	lab.Must(p, err)
	if want := "exported to cluster " + cluster + "\n"; !strings.Contains(out, want) {
		p.Errorf("explain does not say %q:\n%s", want, out)
	}
}
