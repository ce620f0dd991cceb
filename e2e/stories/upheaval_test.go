// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// Where Tombolo lives in a cluster.
const (
	system = "tombolo-system"
	agent  = "tombolo-agent"
)

// agentsRestartUnnoticed: under load from another cluster all agents are rolled, killed, and for a while not there at all.
// No request fails, and DNS answers all along. When the agents are back, what has changed meanwhile arrives.
func agentsRestartUnnoticed(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.offer("web", 2)
	t := b.traffic("web")

	for _, p := range s.members() {
		p.rollOut(system, agent)
	}
	a.killAgent()
	b.deleteAgent()

	for _, p := range s.members() {
		p.scaleAgent(0)
	}
	a.scale("web", 3)
	for _, p := range s.members() {
		p.scaleAgent(1)
	}
	b.reached("web", a.pods("web"))
	t.endUnharmed("a")
}

// hubRestartsUnnoticed: under load from another cluster the hub's API server is down for a while. No request fails, and DNS
// answers all along. When the hub is back, what was exported meanwhile arrives.
func hubRestartsUnnoticed(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.offer("web", 2)
	t := b.traffic("web")

	start := s.stopHub()
	b.offer("meanwhile", 1)
	start()
	back := time.Now()

	a.awaitAnswer(s.name("meanwhile"))
	s.Logf("what was exported meanwhile answered %.1f s after the hub was back", time.Since(back).Seconds())
	if got := a.from(a.ask("tcp", s.name("meanwhile"), 80, 10)); got["b"] != 10 {
		s.Errorf("%v answered, want b alone", got)
	}
	t.endUnharmed("a")
	s.awaitHealth()
}

// stopHub stops the hub's API server until start is called or the story ends.
func (s *scene) stopHub() (start func()) {
	s.Helper()
	lab.Must(s, s.Hub.APIServer.Stop(s.Context()))
	start = func() {
		if !s.Hub.APIServer.Running() {
			lab.Must(s, s.Hub.APIServer.Start(context.Background()))
		}
	}
	s.Cleanup(start)
	return start
}

// importDeletedWhileHubIsUnreachable: the hub's API server is stopped, an importer's agent is replaced, and a user deletes a
// ServiceImport. It returns with its addresses, and a connection that was open all the time continues.
func importDeletedWhileHubIsUnreachable(s *scene) {
	a, b := s.in("a"), s.in("b") // a may be the hub
	a.offer("web", 2)
	b.awaitAnswer(s.name("web"))
	before := b.imported("web")
	open := b.keepOpen("web")

	start := s.stopHub()
	b.deleteAgent()
	b.remove(before.DeepCopy())
	restored := func() error {
		after := b.imported("web")
		if after.UID == before.UID || !slices.Equal(after.Spec.IPs, before.Spec.IPs) {
			return fmt.Errorf("import %s has addresses %v, want another one than %s with %v", after.UID, after.Spec.IPs, before.UID, before.Spec.IPs)
		}
		return nil
	}
	b.eventually("the import of cluster b", func(context.Context) error { return restored() })
	start()
	s.awaitHealth()
	b.awaitAnswer(s.name("web"))
	if err := restored(); err != nil {
		s.Error(err)
	}
	open.endUnbroken("a")
}

// dnsRestartsUnnoticed: under load the pods of DNS are replaced. Each request finds the name, and each question is answered.
func dnsRestartsUnnoticed(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.offer("web", 2)
	own, core := a.traffic("web"), b.traffic("web")

	for _, p := range s.members() {
		p.rollOut("kube-system", "coredns")
	}
	a.rollOut(system, "tombolo-dns")
	// When a pod is no longer ready, kube-proxy deletes its conntrack entries, also of a question whose answer is on its way. A resolver asks
	// again, the probe does not. Each cluster replaces at most five pods.
	own.endLosing(5, "a")
	core.endLosing(5, "a")
}

// silentMemberIsWithheld: of two clusters that serve, one loses power. Requests to its pods fail until its endpoints leave, and
// then none does any more. When it returns, so do its endpoints and its share of the traffic, without a failed request.
func silentMemberIsWithheld(s *scene) {
	a, b := s.in("a"), s.in("b") // a may be the hub
	a.offer("web", 2)
	b.offer("web", 2)
	all := append(a.pods("web"), b.pods("web")...)
	a.awaitAnswer(s.name("web"))
	a.reached("web", all)
	during := a.load("tcp", s.name("web"), 80, 20)

	stopped := time.Now()
	s.Cleanup(func() { thaw(s, b.cluster) }) // so that the story can be explained
	lab.Must(s, b.cluster.Node.Freeze(s.Context()))
	a.awaitSources("web", "a")
	s.Logf("the endpoints left after %.1f s", time.Since(stopped).Seconds())
	a.awaitCalm("web")
	total, failures := during.end()
	s.sayOutage(total, failures, stopped)

	a.renewClient()
	after := a.load("tcp", s.name("web"), 80, 20)
	if got := a.from(a.ask("tcp", s.name("web"), 80, 50)); got["a"] != 50 {
		s.Errorf("%v answered, want a alone", got)
	}
	thaw(s, b.cluster)
	thawed := time.Now()
	a.awaitSources("web", "a", "b")
	s.Logf("the endpoints returned after %.1f s", time.Since(thawed).Seconds())
	a.reached("web", all)
	s.awaitHealth()
	after.endClean()
}

// awaitCalm waits until 40 requests in a row are answered: those to pods that have lost power time out.
func (p *place) awaitCalm(service string) {
	p.Helper()
	p.eventually("answers only of "+service+" in cluster "+p.cluster.Name, func(context.Context) error {
		for range 40 {
			if a := p.ask("tcp", p.name(service), 80, 1)[0]; a.Error != "" {
				return errors.New(a.Error)
			}
		}
		return nil
	})
}

// sayOutage prints how long requests failed after a moment. It fails the story if none did: then nothing was tried.
func (s *scene) sayOutage(total totals, failures []string, since time.Time) {
	s.Helper()
	s.Logf("%d of %d requests failed; the last was sent after %.1f s", total.Failed, total.Requests, s.lastOf(failures).Sub(since).Seconds())
	if total.Failed == 0 {
		s.Error("no request failed: was the cluster down?")
	}
}

// lastOf returns when the last request was sent that failed; zero if none has.
func (s *scene) lastOf(failures []string) time.Time {
	s.Helper()
	var last time.Time
	for _, line := range failures {
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			s.Fatalf("probe printed %q: %v", line, err)
		}
		if a.Time.After(last) {
			last = a.Time
		}
	}
	return last
}

// awaitSources waits until the imported endpoints of a service are those of these clusters, in both families.
func (p *place) awaitSources(service string, clusters ...string) {
	p.Helper()
	p.eventually("sources of "+service+" in cluster "+p.cluster.Name, func(context.Context) error {
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			if got := p.sources(service, family); !slices.Equal(got, clusters) {
				return fmt.Errorf("%s endpoints are of %v, want %v", family, got, clusters)
			}
		}
		return nil
	})
}

// sources returns the clusters, sorted, of whose endpoints one at least is ready.
func (p *place) sources(service string, family discoveryv1.AddressType) []string {
	p.Helper()
	all, err := p.mirrored(p.Context(), service)
	if err != nil {
		p.Fatalf("cluster %s: list the slices of %s: %v", p.cluster.Name, service, err)
	}
	var clusters []string
	for _, slice := range all {
		ready := slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Conditions.Ready != nil && *e.Conditions.Ready })
		if ready && slice.AddressType == family && len(slice.Ports) > 0 {
			clusters = append(clusters, slice.Labels[mcsv1beta1.LabelSourceCluster])
		}
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// traffic is what users do while something is shaken: they send requests to a service by its name, and ask for the name.
type traffic struct{ requests, questions *load }

// traffic begins once the service answers.
func (p *place) traffic(service string) traffic {
	p.Helper()
	p.awaitAnswer(p.name(service))
	return traffic{p.load("tcp", p.name(service), 80, 50), p.questions("A", p.name(service), 50)}
}

// endUnharmed ends it, and fails the story for each request that failed or was not answered by these clusters, all of them,
// and for each question that was not answered as ever.
func (t traffic) endUnharmed(clusters ...string) {
	t.requests.place.Helper()
	t.endLosing(0, clusters...)
}

// endLosing is endUnharmed, but permits a number of failures of each because an answer of the DNS has not arrived.
func (t traffic) endLosing(most int, clusters ...string) {
	p := t.requests.place
	p.Helper()
	requests, questions := t.requests.endLosing(most), t.questions.endLosing(most)
	p.Logf("requests: %+v; questions: %+v", requests, questions)
	answered := 0
	for _, name := range clusters {
		answered += requests.ByCluster[name]
		if requests.ByCluster[name] == 0 {
			p.Errorf("no request was answered by cluster %s", name)
		}
	}
	if answered < requests.Requests-requests.Failed {
		p.Errorf("the requests were answered by %v, want %v alone", requests.ByCluster, clusters)
	}
	if questions.ByRcode["NOERROR"] != questions.Requests-questions.Failed || questions.Changes > 0 {
		p.Errorf("the questions were answered by %v, with %d changes; want NOERROR to all %d, and the same address",
			questions.ByRcode, questions.Changes, questions.Requests)
	}
}

// killAgent kills the process of the agent, as the kernel does when memory is short, and waits until it is back.
func (p *place) killAgent() {
	p.Helper()
	for _, pod := range p.podsOf(system, agent) {
		lab.Must(p, p.cluster.Node.KillContainer(p.Context(), client.ObjectKeyFromObject(&pod), "agent"))
		p.eventually("the agent of cluster "+p.cluster.Name, func(ctx context.Context) error {
			var now corev1.Pod
			if err := p.client.Get(ctx, client.ObjectKeyFromObject(&pod), &now); err != nil {
				return err
			}
			if now.Status.ContainerStatuses[0].RestartCount == pod.Status.ContainerStatuses[0].RestartCount {
				return errors.New("it has not been restarted")
			}
			return readyOrWhy(&now)
		})
	}
}

// deleteAgent deletes the agent's pod without grace, and waits until there is another.
func (p *place) deleteAgent() {
	p.Helper()
	before := p.podsOf(system, agent)
	for i := range before {
		if err := p.client.Delete(p.Context(), &before[i], client.GracePeriodSeconds(0)); err != nil {
			p.Fatalf("cluster %s: delete pod %s: %v", p.cluster.Name, before[i].Name, err)
		}
	}
	p.awaitSystem()
}

// scaleAgent has so many pods of the agent run, and waits until they do, or the last has gone.
func (p *place) scaleAgent(count int32) {
	p.Helper()
	before := p.podsOf(system, agent)
	p.eventually("scale the agent of cluster "+p.cluster.Name, func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := p.client.Get(ctx, client.ObjectKey{Namespace: system, Name: agent}, &d); err != nil {
			return err
		}
		d.Spec.Replicas = &count
		return p.client.Update(ctx, &d)
	})
	if count == 0 {
		for _, pod := range before {
			p.awaitEnd(pod)
		}
	}
	p.awaitSystem()
}

// awaitSystem waits until DNS and Tombolo run in a cluster as they should.
func (p *place) awaitSystem() {
	p.Helper()
	p.eventually("DNS and Tombolo in cluster "+p.cluster.Name, func(ctx context.Context) error {
		for _, namespace := range []string{"kube-system", system} {
			var list appsv1.DeploymentList
			if err := p.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
				return err
			}
			for i := range list.Items {
				if err := completeOrWhy(&list.Items[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// awaitHealth waits until all members run as they should, and have renewed their heartbeats since.
func (s *scene) awaitHealth() {
	s.Helper()
	begin := time.Now()
	for _, p := range s.members() {
		p.awaitSystem()
		s.eventually("a heartbeat of cluster "+p.cluster.Name, func(ctx context.Context) error {
			var beat hubv1alpha1.Heartbeat
			key := client.ObjectKey{Namespace: "member-" + p.cluster.Name, Name: hubv1alpha1.HeartbeatName}
			if err := s.clients[s.Hub.Name].Get(ctx, key, &beat); err != nil {
				return err
			}
			if beat.Spec.RenewTime.Time.Before(begin) || beat.Spec.Publication != hubv1alpha1.PublicationComplete {
				return fmt.Errorf("the last was %+v", beat.Spec)
			}
			return nil
		})
	}
}
