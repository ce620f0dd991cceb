// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package world has what all parts of the benchmark use: a hub with members, their agents, services, the changes of endpoints, and
// when changes arrive, what they cost and which requests they cause.
package world

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

// SetupWidth is how many requests the harness has in flight while it prepares something.
const SetupWidth = 16

// quota is how many services and slices a member may publish: far more than it does, because the hub counts deleted
// records for some seconds, and the next round begins earlier.
const quota = 200_000

// mostRanges is the number of members with address ranges of their own: see membership.PodCIDRs.
const mostRanges = 99

// inFlightTime is how long a canceled request may still be processed.
const inFlightTime = 500 * time.Millisecond

// RoundTimeout bounds a step of a round.
const RoundTimeout = 5 * time.Minute

// LogFunc logs what a part does.
type LogFunc func(format string, args ...any)

// World is a hub with members.
type World struct {
	Lab       *lab.Lab
	Hub       *lab.Cluster
	HubClient client.WithWatch // an administrator's
	Members   []*Member
}

// Member is a member cluster, or, without a cluster, one for which the harness publishes.
type Member struct {
	ID      clusterset.ClusterID
	Number  int // its pods have addresses of 10.<number>.0.0/16
	Cluster *lab.Cluster
	Admin   client.WithWatch
	// Local and remote are the agent's clients in the member and on the hub: with its credentials and its encodings. The
	// baseline uses the same.
	Local, Remote client.WithWatch
	ToHub         *rest.Config
	Changes       atomic.Int64 // of endpoints, so that each has another address
	Agent         *AgentProcess
}

// New starts a hub and members "a", "b" and so on.
func New(ctx context.Context, members int, log LogFunc) (*World, error) {
	options := lab.Options{Clusters: []lab.ClusterOptions{tuned(membership.Hub())}}
	for n := range members {
		options.Clusters = append(options.Clusters, tuned(lab.Member(memberName(n))))
	}
	log("start %d API servers", len(options.Clusters))
	l, err := lab.New(ctx, options)
	if err != nil {
		return nil, err
	}
	w := &World{Lab: l, Hub: l.Cluster("hub")}
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

func (w *World) join(ctx context.Context, members int) error {
	scheme, err := membership.Scheme()
	if err != nil {
		return err
	}
	if w.HubClient, err = w.Hub.Client(scheme); err != nil {
		return err
	}
	if err := membership.InitHub(ctx, w.Hub); err != nil {
		return err
	}
	for n := range members {
		m := &Member{ID: clusterset.ClusterID(memberName(n)), Number: n + 1, Cluster: w.Lab.Cluster(memberName(n))}
		if err := m.join(ctx, w, scheme); err != nil {
			return err
		}
		w.Members = append(w.Members, m)
	}
	return nil
}

// join makes the cluster a member, under the hub's quota and policies.
func (m *Member) join(ctx context.Context, w *World, scheme *runtime.Scheme) (err error) {
	m.ToHub, err = membership.Join(ctx, w.Hub, m.Cluster, manifests.MemberOptions{
		PodCIDRs: membership.PodCIDRs(m.Number), MaxServices: quota, MaxEndpoints: quota,
	})
	if err != nil {
		return err
	}
	toMember, err := membership.InstallAgent(ctx, m.Cluster)
	if err != nil {
		return err
	}
	if m.Admin, err = m.Cluster.Client(scheme); err != nil {
		return err
	}
	toMember.QPS = -1
	if m.Local, err = client.NewWithWatch(toMember, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if m.Remote, err = hub.Client(m.ToHub); err != nil {
		return err
	}
	return m.Admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
}

// Admit adds members without clusters to the hub, for which the harness publishes with their credentials and under their
// quota. Their numbers follow those of the lab's clusters; more than 99 share their address ranges.
func (w *World) Admit(ctx context.Context, n int) ([]*Member, error) {
	publishers := make([]*Member, n)
	for i := range publishers {
		publishers[i] = &Member{ID: clusterset.ClusterID(fmt.Sprintf("m%02d", i)), Number: 1 + (len(w.Lab.Clusters())+i-1)%mostRanges}
	}
	return publishers, Each(ctx, SetupWidth/2, publishers, func(ctx context.Context, m *Member) error {
		toHub, err := membership.Admit(ctx, w.Hub, manifests.MemberOptions{
			ClusterID: m.ID, PodCIDRs: membership.PodCIDRs(m.Number), MaxServices: quota, MaxEndpoints: quota,
		})
		if err != nil {
			return fmt.Errorf("admit %s: %w", m.ID, err)
		}
		m.ToHub = OwnConnection(toHub)
		m.Remote, err = hub.Client(m.ToHub)
		return err
	})
}

// OwnConnection returns a config whose clients share no connection with others, like agents of several clusters. Clients
// with the same server and certificates would share one, unless they have a proxy function.
func OwnConnection(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Proxy = http.ProxyFromEnvironment
	return config
}

// CleanUp deletes everything that a round has created, except Services and source slices, until nothing is left: a request
// that was canceled at the end of the round may be processed later.
func (w *World) CleanUp(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, RoundTimeout, true, func(ctx context.Context) (bool, error) {
		group, groupCtx := errgroup.WithContext(ctx)
		for _, m := range w.Members {
			for _, o := range resultKinds() {
				group.Go(func() error { return m.Admin.DeleteAllOf(groupCtx, o.object, client.InNamespace(Namespace), o.labels) })
			}
			for _, kind := range []client.Object{&hubv1alpha1.PublishedService{}, &hubv1alpha1.PublishedEndpoints{}} {
				group.Go(func() error { return w.HubClient.DeleteAllOf(groupCtx, kind, client.InNamespace(m.ID.HubNamespace())) })
			}
		}
		if err := errors.Join(group.Wait(), Pause(ctx, inFlightTime)); err != nil {
			return false, err
		}
		for _, m := range w.Members {
			for _, o := range resultKinds() {
				if err := m.Admin.List(ctx, o.list, client.InNamespace(Namespace), o.labels); err != nil || meta.LenList(o.list) > 0 {
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

// Each calls do for all, several at a time, until one fails.
func Each[T any](ctx context.Context, width int, all []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(width)
	for _, one := range all {
		group.Go(func() error { return do(ctx, one) })
	}
	return group.Wait()
}

// Pause waits for what is measured over a time.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// HeartbeatInterval is the agents' default.
const HeartbeatInterval = 10 * time.Second

// SendHeartbeats writes the heartbeats of members that have no agent, one after the other, each once in an interval, until stop, which
// returns its error.
func SendHeartbeats(ctx context.Context, members []*Member, interval time.Duration) (stop func() error, err error) {
	if len(members) == 0 {
		return func() error { return nil }, nil
	}
	heartbeats := make([]*hubv1alpha1.Heartbeat, len(members))
	for i, m := range members {
		heartbeats[i] = &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: m.ID.HubNamespace(), Name: hubv1alpha1.HeartbeatName}}
		heartbeats[i].Spec = hubv1alpha1.HeartbeatSpec{
			RenewTime: metav1.NowMicro(), ClusterUID: "bench-" + string(m.ID), Publication: hubv1alpha1.PublicationComplete,
			IntervalSeconds: int32(interval.Seconds()),
		}
		if err := m.Remote.Create(ctx, heartbeats[i]); err != nil {
			return nil, fmt.Errorf("heartbeat of %s: %w", m.ID, err)
		}
	}
	stopChanges := StartChanges(ctx, float64(len(members))/interval.Seconds(), func(ctx context.Context, i int) error {
		i %= len(members)
		heartbeats[i].Spec.RenewTime = metav1.NowMicro()
		if err := members[i].Remote.Update(ctx, heartbeats[i]); err != nil {
			return fmt.Errorf("heartbeat of %s: %w", members[i].ID, err)
		}
		return nil
	})
	return func() error {
		_, err := stopChanges()
		return err
	}, nil
}
