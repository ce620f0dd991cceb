// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/internal/access"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// grantTo lets accounts of the scene's namespace in b use web of a.
func (s *scene) grantTo(accounts ...string) {
	s.Helper()
	grant := fmt.Sprintf(`
apiVersion: policy.tombolo-mcs.io/v1alpha1
kind: ServiceExportGrant
metadata: {name: web, namespace: %[1]s}
spec:
  exports: [web]
  to:
  - {clusters: [b], namespaces: [%[1]s], serviceAccounts: [%[2]s]}`, s.namespace, strings.Join(accounts, ", "))
	_, err := s.Kubectl(s.Context(), grant, "--context", "a", "apply", "-f", "-")
	lab.Must(s, err)
}

// account creates a service account and a pod of it, both with this name, and waits until the pod runs.
func (p *place) account(name string) {
	p.Helper()
	p.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}})
	p.awaitPhase(p.clientOf(name, name, "sleep", "1000000"), corev1.PodRunning)
}

func (p *place) clientOf(name, account string, command ...string) *corev1.Pod {
	p.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			ServiceAccountName: account, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{probeContainer(command...)},
		},
	}
	p.create(pod)
	return pod
}

// awaitPhase waits until a pod has a phase, and returns its addresses.
func (p *place) awaitPhase(pod *corev1.Pod, phase corev1.PodPhase) []corev1.PodIP {
	p.Helper()
	p.within(podWaitLimit, fmt.Sprintf("pod %s in cluster %s is %s", pod.Name, p.cluster.Name, phase), func(ctx context.Context) error {
		if err := p.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.Status.Phase == phase {
			return err
		}
		return fmt.Errorf("it is %s", pod.Status.Phase)
	})
	return pod.Status.PodIPs
}

// asked returns the answer that a pod gets from a service.
func (p *place) asked(ctx context.Context, pod, service string) (answer, error) {
	var out bytes.Buffer
	if err := p.exec(ctx, pod, nil, &out, "/probe", "ask", "-network", "tcp4", "-timeout", requestTimeout, net.JoinHostPort(p.name(service), "80")); err != nil {
		return answer{}, err
	}
	return p.parse([]string{strings.TrimSpace(out.String())})[0], nil
}

// awaitAccess waits until a service answers to a pod, or does not.
func (p *place) awaitAccess(pod, service string, allowed bool) {
	p.Helper()
	p.eventually(fmt.Sprintf("access of pod %s to %s: %v", pod, service, allowed), func(ctx context.Context) error {
		got, err := p.asked(ctx, pod, service)
		if err == nil && (got.Error == "") != allowed {
			err = fmt.Errorf("the answer is %+v", got)
		}
		return err
	})
}

// grantRestricts: a grant lets one service account of another network use a service and no other, and what the commands, the condition
// and the Event say agrees with it. A change of the grant closes an open stream. A pod that has the address of one that has finished does
// not have its rights.
func grantRestricts(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.offer("web", 1)
	b.account("frontend")
	b.account("backend")
	b.awaitImport("web", "a")
	b.awaitAnyAnswer("tcp4", s.name("web"), 80)
	s.grantTo("frontend", "default")
	b.awaitAccess("backend", "web", false)
	b.awaitAccess("frontend", "web", true)
	b.awaitAccess(clientPod, "web", true)
	saysSo(s)

	open := b.keepOpen("web")
	s.grantTo("frontend")
	b.awaitAccess(clientPod, "web", false)
	b.awaitAccess("frontend", "web", true)
	answers := open.endAnswers()
	if first, last := answers[0], answers[len(answers)-1]; first.Error != "" || last.Error == "" {
		s.Errorf("the open stream: the first of %d answers is %+v, the last is %+v, want that only the last is an error", len(answers), first, last)
	}
	addressIsReused(s)
}

// saysSo: the commands, the Event and the condition agree with what pods see while frontend is granted and backend is not.
func saysSo(s *scene) {
	service, frontend, backend := s.namespace+"/web", "b/"+s.namespace+"/frontend", "b/"+s.namespace+"/backend"
	for _, test := range []struct {
		args  []string
		want  string
		fails bool
	}{
		{[]string{"can-connect", frontend, service}, "a: yes", false},
		{[]string{"can-connect", backend, service}, access.NotGranted, true},
		{[]string{"trace", service, "--client", frontend}, "ServiceExportGrant " + service, false},
		{[]string{"trace", service, "--client", backend}, access.NotGranted, true},
		{[]string{"explain", service}, "ServiceExportGrant " + service, false},
	} {
		out, err := s.Kubectl(s.Context(), "", append(append([]string{"clusterset"}, test.args...), "--all-contexts")...)
		if (err != nil) != test.fails || !strings.Contains(out, test.want) {
			s.Errorf("%v: %v, want %q in\n%s", test.args, err, test.want, out)
		}
	}
	shows := func(want string, args ...string) {
		s.eventually(want, func(ctx context.Context) error {
			out, err := s.Kubectl(ctx, "", append([]string{"--context", "a", "-n", s.namespace}, args...)...)
			if err == nil && !strings.Contains(out, want) {
				err = errors.New(out)
			}
			return err
		})
	}
	shows("client "+s.namespace+"/backend of cluster b is denied", "describe", "serviceexportgrant", "web")
	shows("enforce it for connections with b", "get", "serviceexportgrant", "web", "-o", "yaml")
}

// addressIsReused: a pod of an account that has a grant finishes, and a pod of one that has none gets its address. The stories that run at the
// same time create pods too, which may get it first.
func addressIsReused(s *scene) {
	b := s.in("b")
	lowestFirst := func() { // or the next pod gets the address after that of the last one
		_, err := b.cluster.Run(s.Context(), "sh", "-c", "rm -f /var/lib/cni/networks/pods/last_reserved_ip.*")
		lab.Must(s, err)
	}
	const attempts = 10
	for i := range attempts {
		lowestFirst()
		// It finishes when a has answered: the API may show its address only after its first request.
		finished := b.clientOf(fmt.Sprint("finished-", i), "frontend", "sh", "-c", fmt.Sprintf(
			`until /probe ask -network tcp4 -timeout %s %s | grep '"cluster":"a"'; do sleep 0.1; done`, requestTimeout, net.JoinHostPort(s.name("web"), "80")))
		address := b.awaitPhase(finished, corev1.PodSucceeded)[0]
		lowestFirst()
		next := b.clientOf(fmt.Sprint("next-", i), "backend", "sleep", "1000000")
		if b.awaitPhase(next, corev1.PodRunning)[0] != address {
			continue
		}
		got, err := b.asked(s.Context(), next.Name, "web")
		lab.Must(s, err)
		if got.Error == "" {
			s.Errorf("pod %s has address %v of the pod that has finished, and its rights: %+v", next.Name, address, got)
		}
		b.awaitAccess("frontend", "web", true)
		return
	}
	s.Errorf("in %d attempts, no pod got the address of the one that had finished", attempts)
}

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
