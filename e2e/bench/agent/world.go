// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

// setupWidth is how many requests the harness has in flight while it prepares something.
const setupWidth = 16

// roomy is how many times what a member publishes its quota admits: the hub counts what a round has deleted some seconds
// later only, and rounds follow each other quickly.
const roomy = 20

// underWay is how long a request may be carried out after it was given up.
const underWay = 500 * time.Millisecond

// world is a hub and its members, real ones.
type world struct {
	lab     *lab.Lab
	hub     *lab.Cluster
	hubKube client.WithWatch // an administrator's
	members []*member
	close   func() error // is for whoever has opened it
}

// opener returns a world of members "a", "b" and so on, each of which may publish so many services, of one slice each.
type opener func(ctx context.Context, members, services int, say sayer) (*world, error)

// member is a member cluster as its users, its agent and the floor see it.
type member struct {
	id      clusterset.ClusterID
	number  int // from 1; its pods have addresses of 10.<number>.0.0/16
	cluster *lab.Cluster
	kube    client.WithWatch // its users'
	// local and remote are the agent's clients in the member and on the hub: with its credentials and no other rights, and
	// with the encodings that it uses. The floor has the same.
	local, remote client.WithWatch
	toHub         *rest.Config
	changes       atomic.Int64 // of endpoints, so that each gets another address
}

// newWorld is an opener that starts the hub and the members.
func newWorld(ctx context.Context, members, services int, say sayer) (*world, error) {
	options := lab.Options{Clusters: []lab.ClusterOptions{tuned(membership.Hub())}}
	for n := range members {
		options.Clusters = append(options.Clusters, tuned(lab.Member(memberName(n))))
	}
	say("%d API servers start", len(options.Clusters))
	l, err := lab.New(ctx, options)
	if err != nil {
		return nil, err
	}
	w := &world{lab: l, hub: l.Cluster("hub"), close: l.Close}
	if err := w.join(ctx, members, services); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return w, nil
}

// tuned has rounds cleaned up quickly; nothing of this is on the way of what is measured.
func tuned(o lab.ClusterOptions) lab.ClusterOptions {
	o.APIServerArgs = append(o.APIServerArgs, "--delete-collection-workers=16")
	o.Env = append(o.Env, "GOGC=100") // as API servers are everywhere
	return o
}

func memberName(n int) string { return string(rune('a' + n)) }

func (w *world) join(ctx context.Context, members, services int) error {
	scheme, err := kinds()
	if err != nil {
		return err
	}
	if w.hubKube, err = w.hub.Client(scheme); err != nil {
		return err
	}
	if err := membership.InitHub(ctx, w.hub); err != nil {
		return err
	}
	for n := range members {
		m := &member{id: clusterset.ClusterID(memberName(n)), number: n + 1, cluster: w.lab.Cluster(memberName(n))}
		if err := m.join(ctx, w, scheme, services); err != nil {
			return err
		}
		w.members = append(w.members, m)
	}
	return nil
}

// join makes the cluster a member, under the hub's quota and policies.
func (m *member) join(ctx context.Context, w *world, scheme *runtime.Scheme, services int) error {
	toHub, err := membership.Join(ctx, w.hub, m.cluster, manifests.MemberOptions{
		PodCIDRs: membership.PodCIDRs(m.number), MaxServices: roomy * services, MaxEndpoints: roomy * services,
	})
	if err != nil {
		return err
	}
	toMember, err := membership.InstallAgent(ctx, m.cluster)
	if err != nil {
		return err
	}
	if m.kube, err = m.cluster.Client(scheme); err != nil {
		return err
	}
	toMember.QPS = -1
	if m.local, err = client.NewWithWatch(toMember, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	m.toHub = toHub
	if m.remote, err = hub.Client(toHub); err != nil {
		return err
	}
	return m.kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

func kinds() (*runtime.Scheme, error) {
	scheme, err := agent.Scheme()
	if err != nil {
		return nil, err
	}
	return scheme, hubv1alpha1.AddToScheme(scheme)
}

// fill creates the Services and slices of subjects, which nobody exports yet.
func (m *member) fill(ctx context.Context, subjects []*subject) error {
	return each(ctx, setupWidth, subjects, func(ctx context.Context, s *subject) error {
		return errors.Join(m.kube.Create(ctx, s.service.DeepCopy()), m.kube.Create(ctx, s.slice.DeepCopy()))
	})
}

// subjects returns the first services of a member.
func (m *member) subjects(n int) ([]*subject, error) {
	var result []*subject
	for i := range n {
		s, err := newSubject(m, i)
		if err != nil {
			return nil, err
		}
		result = append(result, s)
	}
	return result, nil
}

// wipe deletes all that a round has led to, whoever wrote it, until nothing is left: a request that was given up when the
// round ended may still have been carried out.
func (w *world) wipe(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, roundTimeout, true, func(ctx context.Context) (bool, error) {
		if err := w.deleteAll(ctx); err != nil {
			return false, err
		}
		return w.isEmpty(ctx)
	})
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

func (w *world) deleteAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range w.members {
		group.Go(func() error { return m.wipe(ctx) })
		for _, kind := range []client.Object{&hubv1alpha1.PublishedService{}, &hubv1alpha1.PublishedEndpoints{}} {
			group.Go(func() error { return w.hubKube.DeleteAllOf(ctx, kind, client.InNamespace(m.id.HubNamespace())) })
		}
	}
	return group.Wait()
}

// isEmpty reports whether nothing is there that a round leads to, once whatever was under way has been carried out.
func (w *world) isEmpty(ctx context.Context) (bool, error) {
	if err := pause(ctx, underWay); err != nil {
		return false, err
	}
	for _, m := range w.members {
		for _, list := range []client.ObjectList{&corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}, &mcsv1beta1.ServiceImportList{}, &mcsv1beta1.ServiceExportList{}} {
			options := []client.ListOption{client.InNamespace(namespace)}
			switch list.(type) {
			case *corev1.ServiceList:
				options = append(options, client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy})
			case *discoveryv1.EndpointSliceList:
				options = append(options, client.MatchingLabels{discoveryv1.LabelManagedBy: clusterset.ManagedBy})
			}
			if err := m.kube.List(ctx, list, options...); err != nil || meta.LenList(list) > 0 {
				return false, err
			}
		}
	}
	return true, nil
}

func (m *member) wipe(ctx context.Context) error {
	here := client.InNamespace(namespace)
	return errors.Join(
		m.kube.DeleteAllOf(ctx, &mcsv1beta1.ServiceExport{}, here),
		m.kube.DeleteAllOf(ctx, &mcsv1beta1.ServiceImport{}, here),
		m.kube.DeleteAllOf(ctx, &corev1.Service{}, here, client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}),
		m.kube.DeleteAllOf(ctx, &discoveryv1.EndpointSlice{}, here, client.MatchingLabels{discoveryv1.LabelManagedBy: clusterset.ManagedBy}),
	)
}

// serviceCIDRs are those of the cluster as a flag of the agent takes them.
func (m *member) serviceCIDRs() string {
	var result []string
	for _, cidr := range m.cluster.ServiceCIDRs {
		result = append(result, cidr.String())
	}
	return strings.Join(slices.Clip(result), ",")
}

// each calls do for all, several at a time, until one fails.
func each[T any](ctx context.Context, width int, all []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(width)
	for _, one := range all {
		group.Go(func() error { return do(ctx, one) })
	}
	return group.Wait()
}
