// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// rollingUpdateLosesNoRequest: an exported Deployment is updated under load from another cluster. No request fails, as none
// does inside the Deployment's own cluster, and each old pod has left the slices of the other cluster before it ends.
func rollingUpdateLosesNoRequest(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.offer("web", 3)
	local := "web." + s.namespace + ".svc.cluster.local"
	a.awaitAnswer(local)
	b.awaitAnswer(s.name("web"))
	before := a.pods("web")
	left, ended := b.followSlices("web"), a.followEnds("web")
	control := a.load("tcp", local, 80, 50)
	remote := b.load("tcp", s.name("web"), 80, 50)

	a.rollOut(s.namespace, "web")
	b.reached("web", a.pods("web"))

	inside, across := control.endClean(), remote.endClean()
	s.Logf("inside the cluster %+v, across %+v", inside, across)
	for _, pod := range append(before, a.pods("web")...) {
		if across.ByPod[pod.Name] == 0 {
			s.Errorf("no request from cluster b was answered by pod %s: %v", pod.Name, across.ByPod)
		}
	}
	leaves, ends := left(), ended()
	for _, pod := range before {
		ip := podIP("A", pod)
		leave, end := leaves[ip], ends[ip]
		s.Logf("pod %s left the slices of cluster b %.1f s before it ended", pod.Name, end.Sub(leave).Seconds())
		if leave.IsZero() || end.IsZero() || !leave.Before(end) {
			s.Errorf("pod %s, %s: it left the slices of cluster b at %v, and ended at %v", pod.Name, ip, leave, end)
		}
	}
}

// reached waits until each of these pods has answered a request from here.
func (p *place) reached(service string, pods []corev1.Pod) {
	p.Helper()
	seen := map[string]bool{}
	p.eventually("answers of all pods of "+service+" in cluster "+p.cluster.Name, func(context.Context) error {
		for _, a := range p.ask("tcp", p.name(service), 80, 10) {
			if a.Error != "" {
				p.Fatalf("cluster %s: a request failed: %+v", p.cluster.Name, a)
			}
			seen[a.Pod] = true
		}
		for _, pod := range pods {
			if !seen[pod.Name] {
				return fmt.Errorf("pod %s has not answered; these have: %v", pod.Name, seen)
			}
		}
		return nil
	})
}

// rollOut replaces all pods of a Deployment, as "kubectl rollout restart" does, and returns when the last old one has gone.
func (p *place) rollOut(namespace, deployment string) {
	p.Helper()
	before := p.podsOf(namespace, deployment)
	at := []string{"--context", p.cluster.Name, "-n", namespace, "rollout"}
	for _, args := range [][]string{
		append(at[:len(at):len(at)], "restart", "deployment/"+deployment),
		append(at[:len(at):len(at)], "status", "deployment/"+deployment, "--timeout=120s"),
	} {
		_, err := p.Kubectl(p.Context(), "", args...)
		lab.Must(p, err)
	}
	for _, pod := range before {
		p.awaitEnd(pod)
	}
}

func (p *place) awaitEnd(pod corev1.Pod) {
	p.Helper()
	p.eventually("the end of pod "+pod.Name+" in cluster "+p.cluster.Name, func(ctx context.Context) error {
		var now corev1.Pod
		err := p.client.Get(ctx, client.ObjectKeyFromObject(&pod), &now)
		if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
			return nil
		}
		return errors.Join(errors.New("it is still there"), err)
	})
}

// followSlices returns a function that ends the watch of a service's imported slices, and returns when each address was last
// taken out of its ready endpoints.
func (p *place) followSlices(service string) func() map[string]time.Time {
	p.Helper()
	left := map[string]time.Time{}
	ready := map[string]map[string]bool{}
	stop := p.follow(&discoveryv1.EndpointSliceList{}, client.MatchingLabels{mcsv1beta1.LabelServiceName: service}, func(e watch.Event) {
		slice, ok := e.Object.(*discoveryv1.EndpointSlice)
		if !ok {
			return
		}
		now := map[string]bool{}
		for _, endpoint := range slice.Endpoints {
			if e.Type != watch.Deleted && endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
				for _, address := range endpoint.Addresses {
					now[address] = true
					delete(left, address)
				}
			}
		}
		for address := range ready[slice.Name] {
			if !now[address] {
				left[address] = time.Now()
			}
		}
		ready[slice.Name] = now
	})
	return func() map[string]time.Time { stop(); return left }
}

// followEnds returns a function that ends the watch of a workload's pods, and returns when the container of each, by its IPv4
// address, ended: to the second, and not later.
func (p *place) followEnds(name string) func() map[string]time.Time {
	p.Helper()
	ended := map[string]time.Time{}
	stop := p.follow(&corev1.PodList{}, client.MatchingLabels{"app": name}, func(e watch.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			return
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Terminated != nil {
				ended[podIP("A", *pod)] = c.State.Terminated.FinishedAt.Time
			}
		}
	})
	return func() map[string]time.Time { stop(); return ended }
}

// follow shows every change of objects of the scene's namespace, beginning with those that are there, until the function
// that it returns is called.
func (p *place) follow(list client.ObjectList, which client.MatchingLabels, see func(watch.Event)) func() {
	p.Helper()
	w, err := p.client.Watch(p.Context(), list, client.InNamespace(p.namespace), which)
	if err != nil {
		p.Fatalf("cluster %s: watch %T: %v", p.cluster.Name, list, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			see(e)
		}
	}()
	p.Cleanup(w.Stop)
	return func() {
		w.Stop()
		<-done
	}
}
