// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestCopiedMember: a cluster that is restored from a snapshot of a member that runs has the same UID, ID and token. It publishes nothing, and
// says why. The member continues, also when its agent restarts. When the member is silent, its copy is the member.
//
// spec: K2, C2
func TestCopiedMember(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	stop := a.Start(t)
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	a.ExportWeb(t, k, "10.1.0.1")
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	copied := b.copyOf(t, a)
	b.ExportWeb(t, k, "10.1.0.200") // its pod has another address of the same range
	writes := w.countWrites(t, "member-a")

	for range 2 { // the second is the next replica
		stopCopy := b.Start(t, copied)
		got := b.Condition(t, k, ready, metav1.ConditionFalse, "Failed").Message
		want := `The hub refuses the export: another agent with the identity of this cluster (ID "a", kube-system UID ` + a.UID(t) + `) renews the heartbeat, ` +
			`so one of two clusters is a copy of the other, and this one publishes nothing: if this one is the copy, run "kubectl clusterset leave --from member" in it; ` +
			`if the other one is, stop its agent, and this one continues when the other has been silent for 4s`
		if got != want {
			t.Errorf("message %q\nwant    %q", got, want)
		}
		b.Gauge(t, "tombolo_identity_refused", 1)
		stopCopy()
	}
	b.Start(t, copied)
	b.Gauge(t, "tombolo_identity_refused", 1)
	a.beats(t, w)
	lab.Must(t, w.publishes(t.Context(), k, "10.1.0.1"))
	if n := writes.Load(); n > 0 {
		t.Errorf("%d writes of records of a while a copy ran", n)
	}
	beat := &hubv1alpha1.Heartbeat{}
	lab.Must(t, w.HubClient.Get(t.Context(), key{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName}, beat))
	if beat.Spec.ContestedAt == nil {
		t.Error("the heartbeat does not show that there is a copy")
	}
	if n, err := a.GaugeValue("tombolo_identity_refused"); err != nil || n != 0 {
		t.Errorf("a: tombolo_identity_refused is %v, %v", n, err)
	}

	stop()
	stop = a.Start(t) // the original restarts
	a.beats(t, w)
	a.Gauge(t, "tombolo_identity_refused", 0)
	b.Gauge(t, "tombolo_identity_refused", 1)
	lab.Must(t, w.publishes(t.Context(), k, "10.1.0.1"))
	stop()
	world.Eventually(t, func(ctx context.Context) error { return w.publishes(ctx, k, "10.1.0.200") })
	b.Gauge(t, "tombolo_identity_refused", 0)
	a.Start(t) // who renews now is the copy
	a.Gauge(t, "tombolo_identity_refused", 1)
	a.beats(t, w)
	lab.Must(t, w.publishes(t.Context(), k, "10.1.0.200"))
}

// TestOlderCopy: an older agent writes no nonce, so it is not known which of two clusters is the copy. Neither stops, and their reverts of
// each other's records are paced.
//
// spec: K2
func TestOlderCopy(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	a.Start(t, olderAgent)
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	a.ExportWeb(t, k, "10.1.0.1")
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	copied := b.copyOf(t, a)
	b.ExportWeb(t, k, "10.1.0.200")
	writes := w.countWrites(t, "member-a")
	b.Start(t, copied)
	for range 5 {
		a.beats(t, w)
	}
	for _, m := range []*member{a, b} {
		m.Gauge(t, "tombolo_identity_refused", 0)
	}
	if n := writes.Load(); n == 0 || n > 30 {
		t.Errorf("%d writes of one record by a member and its copy in five heartbeats, want some, and at most 30", n)
	}
}

// TestLeaseOfPredecessor: an agent does not wait for the lease of a process that has ended: one that has released it on whatever end, one of
// its own Pod, and one of a Pod that is terminated. A Pod that is absent, or that runs, proves nothing.
//
// spec: K2
func TestLeaseOfPredecessor(t *testing.T) {
	t.Parallel()
	w, a, _ := newPair(t)
	elect := func(uid string) func(*agent.Options) {
		return func(o *agent.Options) {
			o.Election, o.Namespace, o.Pod = agent.ElectLeader, manifests.AgentNamespace, agent.Pod{Name: "agent-" + uid, UID: uid}
		}
	}
	leads := func(uid, before string) string {
		t.Helper()
		holder := clusterset.LeaseHolder{}
		world.Eventually(t, func(ctx context.Context) error {
			lease := &coordinationv1.Lease{}
			if err := a.Get(ctx, key{Namespace: manifests.AgentNamespace, Name: "tombolo-agent"}, lease); err != nil {
				return err
			}
			if lease.Spec.HolderIdentity != nil {
				holder = clusterset.ParseLeaseHolder(*lease.Spec.HolderIdentity)
			}
			if holder.PodUID != uid || holder.Nonce == before {
				return fmt.Errorf("%s leads, want another process of Pod %s", holder, uid)
			}
			return nil
		})
		world.Eventually(t, func(ctx context.Context) error { return w.beatsWith(ctx, holder.Nonce) })
		return holder.Nonce
	}
	first := a.Run(t.Context(), t, elect("one"))
	leads("one", "")
	property := &aboutv1beta1.ClusterProperty{}
	idOf := func(id string) {
		world.Update(t, a, key{Name: aboutv1beta1.ClusterIDProperty}, property, func() { property.Spec.Value = id })
	}
	idOf("other")
	if err := <-first; err == nil { // an end with an error
		t.Error("an agent whose ID changes does not end")
	}
	idOf("a")
	if holder := a.leaseHolder(t); holder != "" {
		t.Errorf("the lease is not released: %s holds it", holder)
	}

	// A process is killed: its last requests do not arrive. Its container is restarted.
	nonce := a.killLeader(t, elect("one"), func() string { return leads("one", "") })
	stop := a.Start(t, elect("one"))
	leads("one", nonce)
	a.tookOver(t)
	stop()

	// Its Pod is terminated, and another one follows.
	a.killLeader(t, elect("two"), func() string { return leads("two", "") })
	a.leaveLease(t, a, manifests.AgentNamespace)
	a.Start(t, elect("three"))
	leads("three", "")
	a.tookOver(t)
}

// killLeader runs an agent until it leads, and ends it without a last request. It returns what leads returns.
func (m *member) killLeader(t *testing.T, elect func(*agent.Options), leads func() string) string {
	t.Helper()
	dead := &atomic.Bool{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := m.Run(ctx, t, elect, func(o *agent.Options) {
		o.Member = rest.CopyConfig(o.Member)
		o.Member.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if dead.Load() {
					return nil, errors.New("the process is dead")
				}
				return next.RoundTrip(request)
			})
		})
	})
	nonce := leads()
	dead.Store(true)
	cancel()
	<-ended
	if holder := clusterset.ParseLeaseHolder(m.leaseHolder(t)); holder.Nonce != nonce {
		t.Errorf("a process that was killed has released the lease: %s", holder)
	}
	return nonce
}

// leaveLease makes the agents' lease that of a Pod that has terminated.
func (m *member) leaveLease(t *testing.T, where client.Client, namespace string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "tombolo-agent-"}}
	pod.Spec.Containers = []corev1.Container{{Name: "agent", Image: "tombolo-agent", SecurityContext: &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}}}
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	pod.Spec.AutomountServiceAccountToken = new(false)
	world.Eventually(t, func(ctx context.Context) error { return where.Create(ctx, pod) }) // once the namespace has its ServiceAccount
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}}}
	lab.Must(t, where.Status().Update(t.Context(), pod))
	t.Cleanup(func() {
		lab.Must(t, client.IgnoreNotFound(where.Delete(context.Background(), pod, client.GracePeriodSeconds(0))))
	})
	holder := clusterset.LeaseHolder{Pod: pod.Name, PodUID: string(pod.UID), Nonce: "ended"}
	world.Eventually(t, func(ctx context.Context) error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tombolo-agent"}}
		_, err := controllerutil.CreateOrUpdate(ctx, where, lease, func() error {
			now := metav1.NowMicro()
			lease.Spec = coordinationv1.LeaseSpec{
				HolderIdentity: new(holder.String()), LeaseDurationSeconds: new(int32(15)), AcquireTime: &now, RenewTime: &now, LeaseTransitions: new(int32(1)),
			}
			return nil
		})
		return err
	})
}

// tookOver is what an agent logs that does not wait for the lease.
const tookOver = "the holder of the lease has ended; taking the lease over"

// tookOver fails unless the member's agent has taken the lease over at once.
func (m *member) tookOver(t *testing.T) {
	t.Helper()
	if output := m.Output.Tail(1000); !strings.Contains(output, tookOver) {
		t.Errorf("the agent has waited for the lease:\n%s", output)
	}
}

// leaseHolder returns the holderIdentity of the agents' lease.
func (m *member) leaseHolder(t *testing.T) string {
	t.Helper()
	lease := world.Read(t, m, key{Namespace: manifests.AgentNamespace, Name: "tombolo-agent"}, &coordinationv1.Lease{})
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// beatsWith returns nil if the heartbeat of a is that of a process.
func (w *env) beatsWith(ctx context.Context, nonce string) error {
	heartbeat := &hubv1alpha1.Heartbeat{}
	err := w.HubClient.Get(ctx, key{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName}, heartbeat)
	if err == nil && heartbeat.Spec.Nonce != nonce {
		err = fmt.Errorf("the heartbeat has the nonce %q, want %q", heartbeat.Spec.Nonce, nonce)
	}
	return err
}

// copyOf returns options with which the agent of m runs in a copy of another member. The ID of m is restored when the test ends.
func (m *member) copyOf(t *testing.T, original *member) func(*agent.Options) {
	t.Helper()
	setID := func(id string) error {
		property := &aboutv1beta1.ClusterProperty{}
		if err := m.Get(context.Background(), key{Name: aboutv1beta1.ClusterIDProperty}, property); err != nil {
			return err
		}
		property.Spec.Value = id
		return m.Update(context.Background(), property)
	}
	lab.Must(t, setID(original.ID))
	t.Cleanup(func() { lab.Must(t, setID(m.ID)) })
	from, to := []byte(m.UID(t)), []byte(original.UID(t))
	return func(o *agent.Options) {
		o.ClusterID, o.Hub, o.Member = original.ID, original.Hub, rest.CopyConfig(o.Member)
		o.Member.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(request)
				if err == nil && request.URL.Path == "/api/v1/namespaces/kube-system" {
					err = rewriteBody(response, func(body []byte) []byte { return bytes.ReplaceAll(body, from, to) })
				}
				return response, err
			})
		})
	}
}

func rewriteBody(response *http.Response, rewrite func([]byte) []byte) error {
	body, err := io.ReadAll(response.Body)
	body = rewrite(body)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return errors.Join(err, response.Body.Close())
}

// olderAgent makes an agent write and read heartbeats as an older one does.
func olderAgent(o *agent.Options) {
	o.Hub = rest.CopyConfig(o.Hub)
	o.Hub.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if strings.Contains(request.URL.Path, "/heartbeats") && request.Body != nil {
				body, err := io.ReadAll(request.Body)
				if err != nil {
					return nil, err
				}
				var object map[string]any
				if err := json.Unmarshal(body, &object); err != nil {
					return nil, err
				}
				spec, _ := object["spec"].(map[string]any)
				delete(spec, "nonce")
				delete(spec, "term")
				if body, err = json.Marshal(object); err != nil {
					return nil, err
				}
				request = request.Clone(request.Context())
				request.Body, request.ContentLength, request.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
			}
			response, err := next.RoundTrip(request)
			if err == nil && strings.Contains(request.URL.Path, "/heartbeats") {
				response.Body = &withoutNonce{ReadCloser: response.Body, lines: bufio.NewReader(response.Body)}
			}
			return response, err
		})
	})
}

// withoutNonce renames the nonce and the term of the heartbeats in a response. Each event of a watch is a line.
type withoutNonce struct {
	io.ReadCloser

	lines *bufio.Reader
	left  []byte
}

func (w *withoutNonce) Read(into []byte) (int, error) {
	var err error
	if len(w.left) == 0 {
		w.left, err = w.lines.ReadBytes('\n')
		w.left = bytes.ReplaceAll(w.left, []byte(`"nonce":`), []byte(`"x-one":`))
		w.left = bytes.ReplaceAll(w.left, []byte(`"term":`), []byte(`"x-wo":`))
	}
	n := copy(into, w.left)
	w.left = w.left[n:]
	if len(w.left) > 0 {
		err = nil // it comes again
	}
	return n, err
}

// countWrites counts the changes of the endpoints that a member publishes, from now until the test ends.
func (w *env) countWrites(t *testing.T, namespace string) *atomic.Int64 {
	t.Helper()
	list := world.List(t, w.HubClient, &hubv1alpha1.PublishedEndpointsList{}, client.InNamespace(namespace))
	watcher, err := w.HubClient.(client.WithWatch).Watch(t.Context(), &hubv1alpha1.PublishedEndpointsList{}, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	lab.Must(t, err)
	t.Cleanup(watcher.Stop)
	count := &atomic.Int64{}
	go func() {
		for range watcher.ResultChan() {
			count.Add(1)
		}
	}()
	return count
}

// publishes returns nil if the hub has exactly these addresses of a service of a.
func (w *env) publishes(ctx context.Context, k key, want ...string) error {
	list := &hubv1alpha1.PublishedEndpointsList{}
	if err := w.HubClient.List(ctx, list, client.InNamespace("member-a")); err != nil {
		return err
	}
	var got []string
	for _, r := range list.Items {
		if r.Spec.Service != hubv1alpha1.ServiceName(k.Name) || string(r.Spec.Namespace) != k.Namespace {
			continue
		}
		for _, group := range r.Spec.Groups {
			for _, address := range group.Addresses {
				got = append(got, string(address))
			}
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the addresses %v are published, want %v", got, want)
	}
	return nil
}
