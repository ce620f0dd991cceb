// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	// pollInterval is the time between two looks. Objects are looked at in a cache that a watch keeps up to date.
	pollInterval = 2 * time.Millisecond
	// patience is how long anything may take that takes milliseconds on an idle machine.
	patience = 2 * time.Minute
)

// stage is a clusterset of a hub and two members, with all that runs for it.
type stage struct {
	lab     *lab.Lab
	hub     *lab.Cluster
	records client.Client // of the hub
	a, b    *member

	closing chan struct{} // closed when programs are told to end
}

// newStage starts everything and returns when all is ready. The stage must be closed, after an error too. fail is called
// when a program ends by itself.
func newStage(ctx context.Context, n *narrator, fail context.CancelCauseFunc) (*stage, error) {
	s := &stage{closing: make(chan struct{})}
	if _, err := corefile(0, ""); err != nil {
		return s, err
	}
	for _, name := range []string{"tombolo-agent", "coredns"} {
		if _, err := findProgram(name); err != nil {
			return s, err
		}
	}
	for _, step := range []struct {
		what string
		work func(ctx context.Context, news func(string, ...any)) error
	}{
		{"three API servers start: a hub, cluster-a and cluster-b", s.startClusters},
		{"the hub is set up, and the clusters join it", s.join},
		{"tombolo-agent and CoreDNS start in both clusters", s.startPrograms},
	} {
		err := n.during(step.what, func(news func(string, ...any)) error { return step.work(ctx, news) })
		if err != nil {
			return s, err
		}
	}
	for _, m := range s.members() {
		for _, p := range m.programs {
			go s.guard(p, fail)
		}
	}
	return s, nil
}

func (s *stage) startClusters(ctx context.Context, news func(string, ...any)) error {
	news("etcd and kube-apiserver come up")
	var err error
	s.lab, err = lab.New(ctx, lab.Options{
		Clusters: []lab.ClusterOptions{membership.Hub(), lab.Member("cluster-a"), lab.Member("cluster-b")},
		Log:      news,
	})
	if err != nil {
		return err
	}
	s.hub = s.lab.Cluster("hub")
	scheme := runtime.NewScheme()
	if err := hubv1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	if s.records, err = s.hub.Client(scheme); err != nil {
		return err
	}
	if s.a, err = newMember(s.lab.Cluster("cluster-a")); err != nil {
		return err
	}
	s.b, err = newMember(s.lab.Cluster("cluster-b"))
	return err
}

// join makes one cluster the hub and the others its members.
func (s *stage) join(ctx context.Context, news func(string, ...any)) error {
	news("CRDs and policies are installed")
	g, preparation := errgroup.WithContext(ctx)
	g.Go(func() error { return membership.InitHub(preparation, s.hub) })
	for _, m := range s.members() {
		g.Go(func() error {
			if err := membership.InstallCRDs(preparation, m.cluster); err != nil {
				return err
			}
			return membership.Declare(preparation, m.cluster, clusterset.ClusterID(m.name))
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	news("the hub begins to count quotas and to enforce its policies")
	g, admission := errgroup.WithContext(ctx)
	for i, m := range s.members() {
		g.Go(func() error {
			var err error
			m.hub, err = membership.Admit(admission, s.hub, manifests.MemberOptions{
				ClusterID:    clusterset.ClusterID(m.name),
				PodCIDRs:     membership.PodCIDRs(i + 1),
				ServiceCIDRs: m.cluster.ServiceCIDRs,
			})
			return err
		})
	}
	return g.Wait()
}

// startPrograms starts what runs in a member, and returns when CoreDNS answers and the agents beat on the hub.
func (s *stage) startPrograms(ctx context.Context, news func(string, ...any)) error {
	news("their watches begin")
	g, starts := errgroup.WithContext(ctx)
	for _, m := range s.members() {
		g.Go(func() error {
			if err := m.startAgent(); err != nil {
				return err
			}
			if err := m.watch(ctx); err != nil {
				return err
			}
			if err := m.startCoreDNS(starts); err != nil {
				return err
			}
			news("CoreDNS of %s answers; the heartbeat of its agent is awaited", m.name)
			return s.awaitHeartbeat(starts, m)
		})
	}
	return g.Wait()
}

// awaitHeartbeat returns when the hub knows that the member has published all it exports: nothing, so far.
func (s *stage) awaitHeartbeat(ctx context.Context, m *member) error {
	agent := m.programs[0]
	key := client.ObjectKey{Namespace: clusterset.ClusterID(m.name).HubNamespace(), Name: hubv1alpha1.HeartbeatName}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		if err := agent.ended(); err != nil {
			return false, err
		}
		heartbeat := &hubv1alpha1.Heartbeat{}
		last = s.records.Get(ctx, key, heartbeat)
		return heartbeat.Spec.Publication == hubv1alpha1.PublicationComplete, nil
	})
	if err != nil {
		return fmt.Errorf("no heartbeat of %s on the hub: %w", m.name, errors.Join(err, client.IgnoreNotFound(last)))
	}
	return nil
}

func (s *stage) members() []*member {
	if s.b == nil {
		return nil
	}
	return []*member{s.a, s.b}
}

// guard ends the story if a program ends before the stage is closed.
func (s *stage) guard(p *program, fail context.CancelCauseFunc) {
	<-p.exited
	select {
	case <-s.closing:
	default:
		fail(p.ended())
	}
}

// close ends all processes and removes all files.
func (s *stage) close() error {
	close(s.closing)
	var g errgroup.Group
	for _, m := range s.members() {
		for _, p := range m.programs {
			g.Go(func() error { p.stop(); return nil })
		}
	}
	_ = g.Wait() // no program returns an error
	if s.lab == nil {
		return nil
	}
	return s.lab.Close()
}
