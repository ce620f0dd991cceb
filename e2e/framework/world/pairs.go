// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

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

// Pairs are labs of a hub and the members a and b, each of which one test has at a time. An API server costs more to start
// than most tests cost, so a test that leaves its clusters running passes them on to the next.
type Pairs struct {
	mu   sync.Mutex
	free []*lab.Lab
	all  []*lab.Lab
}

// spare is the number of labs that are kept for the next tests: clusters use some CPU even without a test.
const spare = 2

// Clearing is how long the namespaces of a lab may take to end: a test may have left hundreds of services.
const Clearing = 5 * time.Minute

// Take returns a hub and the members a and b, without agents and without the objects of earlier tests. Namespaces end when
// they are deleted. A test that changes more of a cluster than its namespaces contain needs New.
func (p *Pairs) Take(t *testing.T) *World {
	t.Helper()
	l := p.take()
	if l == nil {
		l = p.start(t)
	}
	clients := map[string]client.Client{}
	for _, cluster := range l.Clusters() {
		clients[cluster.Name] = membership.Client(t, cluster)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = cleared(context.WithoutCancel(t.Context()), clients) // the next test waits for the end
			lab.Must(t, p.giveBack(l))
			return
		}
		l.ShowLogs(t)
		lab.Must(t, l.Close())
	})
	lab.Eventually(t, Clearing, func(ctx context.Context) error { return cleared(ctx, clients) })
	return Join(t, l)
}

func (p *Pairs) start(t *testing.T) *lab.Lab {
	t.Helper()
	options := lab.Options{Clusters: []lab.ClusterOptions{membership.Hub()}, Log: t.Logf}
	for _, name := range []string{"a", "b"} {
		member := lab.Member(name)
		member.Controllers = []string{"namespace-controller", "serviceaccount-controller"}
		options.Clusters = append(options.Clusters, member)
	}
	for i := range options.Clusters { // namespaces end sooner
		options.Clusters[i].APIServerArgs = append(options.Clusters[i].APIServerArgs, "--delete-collection-workers=8")
	}
	l, err := lab.New(t.Context(), options)
	lab.Must(t, err)
	p.mu.Lock()
	p.all = append(p.all, l)
	p.mu.Unlock()
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

// take returns the lab that was given back first, as its namespaces have had the most time to end; nil if there is none.
// It closes a lab of which a process has ended.
func (p *Pairs) take() *lab.Lab {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) > 0 {
		taken := p.free[0]
		p.free = p.free[1:]
		if runs(taken) {
			return taken
		}
		_ = taken.Close() // Close returns the error again
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

// giveBack keeps a lab for the next test, or closes it if there are enough.
func (p *Pairs) giveBack(pair *lab.Lab) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) >= spare {
		return pair.Close()
	}
	p.free = append(p.free, pair)
	return nil
}

// Close closes all labs.
func (p *Pairs) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, pair := range p.all {
		errs = append(errs, pair.Close())
	}
	return errors.Join(errs...)
}
