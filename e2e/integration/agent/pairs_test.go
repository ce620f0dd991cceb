// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

// pairs are labs of a hub and two members. An API server costs more to start than most tests cost, so a test that leaves
// its clusters whole hands them on to the next.
var pairs lending

// lending is a set of labs, each of which one test has at a time.
type lending struct {
	mu   sync.Mutex
	free []*lab.Lab
	all  []*lab.Lab
}

// spare is how many labs wait for a test at most.
const spare = 2

// clearing is how long the namespaces of a lab may take to end on a busy machine: a test may have left hundreds of services.
const clearing = 5 * time.Minute

// newPair returns a hub, and a and b as its members, without agents and without anything that another test has made. Their
// namespaces end when they are deleted. A test that leaves a cluster other than it was, beyond what namespaces hold, needs
// a newWorld.
func newPair(t *testing.T) *world {
	t.Helper()
	l := pairs.take()
	if l == nil {
		l = startPair(t)
	}
	clients := map[string]client.Client{}
	for _, cluster := range l.Clusters() {
		clients[cluster.Name] = membership.Client(t, cluster)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = cleared(context.WithoutCancel(t.Context()), clients) // begun only: the next test that has them waits for the end
			lab.Must(t, pairs.giveBack(l))
			return
		}
		l.ShowLogs(t)
		lab.Must(t, l.Close())
	})
	lab.Eventually(t, clearing, func(ctx context.Context) error { return cleared(ctx, clients) })
	return join(t, l)
}

func startPair(t *testing.T) *lab.Lab {
	t.Helper()
	options := lab.Options{Clusters: []lab.ClusterOptions{membership.Hub()}, Log: t.Logf}
	for _, name := range []string{"a", "b"} {
		member := lab.Member(name)
		member.Controllers = []string{"namespace-controller", "serviceaccount-controller"}
		options.Clusters = append(options.Clusters, member)
	}
	for i := range options.Clusters { // so that namespaces end soon
		options.Clusters[i].APIServerArgs = append(options.Clusters[i].APIServerArgs, "--delete-collection-workers=8")
	}
	l, err := lab.New(t.Context(), options)
	lab.Must(t, err)
	pairs.add(l)
	lab.Must(t, membership.InitHub(t.Context(), l.Cluster("hub")))
	return l
}

// cleared deletes all namespaces of a lab's clusters but those that every cluster has, and returns nil when they are gone.
func cleared(ctx context.Context, clusters map[string]client.Client) error {
	var errs []error
	for name, c := range clusters {
		list := &corev1.NamespaceList{}
		if err := c.List(ctx, list); err != nil {
			return err
		}
		for i := range list.Items {
			ns := &list.Items[i]
			if ns.Name == metav1.NamespaceDefault || strings.HasPrefix(ns.Name, "kube-") {
				continue
			}
			errs = append(errs, fmt.Errorf("%s still has the namespace %s", name, ns.Name))
			if ns.DeletionTimestamp.IsZero() {
				errs = append(errs, client.IgnoreNotFound(c.Delete(ctx, ns)))
			}
		}
	}
	return errors.Join(errs...)
}

// take returns the lab that no test has had for the longest time, whose namespaces are the likeliest to be gone, and nil where there is
// none. One of which a process has ended meanwhile it drops.
func (l *lending) take() *lab.Lab {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.free) > 0 {
		taken := l.free[0]
		l.free = l.free[1:]
		if runs(taken) {
			return taken
		}
		_ = taken.Close() // close tells the error
	}
	return nil
}

// runs reports whether all processes of a lab do.
func runs(pair *lab.Lab) bool {
	for _, cluster := range pair.Clusters() {
		if slices.ContainsFunc(cluster.Processes(), func(p *lab.Process) bool { return !p.Running() }) {
			return false
		}
	}
	return true
}

func (l *lending) add(pair *lab.Lab) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, pair)
}

// giveBack keeps a lab for the next test, or closes it where enough are waiting: clusters use some CPU for themselves.
func (l *lending) giveBack(pair *lab.Lab) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) >= spare {
		return pair.Close()
	}
	l.free = append(l.free, pair)
	return nil
}

// close ends all labs.
func (l *lending) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, pair := range l.all {
		errs = append(errs, pair.Close())
	}
	return errors.Join(errs...)
}
