// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// headlessServiceIsItsReadyPods: in every cluster, the name of a headless service that two clusters export resolves to
// exactly the ready pods of both, in both families, also after one has scaled up and the other down.
func headlessServiceIsItsReadyPods(s *scene) {
	a, b := s.in("a"), s.in("b")
	for _, p := range s.members() {
		p.deploy("web", 2)
		p.create(headless("web"), export("web"))
	}
	s.everywhereSays("web", append(a.pods("web"), b.pods("web")...))

	a.scale("web", 3)
	b.scale("web", 1)
	s.everywhereSays("web", append(a.pods("web"), b.pods("web")...))
}

// everywhereSays waits until the name of a headless service is, in every cluster and in both families, these pods.
func (s *scene) everywhereSays(service string, pods []corev1.Pod) {
	s.Helper()
	for _, p := range s.members() {
		for kind := range families {
			p.awaitDNS(kind, s.name(service), addresses(kind, pods...))
		}
	}
}

// statefulPodsHaveNamesOfTheirOwn: each pod of a StatefulSet that two clusters export has a name below its cluster's ID,
// which leads to this very pod, and an SRV record. A pod that turns unready loses both, and has them back when it returns,
// but in a Service that publishes unready addresses it stays.
func statefulPodsHaveNamesOfTheirOwn(s *scene) {
	a := s.in("a")
	for _, p := range s.members() {
		p.deployStateful("db", 2)
		all := headless("db-all")
		all.Spec.Selector = map[string]string{"app": "db"}
		all.Spec.PublishNotReadyAddresses = true
		p.create(headless("db"), export("db"), all, export("db-all"))
	}
	s.eachPodHasItsName("db")
	s.serviceHasTargets("db", "db-0.a", "db-1.a", "db-0.b", "db-1.b")

	a.shell("db-0", "touch /tmp/unready")
	s.serviceHasTargets("db", "db-1.a", "db-0.b", "db-1.b")
	for _, p := range s.members() {
		for kind := range families {
			p.awaitDNS(kind, "db-0.a."+s.name("db"), "NXDOMAIN")
		}
	}
	s.everywhereSays("db-all", append(a.pods("db"), s.in("b").pods("db")...))

	a.shell("db-0", "rm /tmp/unready")
	s.serviceHasTargets("db", "db-0.a", "db-1.a", "db-0.b", "db-1.b")
	s.eachPodHasItsName("db")

	// The last ready pods leave: then there is no such service.
	for _, p := range s.members() {
		for _, pod := range p.pods("db") {
			p.shell(pod.Name, "touch /tmp/unready")
		}
	}
	for _, p := range s.members() {
		p.awaitDNS("A", s.name("db"), "NXDOMAIN")
	}
	s.everywhereSays("db-all", append(a.pods("db"), s.in("b").pods("db")...))
}

// exampleOfAStatefulSet: examples/statefulset-headless, in a and b. A pod of b reaches each pod of a by its name, and a pod of a
// those of b.
func exampleOfAStatefulSet(s *scene) {
	rendered, err := s.Kubectl(s.Context(), "", "kustomize", "examples/statefulset-headless")
	lab.Must(s, err)
	rendered = strings.ReplaceAll(rendered, "namespace: shop", "namespace: "+s.namespace)
	for _, p := range s.members() {
		_, err := s.Kubectl(s.Context(), rendered, "--context", p.cluster.Name, "apply", "-f", "-")
		lab.Must(s, err)
	}
	for from, to := range map[string]string{"a": "b", "b": "a"} {
		p := s.in(from)
		p.awaitPods("db", 2)
		p.awaitImport("db", "a", "b")
		for _, pod := range []string{"db-0", "db-1"} {
			name := fmt.Sprintf("%s.%s.%s", pod, to, s.name("db"))
			p.within(podWaitLimit, "an answer of "+name+" in cluster "+from, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				got, err := s.Kubectl(ctx, "", "--context", from, "-n", s.namespace, "exec", "db-0", "--", "socat", "-u", "TCP4:"+name+":5432", "-")
				if err == nil && strings.TrimSpace(got) != pod {
					err = fmt.Errorf("it is %q", got)
				}
				return err
			})
		}
	}
}

// eachPodHasItsName waits until, from every cluster, the name of each pod of a StatefulSet is the pod's addresses, and then
// asks it: the very pod answers.
func (s *scene) eachPodHasItsName(set string) {
	s.Helper()
	for _, p := range s.members() {
		for _, of := range s.members() {
			for _, pod := range of.pods(set) {
				name := pod.Name + "." + of.cluster.Name + "." + s.name(set)
				for kind, network := range families {
					p.awaitDNS(kind, name, addresses(kind, pod))
					p.isAnsweredBy(pod, of.cluster.Name, network, name)
				}
			}
		}
	}
}

// serviceHasTargets waits until, in every cluster, the SRV records of a headless service's ports are these endpoints, at the
// ports of the pods.
func (s *scene) serviceHasTargets(service string, endpoints ...string) {
	s.Helper()
	for _, p := range s.members() {
		for _, port := range []string{"_http._tcp.", "_udp._udp."} {
			p.awaitTargets(port, service, endpoints...)
		}
	}
}

// awaitTargets waits until the SRV records of a port of a headless service are these endpoints, at the ports of the pods.
func (p *place) awaitTargets(port, service string, endpoints ...string) {
	p.Helper()
	var want []string
	for _, e := range endpoints {
		want = append(want, "8080 "+e+"."+p.name(service)+".")
	}
	p.await("SRV", port+p.name(service), formatReply("NOERROR", want), func(r records) string {
		return formatReply(r.Rcode, targets(r.Answers))
	})
}

// targets returns port and target of SRV records, without priority and weight.
func targets(records []string) []string {
	var all []string
	for _, r := range records {
		all = append(all, strings.Join(strings.Fields(r)[2:], " "))
	}
	return all
}

// deployStateful creates a StatefulSet of servers, for a headless Service of the same name, and waits until they are ready.
func (p *place) deployStateful(name string, replicas int32) {
	p.Helper()
	labels := map[string]string{"app": name}
	p.create(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			ServiceName:         name,
			Replicas:            &replicas,
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: labels},
			Template:            corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: p.serverSpec()},
		},
	})
	p.awaitPods(name, int(replicas))
}

func (p *place) shell(pod, command string) {
	p.Helper()
	var out bytes.Buffer
	lab.Must(p, p.exec(p.Context(), pod, nil, &out, "sh", "-c", command))
}
