// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// portsThatDisagree: two clusters export services with other ports, b before a. Each port reaches exactly the clusters that
// expose it: of two ports with the same name, that of the older export alone is there; ports of the same number are one,
// whatever their names; different ones are all there. What already runs continues, and a condition on both exporters reports it.
func portsThatDisagree(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.deploy("web", 1)
	b.deploy("web", 1)
	offers := []struct {
		service  string
		inA, inB []corev1.ServicePort
		merged   string
	}{
		{
			"same-name",
			[]corev1.ServicePort{tcp("http", 81, 8080), tcp("shared", 90, 8080)},
			[]corev1.ServicePort{tcp("http", 80, 8080), tcp("shared", 90, 8080)},
			"http:80/TCP, shared:90/TCP",
		},
		{
			"same-number",
			[]corev1.ServicePort{tcp("web", 80, 8081)},
			[]corev1.ServicePort{tcp("http", 80, 8080)},
			"http:80/TCP",
		},
		{
			"different",
			[]corev1.ServicePort{tcp("admin", 81, 8081)},
			[]corev1.ServicePort{tcp("http", 80, 8080)},
			"http:80/TCP, admin:81/TCP",
		},
	}
	for _, o := range offers {
		b.create(withPorts(o.service, o.inB), export(o.service))
	}
	a.awaitAnswers("tcp", s.name("same-name"), 80, "b")
	running := a.load("tcp", s.name("same-name"), 80, 20)
	b.awaitNextSecond("different")
	for _, o := range offers {
		a.create(withPorts(o.service, o.inA), export(o.service))
	}

	for _, o := range offers {
		want := fmt.Sprintf(`Conflicting ports. Using %q from all service exports, that in "b" first. 1/2 clusters disagree.`, o.merged)
		for _, p := range s.members() {
			got := p.awaitExport(o.service, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonPortConflict)
			if got != want {
				s.Errorf("cluster %s, export %s: message %s\nwant %s", p.cluster.Name, o.service, got, want)
			}
			p.awaitImport(o.service, "a", "b")
		}
	}
	for _, p := range s.members() {
		for _, network := range []string{"tcp4", "tcp6"} {
			p.portReaches(network, "same-name", 90, map[string]int{"a": 8080, "b": 8080})
			p.portReaches(network, "same-name", 80, map[string]int{"b": 8080})
			p.expectNoAnswer(network, s.name("same-name"), 81)
			p.portReaches(network, "same-number", 80, map[string]int{"a": 8081, "b": 8080})
			p.portReaches(network, "different", 80, map[string]int{"b": 8080})
			p.portReaches(network, "different", 81, map[string]int{"a": 8081})
		}
	}
	if total := running.endClean(); total.ByCluster["b"] != total.Requests {
		s.Errorf("while a's export came: %v answered %d requests, want b alone", total.ByCluster, total.Requests)
	}
}

// portReaches waits until a port of a service reaches these clusters, and fails the story unless it then reaches them alone,
// and in each of them the port that the servers listen on.
func (p *place) portReaches(network, service string, port int, listening map[string]int) {
	p.Helper()
	var clusters []string
	for name := range listening {
		clusters = append(clusters, name)
	}
	p.awaitAnswers(network, p.name(service), port, clusters...)
	for _, answer := range p.expectAnswers(network, p.name(service), port, clusters...) {
		if answer.Port != listening[answer.Cluster] {
			p.Errorf("cluster %s asks port %d of %s over %s: want ports %v, got %+v", p.cluster.Name, port, service, network, listening, answer)
		}
	}
}

func tcp(name string, port, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(target)}
}

// forWeb returns a Service for the pods of Deployment web, whatever its own name is.
func forWeb(name string) *corev1.Service {
	s := service(name)
	s.Spec.Selector = map[string]string{"app": "web"}
	return s
}

// withPorts returns such a Service with other ports.
func withPorts(name string, ports []corev1.ServicePort) *corev1.Service {
	s := forWeb(name)
	s.Spec.Ports = ports
	return s
}

// awaitNextSecond waits until what is created now is younger than an export: their ages count in whole seconds.
func (p *place) awaitNextSecond(name string) {
	p.Helper()
	var e mcsv1beta1.ServiceExport
	p.shows("a second after the export of "+name, name, &e, func() error {
		if age := time.Since(e.CreationTimestamp.Time); age < time.Second {
			return fmt.Errorf("it is %s old", age)
		}
		return nil
	})
}
