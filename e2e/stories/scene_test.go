// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

const (
	// waitLimit is the limit for what Tombolo does about a change, and podWaitLimit for pods, which are not Tombolo's:
	// four clusters on two cores start some of them after two minutes.
	waitLimit    = 90 * time.Second
	podWaitLimit = 5 * time.Minute
	// interval is the time between two looks.
	interval = 200 * time.Millisecond
)

// scene is where one story runs: a namespace of its own, with a client pod, in each member.
type scene struct {
	testing.TB
	*stage
	namespace string
	begin     time.Time
	failure   string // the first, for the summary
}

func newScene(t *testing.T, st *stage) *scene {
	t.Helper()
	s := &scene{TB: t, stage: st, namespace: namespaceOf(t), begin: time.Now()}
	t.Cleanup(func() {
		if t.Failed() {
			s.explain()
		}
		s.clear()
	})
	return s
}

func (s *scene) openMembers() {
	s.Helper()
	for _, name := range s.Options.Members {
		s.in(name).open()
	}
	for _, name := range s.Options.Members {
		s.in(name).awaitClient()
	}
}

// record keeps the first failure for the summary, and returns it.
func (s *scene) record(failure string) string {
	s.failure = cmp.Or(s.failure, failure)
	return failure
}

func (s *scene) Error(args ...any) { s.Helper(); s.TB.Error(s.record(fmt.Sprint(args...))) }
func (s *scene) Errorf(format string, args ...any) {
	s.Helper()
	s.TB.Error(s.record(fmt.Sprintf(format, args...)))
}
func (s *scene) Fatal(args ...any) { s.Helper(); s.TB.Fatal(s.record(fmt.Sprint(args...))) }
func (s *scene) Fatalf(format string, args ...any) {
	s.Helper()
	s.TB.Fatal(s.record(fmt.Sprintf(format, args...)))
}

var notInLabels = regexp.MustCompile(`[^a-z0-9]+`)

// namespaceOf returns the story's name as the name of a namespace.
func namespaceOf(t *testing.T) string {
	name := notInLabels.ReplaceAllString(strings.ToLower(path.Base(t.Name())), "-")
	return strings.Trim(name[:min(len(name), 50)], "-")
}

// clear deletes the namespace everywhere and does not wait for its end: no other story has it.
func (s *scene) clear() {
	for name := range s.clients {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
		if err := client.IgnoreNotFound(s.clients[name].Delete(context.Background(), ns)); err != nil {
			s.Errorf("cluster %s: delete namespace %s: %v", name, s.namespace, err)
		}
	}
}

// eventually waits until check has nothing to complain of. The story fails with its last complaint.
func (s *scene) eventually(what string, check func(context.Context) error) {
	s.Helper()
	s.within(waitLimit, what, check)
}

func (s *scene) within(limit time.Duration, what string, check func(context.Context) error) {
	s.Helper()
	if err := lab.Await(s.Context(), interval, limit, check); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// place is one cluster of a scene.
type place struct {
	*scene
	cluster *lab.Cluster
	client  client.WithWatch
}

func (s *scene) in(name string) *place {
	s.Helper()
	c := s.Cluster(name)
	if c == nil {
		s.Fatalf("there is no cluster %q", name)
	}
	return &place{scene: s, cluster: c, client: s.clients[name]}
}

func (s *scene) members() []*place {
	s.Helper()
	var all []*place
	for _, name := range s.Options.Members {
		all = append(all, s.in(name))
	}
	return all
}

// clientPod is the pod that asks, in each place.
const clientPod = "client"

func (p *place) open() {
	p.Helper()
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}})
	p.createClient()
}

func (p *place) createClient() {
	p.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: clientPod, Labels: map[string]string{"app": clientPod}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			Containers:                    []corev1.Container{probeContainer("sleep", "1000000")},
		},
	}
	// The service account may not be there yet.
	p.eventually("a client pod in cluster "+p.cluster.Name, func(ctx context.Context) error {
		pod := pod.DeepCopy()
		pod.Namespace = p.namespace
		return ignoreExists(p.client.Create(ctx, pod))
	})
}

// renewClient gives the client another address. The kernel remembers for two minutes to which pod a connection went that
// was never answered, and sends the next one of the same address and port there too, whatever kube-proxy knows by then.
func (p *place) renewClient() {
	p.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: clientPod}}
	lab.Must(p, p.client.Delete(p.Context(), pod))
	p.eventually("the end of the client pod of cluster "+p.cluster.Name, func(ctx context.Context) error {
		return framework.Absent(p.client.Get(ctx, p.key(clientPod), pod))
	})
	p.createClient()
	p.awaitClient()
}

func (p *place) awaitClient() {
	p.Helper()
	var pod corev1.Pod
	p.within(podWaitLimit, "the client pod of cluster "+p.cluster.Name, func(ctx context.Context) error {
		pod = corev1.Pod{}
		if err := p.client.Get(ctx, p.key(clientPod), &pod); err != nil {
			return err
		}
		return readyOrWhy(&pod)
	})
}

func readyOrWhy(pod *corev1.Pod) error {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("pod %s is not ready: %+v", pod.Name, pod.Status.ContainerStatuses)
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// key returns that of an object in the scene's namespace.
func (s *scene) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.namespace, Name: name}
}

// create creates objects in the scene's namespace, where they have one.
func (p *place) create(objects ...client.Object) {
	p.Helper()
	for _, o := range objects {
		if _, isNamespace := o.(*corev1.Namespace); !isNamespace && o.GetNamespace() == "" {
			o.SetNamespace(p.namespace)
		}
		if err := p.client.Create(p.Context(), o); err != nil {
			p.Fatalf("cluster %s: create %T %s: %v", p.cluster.Name, o, o.GetName(), err)
		}
	}
}

// change reads an object of the scene's namespace, lets edit change it, and writes it back, against conflicts again.
func change[T client.Object](p *place, name string, o T, edit func(T)) {
	p.Helper()
	p.shows("change "+name+" in cluster "+p.cluster.Name, name, o, func() error {
		edit(o)
		return p.client.Update(p.Context(), o)
	})
}

// shows waits until an object of the scene's namespace can be read and passes a check.
func (p *place) shows(what, name string, o client.Object, check func() error) {
	p.Helper()
	p.eventually(what, func(ctx context.Context) error {
		reflect.ValueOf(o).Elem().SetZero() // decoding keeps keys of maps that are gone
		if err := p.client.Get(ctx, p.key(name), o); err != nil {
			return err
		}
		return check()
	})
}

func (p *place) remove(objects ...client.Object) {
	p.Helper()
	for _, o := range objects {
		o.SetNamespace(p.namespace)
		if err := p.client.Delete(p.Context(), o); err != nil {
			p.Fatalf("cluster %s: delete %T %s: %v", p.cluster.Name, o, o.GetName(), err)
		}
	}
}
