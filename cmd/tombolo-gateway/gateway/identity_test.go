// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// pods are the pods of a cluster, found by address as in the cache.
type pods struct {
	client.Reader
	mu    sync.Mutex
	items []corev1.Pod
}

func (p *pods) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var applied client.ListOptions
	applied.ApplyOptions(options)
	for i := range p.items {
		compacted, err := compactPod(&p.items[i])
		if err != nil {
			return err
		}
		for _, address := range caches.PodAddresses(compacted.(client.Object)) {
			if applied.FieldSelector.Matches(fields.Set{caches.IndexAddress: address}) {
				list.(*corev1.PodList).Items = append(list.(*corev1.PodList).Items, *compacted.(*corev1.Pod))
			}
		}
	}
	return nil
}

func podAt(name, account string, phase corev1.PodPhase, addresses ...string) corev1.Pod {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{ServiceAccountName: account}, Status: corev1.PodStatus{Phase: phase},
	}
	for _, address := range addresses {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: address})
	}
	return pod
}

// spec: A3
func TestIdentity(t *testing.T) {
	t.Parallel()
	node := podAt("proxy", "proxy", corev1.PodRunning, "10.0.0.1")
	node.Spec.HostNetwork = true
	terminating := podAt("leaving", "web", corev1.PodRunning, "10.1.0.5")
	terminating.DeletionTimestamp = &metav1.Time{Time: start}
	i := newIdentities(&pods{items: []corev1.Pod{
		podAt("web", "web", corev1.PodRunning, "10.1.0.1", "fd00::1"), podAt("job", "job", corev1.PodSucceeded, "10.1.0.1"), podAt("crash", "job", corev1.PodFailed, "10.1.0.1"),
		podAt("one", "one", corev1.PodRunning, "10.1.0.2"), podAt("two", "one", corev1.PodRunning, "10.1.0.2"), node, podAt("odd", "odd", corev1.PodRunning, "10.0.0.1"), terminating,
	}}, clocktesting.NewFakeClock(start))
	for address, want := range map[string]string{
		"10.1.0.1": "web", "fd00::1": "web", "10.1.0.5": "web", // those that have finished do not count, one that terminates does
		"10.1.0.2": "", "10.0.0.1": "", // of two pods, and of a node
	} {
		namespace, account := i.of(t.Context(), netip.MustParseAddr(address))
		if account != want || (namespace == "shop") != (want != "") {
			t.Errorf("%s is %s/%s, want account %q", address, namespace, account, want)
		}
	}
}

// BenchmarkPods reports the memory that the cache of pods takes, for each pod.
func BenchmarkPods(b *testing.B) {
	const n = 10_000
	heap := func() float64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	for b.Loop() {
		before := heap()
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{caches.IndexAddress: func(object any) ([]string, error) {
			return caches.PodAddresses(object.(client.Object)), nil
		}})
		for i := range n {
			pod := podAt(fmt.Sprintf("web-7d4b9c6f5-%05d", i), "default", corev1.PodRunning, fmt.Sprintf("10.1.%d.%d", i/250, i%250), fmt.Sprintf("fd00::%x", i))
			pod.UID, pod.ResourceVersion = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), fmt.Sprint(1_000_000+i)
			pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web", Env: make([]corev1.EnvVar, 20)}}
			compacted, err := compactPod(&pod)
			check.Must(b, err)
			check.Must(b, store.Add(compacted))
		}
		b.ReportMetric((heap()-before)/n, "B/pod")
		runtime.KeepAlive(store)
	}
}

// A client whose pod the API does not show yet waits for it, for a bounded time.
//
// spec: A3
func TestIdentityOfNewPods(t *testing.T) {
	t.Parallel()
	other := podAt("other", "other", corev1.PodRunning, "10.1.0.9")
	clock, known := clocktesting.NewFakeClock(start), &pods{items: []corev1.Pod{other}}
	i := newIdentities(known, clock)
	address := netip.MustParseAddr("10.1.0.1")
	ask := func() <-chan string {
		result := make(chan string, 1)
		go func() {
			_, account := i.of(context.Background(), address)
			result <- account
		}()
		return result
	}
	waits := func() { // until the client waits
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !clock.HasWaiters(); {
			if time.Now().After(deadline) {
				t.Fatal(errors.New("the client does not wait"))
			}
		}
	}
	add := func(items ...corev1.Pod) {
		known.mu.Lock()
		known.items = items
		known.mu.Unlock()
		i.notify()
	}
	first := ask()
	waits()
	add(other)
	add(podAt("web", "web", corev1.PodRunning, "10.1.0.1"))
	check.Equal(t, "the first client", "web", <-first)
	add(other)
	second := ask()
	waits()
	clock.Step(podTimeout)
	check.Equal(t, "a client of no pod", "", <-second)
	check.Equal(t, "the next client, without waiting: the clock does not advance", "", <-ask())
	add(podAt("web", "web", corev1.PodRunning, "10.1.0.1"))
	check.Equal(t, "the client of a new pod", "web", <-ask())
	add(other)
	third := ask() // waits again, because a pod has had the address
	waits()
	clock.Step(podTimeout)
	<-third
	clock.Step(unknownTime)
	fourth := ask()
	waits()
	clock.Step(podTimeout)
	<-fourth
}

// A client whose address belongs to no pod waits only if a rule of its cluster depends on who it is. If one of the other cluster may, the
// other gateway is asked.
//
// spec: A3
func TestWaitOnlyForRules(t *testing.T) {
	t.Parallel()
	shop := []policyv1alpha1.Peer{{Namespaces: []policyv1alpha1.NamespaceName{"shop"}}}
	policy := func(direction policyv1alpha1.Direction, services ...policyv1alpha1.ObjectName) []policyv1alpha1.ClusterServiceAccessPolicy {
		return []policyv1alpha1.ClusterServiceAccessPolicy{{Spec: policyv1alpha1.ClusterServiceAccessPolicySpec{
			Tier: policyv1alpha1.TierAdmin, Direction: direction, Action: policyv1alpha1.ActionPass, Services: services, Peers: shop,
		}}}
	}
	for name, test := range map[string]struct {
		policies []policyv1alpha1.ClusterServiceAccessPolicy
		waits    bool
		exporter string // its answer to a client that is not identified
	}{
		"no rule":                 {nil, false, ""},
		"a rule for clients here": {policy(policyv1alpha1.DirectionImport), true, ""},
		"of another service":      {policy(policyv1alpha1.DirectionImport, "db"), false, ""},
		"a rule for others":       {policy(policyv1alpha1.DirectionExport), false, errUnidentified.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := &withPods{objects{policies: test.policies}, &pods{}}
				g := newGateway(t.Context(), Options{Log: logr.Discard()}, cluster, events.NewFakeRecorder(100))
				g.rules.load(t.Context())
				request := wire.Open{Namespace: "shop", Service: "web", Port: 80, Client: netip.MustParseAddr("10.0.0.9")}
				began := time.Now()
				g.identify(t.Context(), "west", &request)
				waited := time.Since(began)
				check.Equal(t, "it waits", test.waits, waited > 0)
				check.Equal(t, "it is not identified", !test.waits, request.Unidentified)
				check.Equal(t, "its refusal by its own cluster", (*wire.Refusal)(nil), g.rules.importing.Denied("west", request))
				answer := ""
				request.Unidentified = true
				if refusal := g.rules.exporting.Denied("east", request); refusal != nil {
					answer = refusal.Error()
				}
				check.Equal(t, "answer of such a gateway to a client of another cluster", test.exporter, answer)
				cluster.pods.items = []corev1.Pod{podAt("web", "web", corev1.PodRunning, "10.0.0.9")}
				g.identify(t.Context(), "west", &request)
				check.Equal(t, "when the API shows its pod", "shop/web false", fmt.Sprintf("%s/%s %t", request.ClientNamespace, request.ServiceAccount, request.Unidentified))
			})
		})
	}
}

// withPods is the cache of a cluster with pods.
type withPods struct {
	objects
	pods *pods
}

func (c *withPods) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*corev1.PodList); ok {
		return c.pods.List(ctx, list, options...)
	}
	return c.objects.List(ctx, list, options...)
}
