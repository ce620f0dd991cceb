// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// whatIsNotExportedStaysPrivate: a service that is not exported, or not any more, has no name in the clusterset, in either
// cluster. In cluster.local each cluster has all of its own services and nothing else: what is exported changes nothing
// there.
func whatIsNotExportedStaysPrivate(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.deploy("web", 2)
	b.deploy("web", 1)
	for _, name := range []string{"private", "public", "withdrawn"} {
		pods := forWeb(name + "-pods")
		pods.Spec.ClusterIP = corev1.ClusterIPNone
		a.create(forWeb(name), pods)
		b.create(forWeb(name)) // never exported
	}
	a.create(export("public"), export("public-pods"), export("withdrawn"), export("withdrawn-pods"))
	for _, p := range s.members() {
		p.awaitImport("withdrawn", "a")
		p.awaitImport("withdrawn-pods", "a")
	}
	a.withdraw("withdrawn")
	a.withdraw("withdrawn-pods")
	for _, p := range s.members() {
		p.awaitImport("public", "a")
		p.awaitImport("public-pods", "a")
		p.awaitGone("withdrawn")
		p.awaitGone("withdrawn-pods")
		p.awaitAnswers("tcp", s.name("public"), 80, "a")
		for _, name := range []string{"private", "private-pods", "withdrawn", "withdrawn-pods"} {
			for _, kind := range []string{"A", "AAAA", "SRV"} {
				p.expectRecords(kind, s.name(name), "NXDOMAIN")
			}
			p.expectNoAnswer("tcp", s.name(name), 80)
		}
	}

	for _, name := range []string{"private", "public", "withdrawn"} {
		for _, p := range s.members() {
			p.expectItsOwn(name, p.clusterIPs(name))
			// CoreDNS divides a weight of 100 by the number of addresses.
			p.expectRecords("SRV", "_http._tcp."+localName(s, name), "NOERROR", "0 50 80 "+localName(s, name)+".")
			p.expectAnswers("tcp", localName(s, name), 80, p.cluster.Name)
		}
		a.expectItsOwn(name+"-pods", a.podAddresses("web"))
		for _, kind := range []string{"A", "AAAA", "SRV"} {
			b.expectRecords(kind, localName(s, name+"-pods"), "NXDOMAIN")
		}
	}
}

// localName returns a service's name in its own cluster.
func localName(s *scene, service string) string {
	return service + "." + s.namespace + ".svc.cluster.local"
}

// expectItsOwn fails the story unless the addresses of a service in cluster.local are these.
func (p *place) expectItsOwn(service string, addresses []netip.Addr) {
	p.Helper()
	var v4, v6 []string
	for _, address := range addresses {
		if address.Is4() {
			v4 = append(v4, address.String())
		} else {
			v6 = append(v6, address.String())
		}
	}
	p.expectRecords("A", localName(p.scene, service), "NOERROR", v4...)
	p.expectRecords("AAAA", localName(p.scene, service), "NOERROR", v6...)
}

// expectRecords asks the cluster's DNS. The story fails unless this is all that it says.
func (p *place) expectRecords(kind, name, rcode string, want ...string) {
	p.Helper()
	slices.Sort(want)
	if got := p.resolve(kind, name); got.Rcode != rcode || !slices.Equal(got.Answers, want) {
		p.Errorf("cluster %s: DNS says of %s %s: %+v, want %s %v", p.cluster.Name, kind, name, got, rcode, want)
	}
}

// clusterIPs returns the addresses of a Service.
func (p *place) clusterIPs(service string) []netip.Addr {
	p.Helper()
	var o corev1.Service
	lab.Must(p, p.client.Get(p.Context(), p.key(service), &o))
	var all []netip.Addr
	for _, ip := range o.Spec.ClusterIPs {
		all = append(all, netip.MustParseAddr(ip))
	}
	return all
}

// invalidExports: an export of an ExternalName, or without a Service, is refused, its conditions say why, and nothing is
// imported for it, but what other clusters export under its name is. It becomes valid with its Service, and goes and
// comes back with it.
func invalidExports(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.deploy("web", 1)
	b.deploy("web", 1)
	external := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "external"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "www.example.com"},
	}
	a.create(external, export("external"), export("missing"), export("elsewhere"))
	a.expectRefused("external", mcsv1beta1.ServiceExportReasonInvalidServiceType, "Service external is of type ExternalName, "+
		"which cannot be exported. Use ClusterIP, NodePort, LoadBalancer or a headless Service.")
	a.expectRefused("missing", mcsv1beta1.ServiceExportReasonNoService,
		"There is no Service missing in namespace "+s.namespace+". Create it, or delete this ServiceExport.")
	b.create(forWeb("elsewhere"), export("elsewhere"))
	for _, p := range s.members() {
		p.awaitImport("elsewhere", "b")
		p.awaitAnswers("tcp", s.name("elsewhere"), 80, "b")
		for _, name := range []string{"external", "missing"} {
			if found, err := p.remains(s.Context(), name); err != nil || len(found) > 0 {
				s.Errorf("cluster %s has %v of %s (%v), want nothing", p.cluster.Name, found, name, err)
			}
			p.expectRecords("SRV", s.name(name), "NXDOMAIN")
		}
	}

	change(a, "external", &corev1.Service{}, func(o *corev1.Service) { o.Spec = forWeb("external").Spec })
	a.create(forWeb("missing"), forWeb("elsewhere"))
	for _, name := range []string{"external", "missing"} {
		s.awaitServed(name, "a")
	}
	s.awaitServed("elsewhere", "a", "b")

	a.remove(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "missing"}})
	a.awaitExport("missing", mcsv1beta1.ServiceExportConditionValid, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonNoService)
	for _, p := range s.members() {
		p.awaitGone("missing")
	}
	a.create(forWeb("missing"))
	s.awaitServed("missing", "a")
}

// awaitServed waits until a service is valid in the clusters that export it, is imported by all, and answers from
// everywhere, over both protocols and both IP families.
func (s *scene) awaitServed(name string, exporters ...string) {
	s.Helper()
	for _, exporter := range exporters {
		s.in(exporter).awaitExport(name, mcsv1beta1.ServiceExportConditionValid, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonValid)
		s.in(exporter).awaitExport(name, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	}
	for _, p := range s.members() {
		p.awaitImport(name, exporters...)
		p.awaitAnswers("tcp4", s.name(name), 80, exporters...)
		p.awaitAnswers("udp6", s.name(name), 80, exporters...)
	}
}

// expectRefused waits until an export is refused for this reason, and fails the story unless it says so in these words and
// waits to be exported.
func (p *place) expectRefused(name string, why mcsv1beta1.ServiceExportConditionReason, want string) {
	p.Helper()
	got := p.awaitExport(name, mcsv1beta1.ServiceExportConditionValid, metav1.ConditionFalse, why)
	if got != want {
		p.Errorf("export %s: message %s\nwant %s", name, got, want)
	}
	p.awaitExport(name, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonPending)
}

// namespaceOfOneCluster: a service is imported only where its namespace is. Nobody makes the namespace elsewhere; when
// a user does, the import follows, and it comes back with a namespace that is deleted and made again.
func namespaceOfOneCluster(s *scene) {
	a, b := s.in("a"), s.in("b")
	b.removeNamespace()
	a.offer("web", 1)
	a.awaitImport("web", "a")
	a.awaitAnswers("tcp", s.name("web"), 80, "a")
	a.awaitExport("web", mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	var absent corev1.Namespace
	if err := b.client.Get(s.Context(), client.ObjectKey{Name: s.namespace}, &absent); !apierrors.IsNotFound(err) {
		s.Errorf("cluster b has the namespace, though nobody made it there: %v, %+v", err, absent)
	}

	b.open()
	b.awaitClient()
	s.awaitServed("web", "a")
	b.removeNamespace()
	a.expectAnswers("tcp", s.name("web"), 80, "a")
	b.open()
	b.awaitClient()
	s.awaitServed("web", "a")
}

// removeNamespace deletes the scene's namespace in this cluster and waits for its end.
func (p *place) removeNamespace() {
	p.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}
	lab.Must(p, p.client.Delete(p.Context(), ns))
	p.awaitAbsent(p.namespace, ns)
}

// namespaceMadeAgain: when the exporting cluster's namespace is deleted, the service is gone everywhere. With the
// namespace, its pods, Service and export made again, it is back.
func namespaceMadeAgain(s *scene) {
	a, b := s.in("a"), s.in("b")
	pods := a.serverSpec()
	pods.TerminationGracePeriodSeconds = new(int64)
	a.deployPods("web", 1, pods)
	a.create(service("web"), export("web"))
	s.awaitServed("web", "a")
	a.removeNamespace()
	b.awaitGone("web")
	s.awaitForgotten("web")

	a.open()
	a.awaitClient()
	a.deployPods("web", 1, pods)
	a.create(service("web"), export("web"))
	s.awaitServed("web", "a")
}

// awaitAbsent waits until an object of the scene's namespace, or the namespace itself, is not there.
func (p *place) awaitAbsent(name string, o client.Object) {
	p.Helper()
	key := p.key(name)
	if _, isNamespace := o.(*corev1.Namespace); isNamespace {
		key.Namespace = ""
	}
	p.eventually(fmt.Sprintf("the end of %T %s in cluster %s", o, name, p.cluster.Name), func(ctx context.Context) error {
		err := p.client.Get(ctx, key, o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %w", err)
	})
}
