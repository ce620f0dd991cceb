// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// setupWidth is how many requests the harness has in flight while it prepares something.
const setupWidth = 16

// quota is how many services and slices a member may publish: far more than it does, because the hub counts deleted
// records for some seconds, and the next round begins earlier.
const quota = 200_000

// mostRanges is the number of members with address ranges of their own: see membership.PodCIDRs.
const mostRanges = 99

// inFlightTime is how long a canceled request may still be processed.
const inFlightTime = 500 * time.Millisecond

const roundTimeout = 5 * time.Minute

type world struct {
	lab       *lab.Lab
	hub       *lab.Cluster
	hubClient client.WithWatch // an administrator's
	members   []*member
}

// member is a member cluster, or, without a cluster, one for which the harness publishes.
type member struct {
	id      clusterset.ClusterID
	number  int // its pods have addresses of 10.<number>.0.0/16
	cluster *lab.Cluster
	admin   client.WithWatch
	// local and remote are the agent's clients in the member and on the hub: with its credentials and its encodings. The
	// baseline uses the same.
	local, remote client.WithWatch
	toHub         *rest.Config
	changes       atomic.Int64 // of endpoints, so that each has another address
	agent         *agentProcess
}

// newWorld starts a hub and members "a", "b" and so on.
func newWorld(ctx context.Context, members int, log logFunc) (*world, error) {
	options := lab.Options{Clusters: []lab.ClusterOptions{tuned(membership.Hub())}}
	for n := range members {
		options.Clusters = append(options.Clusters, tuned(lab.Member(memberName(n))))
	}
	log("start %d API servers", len(options.Clusters))
	l, err := lab.New(ctx, options)
	if err != nil {
		return nil, err
	}
	w := &world{lab: l, hub: l.Cluster("hub")}
	if err := w.join(ctx, members); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return w, nil
}

// tuned makes the deletion of a round's objects fast, which is not measured.
func tuned(o lab.ClusterOptions) lab.ClusterOptions {
	o.APIServerArgs = append(o.APIServerArgs, "--delete-collection-workers=16")
	o.Env = append(o.Env, "GOGC=") // Go's default, as in production
	return o
}

func memberName(n int) string { return string(rune('a' + n)) }

func (w *world) join(ctx context.Context, members int) error {
	scheme, err := membership.Scheme()
	if err != nil {
		return err
	}
	if w.hubClient, err = w.hub.Client(scheme); err != nil {
		return err
	}
	if err := membership.InitHub(ctx, w.hub); err != nil {
		return err
	}
	for n := range members {
		m := &member{id: clusterset.ClusterID(memberName(n)), number: n + 1, cluster: w.lab.Cluster(memberName(n))}
		if err := m.join(ctx, w, scheme); err != nil {
			return err
		}
		w.members = append(w.members, m)
	}
	return nil
}

// join makes the cluster a member, under the hub's quota and policies.
func (m *member) join(ctx context.Context, w *world, scheme *runtime.Scheme) (err error) {
	m.toHub, err = membership.Join(ctx, w.hub, m.cluster, manifests.MemberOptions{
		PodCIDRs: membership.PodCIDRs(m.number), MaxServices: quota, MaxEndpoints: quota,
	})
	if err != nil {
		return err
	}
	toMember, err := membership.InstallAgent(ctx, m.cluster)
	if err != nil {
		return err
	}
	if m.admin, err = m.cluster.Client(scheme); err != nil {
		return err
	}
	toMember.QPS = -1
	if m.local, err = client.NewWithWatch(toMember, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if m.remote, err = hub.Client(m.toHub); err != nil {
		return err
	}
	return m.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

// admit adds members without clusters to the hub, for which the harness publishes with their credentials and under their
// quota. Their numbers follow those of the lab's clusters; more than 99 share their address ranges.
func (w *world) admit(ctx context.Context, n int) ([]*member, error) {
	publishers := make([]*member, n)
	for i := range publishers {
		publishers[i] = &member{id: clusterset.ClusterID(fmt.Sprintf("m%02d", i)), number: 1 + (len(w.lab.Clusters())+i-1)%mostRanges}
	}
	return publishers, each(ctx, setupWidth/2, publishers, func(ctx context.Context, m *member) error {
		toHub, err := membership.Admit(ctx, w.hub, manifests.MemberOptions{
			ClusterID: m.id, PodCIDRs: membership.PodCIDRs(m.number), MaxServices: quota, MaxEndpoints: quota,
		})
		if err != nil {
			return fmt.Errorf("admit %s: %w", m.id, err)
		}
		m.toHub = ownConnection(toHub)
		m.remote, err = hub.Client(m.toHub)
		return err
	})
}

// ownConnection returns a config whose clients share no connection with others, like agents of several clusters. Clients
// with the same server and certificates would share one, unless they have a proxy function.
func ownConnection(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Proxy = http.ProxyFromEnvironment
	return config
}

// cleanUp deletes everything that a round has created, except Services and source slices, until nothing is left: a request
// that was canceled at the end of the round may be processed later.
func (w *world) cleanUp(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, roundTimeout, true, func(ctx context.Context) (bool, error) {
		group, groupCtx := errgroup.WithContext(ctx)
		for _, m := range w.members {
			for _, o := range resultKinds() {
				group.Go(func() error { return m.admin.DeleteAllOf(groupCtx, o.object, client.InNamespace(namespace), o.labels) })
			}
			for _, kind := range []client.Object{&hubv1alpha1.PublishedService{}, &hubv1alpha1.PublishedEndpoints{}} {
				group.Go(func() error { return w.hubClient.DeleteAllOf(groupCtx, kind, client.InNamespace(m.id.HubNamespace())) })
			}
		}
		if err := errors.Join(group.Wait(), pause(ctx, inFlightTime)); err != nil {
			return false, err
		}
		for _, m := range w.members {
			for _, o := range resultKinds() {
				if err := m.admin.List(ctx, o.list, client.InNamespace(namespace), o.labels); err != nil || meta.LenList(o.list) > 0 {
					return false, err
				}
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}

// resultKind is a kind of objects that a round creates, and their labels.
type resultKind struct {
	object client.Object
	list   client.ObjectList
	labels client.MatchingLabels
}

func resultKinds() []resultKind {
	return []resultKind{
		{&mcsv1beta1.ServiceExport{}, &mcsv1beta1.ServiceExportList{}, nil},
		{&mcsv1beta1.ServiceImport{}, &mcsv1beta1.ServiceImportList{}, nil},
		{&corev1.Service{}, &corev1.ServiceList{}, client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}},
		{&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}, client.MatchingLabels{discoveryv1.LabelManagedBy: clusterset.ManagedBy}},
	}
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

// pause waits for what is measured over a time.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// heartbeatInterval is the agents' default.
const heartbeatInterval = 10 * time.Second

// sendHeartbeats writes the heartbeats of members that have no agent, one after the other, each once in an interval, until stop, which
// returns its error.
func sendHeartbeats(ctx context.Context, members []*member, interval time.Duration) (stop func() error, err error) {
	if len(members) == 0 {
		return func() error { return nil }, nil
	}
	heartbeats := make([]*hubv1alpha1.Heartbeat, len(members))
	for i, m := range members {
		heartbeats[i] = &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: m.id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}}
		heartbeats[i].Spec = hubv1alpha1.HeartbeatSpec{
			RenewTime: metav1.NowMicro(), ClusterUID: "bench-" + string(m.id), Publication: hubv1alpha1.PublicationComplete,
			IntervalSeconds: int32(interval.Seconds()),
		}
		if err := m.remote.Create(ctx, heartbeats[i]); err != nil {
			return nil, fmt.Errorf("heartbeat of %s: %w", m.id, err)
		}
	}
	stopChanges := startChanges(ctx, float64(len(members))/interval.Seconds(), func(ctx context.Context, i int) error {
		i %= len(members)
		heartbeats[i].Spec.RenewTime = metav1.NowMicro()
		if err := members[i].remote.Update(ctx, heartbeats[i]); err != nil {
			return fmt.Errorf("heartbeat of %s: %w", members[i].id, err)
		}
		return nil
	})
	return func() error {
		_, err := stopChanges()
		return err
	}, nil
}
