// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// testClusterLocal: in one server block, the cluster's own names are answered with the plugin as they are without it, also
// those of a Service that is derived from an import.
//
// spec: N9
func (w world) testClusterLocal(t *testing.T) {
	service := func(name, ip string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: ip, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
		}
	}
	imports := []*v1beta1.ServiceImport{imported("web", v1beta1.ClusterSetIP, "10.96.0.1"), imported("db", v1beta1.Headless)}
	w.create(t, service("web", ""), service("db", corev1.ClusterIPNone), service("derived-43254079", ""), imports[0], imports[1], endpoints("db-east-1", "10.1.0.1"))
	kubernetes := "kubernetes cluster.local in-addr.arpa {\nkubeconfig " + w.cluster.Kubeconfig() + "\nstartup_timeout 1m\n}"
	with := startProgram(t, "clusterset clusterset.local {\nkubeconfig "+w.kubeconfig(t)+"\nstartup_timeout 1m\n}\n"+kubernetes)
	without := startProgram(t, kubernetes)
	await(t, with, "web.default.svc.clusterset.local. A", "NOERROR 10.96.0.1")

	found := 0
	for _, name := range []string{
		"cluster.local.", "svc.cluster.local.", "default.svc.cluster.local.", "none.svc.cluster.local.", "dns-version.cluster.local.",
		"kubernetes.default.svc.cluster.local.", "web.default.svc.cluster.local.", "_http._tcp.web.default.svc.cluster.local.",
		"db.default.svc.cluster.local.", "derived-43254079.default.svc.cluster.local.", "none.default.svc.cluster.local.",
		"web.default.svc.clusterset.local.cluster.local.", "1.0.96.10.in-addr.arpa.", "1.0.0.10.in-addr.arpa.",
	} {
		for _, qtype := range []string{"A", "AAAA", "SRV", "TXT", "PTR", "SOA", "NS"} {
			_, got := with.ask(name+" "+qtype, "udp")
			_, want := without.ask(name+" "+qtype, "udp")
			if diff := cmp.Diff(essence(want), essence(got)); diff != "" {
				t.Errorf("%s %s (-without the plugin +with it):\n%s", name, qtype, diff)
			}
			found += len(want.Answer)
		}
	}
	if found < 10 {
		t.Errorf("all these names have %d records: the comparison says little", found)
	}
}

// testMirroredTwice: CoreDNS' own plugin keeps the mirrored slices also where it serves the cluster's own names only, as
// the plugin's README says: it finds an imported endpoint by its address.
func (w world) testMirroredTwice(t *testing.T) {
	mirrored := endpoints("db-east-1", "10.1.0.1")
	mirrored.Labels[discoveryv1.LabelServiceName] = "derived-43254079"
	w.create(t, mirrored)
	own := startProgram(t, "kubernetes cluster.local in-addr.arpa {\nkubeconfig "+w.cluster.Kubeconfig()+"\nstartup_timeout 1m\n}")
	await(t, own, "1.0.1.10.in-addr.arpa. PTR", "NOERROR 10-1-0-1.derived-43254079.default.svc.cluster.local.")
	without := startProgram(t, "kubernetes cluster.local in-addr.arpa {\nkubeconfig "+w.cluster.Kubeconfig()+"\nstartup_timeout 1m\nnoendpoints\n}")
	await(t, without, "1.0.1.10.in-addr.arpa. PTR", "NXDOMAIN")
}

// essence returns what a reply says, in an order that does not change from one to the next.
func essence(m *dns.Msg) map[string][]string {
	result := map[string][]string{"code": {dns.RcodeToString[m.Rcode]}}
	for section, records := range map[string][]dns.RR{"answer": m.Answer, "authority": m.Ns, "additional": m.Extra} {
		for _, r := range records {
			if soa, ok := r.(*dns.SOA); ok {
				soa.Serial = 0 // a time
			}
			result[section] = append(result[section], strings.Join(strings.Fields(r.String()), " "))
		}
		slices.Sort(result[section])
	}
	return result
}
