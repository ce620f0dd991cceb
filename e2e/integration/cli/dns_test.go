// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// testStaleForward: the Service of Tombolo's DNS is created again, with another address than the Corefile forwards to. status, trace and join
// say so and name the command that repairs it.
func (s *surveyed) testStaleForward(t *testing.T) {
	corefile := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}, Data: map[string]string{"Corefile": kubeadmCorefile}}
	s.create(t, "west", corefile)
	named := framework.Key{Namespace: "shop", Name: "named"}
	s.serve(t, "east", named.Name, "10.1.0.77", 80)
	s.create(t, "east", framework.Export(named))
	isAboutDNS := func(p []assess.Problem) bool {
		return about(assess.ReasonDNSNotSet, "west", "")(p) || about(assess.ReasonDNSStale, "west", "")(p)
	}
	repaired := func(when, address string) {
		t.Helper()
		s.must(t, "dns --context west")
		s.unchanged(t, "dns --context west")
		s.get(t, "west", corefile)
		if text := corefile.Data["Corefile"]; strings.Count(text, "forward . "+address) != 1 || strings.Count(text, "clusterset.local:53") != 1 {
			t.Errorf("%s:\n%s", when, text)
		}
		status := s.awaitProblems(t, "repaired DNS "+when, func(p []assess.Problem) bool { return !isAboutDNS(p) })
		for _, m := range status.Members {
			if m.ID == "west" && m.DNS != memberdns.Forwarded {
				t.Errorf("%s: %s: %s", when, m.DNS, m.DNSMessage)
			}
		}
	}
	join := s.join("west", "--wait 0 --check-from-inside=false --agent-image example/agent:v1 --pod-cidrs 10.2.0.0/16")

	s.awaitProblems(t, "DNS that is not set", about(assess.ReasonDNSNotSet, "west", ""))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-dns"}}
	s.get(t, "west", service)
	before := service.Spec.ClusterIP
	repaired("at first", before)
	s.says(t, join, "Its DNS is configured: the Corefile in ConfigMap kube-system/coredns forwards clusterset.local to "+before)

	page := s.openDashboard(t, "--all-contexts", cli.ExitOK)
	page.await(t, "no problem of DNS", func(u dashboardUpdate) bool { return len(u.Members) == 2 && !isAboutDNS(u.Problems) })
	after := s.createAgain(t, "west", service)
	const command = "kubectl clusterset dns --context west"
	status := s.awaitProblems(t, "stale forward", about(assess.ReasonDNSStale, "west", ""))
	for _, p := range status.Problems {
		if p.Reason == assess.ReasonDNSStale && (p.Next != "Run: "+command || !strings.Contains(p.Message, before) || !strings.Contains(p.Message, after)) {
			t.Errorf("%+v", p)
		}
	}
	page.await(t, "a stale forward", func(u dashboardUpdate) bool { return isAboutDNS(u.Problems) })
	s.endsWith(t, "trace shop/named --all-contexts --from west --dns-server west=none --dns-server east=none", cli.ExitFailed, "but Service tombolo-system/tombolo-dns has the address "+after, command)
	s.says(t, join, "repair its DNS", "but Service tombolo-system/tombolo-dns has the address "+after, "Run: kubectl clusterset dns")
	repaired("after the Service was created again", after)
	page.await(t, "the repaired forward", func(u dashboardUpdate) bool { return !isAboutDNS(u.Problems) })

	s.edit(t, "west", corefile, func() { // by hand, without marks
		corefile.Data["Corefile"] = kubeadmCorefile + "clusterset.local:53 {\n    forward . " + before + "\n}\n"
	})
	s.awaitProblems(t, "stale forward by hand", about(assess.ReasonDNSStale, "west", ""))
	repaired("after an edit by hand", after)

	lab.Must(t, s.client(t, "west").Delete(t.Context(), corefile))
	for _, object := range []client.Object{framework.Export(named), framework.Service(named), framework.Slice(framework.Service(named), "1", "10.1.0.77")} {
		lab.Must(t, s.client(t, "east").Delete(t.Context(), object))
	}
	for _, name := range []string{"east", "west"} {
		s.awaitCount(t, name, &mcsv1beta1.ServiceImportList{}, 3)
	}
}

// createAgain deletes a Service and creates it with another address, which it returns.
func (s *surveyed) createAgain(t *testing.T, cluster string, service *corev1.Service) string {
	t.Helper()
	c := s.client(t, cluster)
	lab.Must(t, c.Delete(t.Context(), service))
	address := netip.MustParseAddr(service.Spec.ClusterIP)
	for range 10 {
		address = address.Next()
		again := service.DeepCopy()
		again.ObjectMeta = metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name, Labels: service.Labels}
		again.Spec.ClusterIP, again.Spec.ClusterIPs = address.String(), nil
		if err := c.Create(t.Context(), again); err == nil {
			return address.String()
		}
	}
	t.Fatalf("no address after %s is free", service.Spec.ClusterIP)
	return ""
}
