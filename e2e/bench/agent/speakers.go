// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

// admitWidth is how many members are admitted at a time; most of it is waiting for the hub's quota and policies.
const admitWidth = 8

// admit makes room on the hub for members that have no cluster: the harness speaks for them, with their credentials and
// under their quota, each of which admits so many services. Their numbers follow those of the lab's members.
func (w *world) admit(ctx context.Context, n, services int) ([]*member, error) {
	speakers := make([]*member, n)
	for i := range speakers {
		speakers[i] = &member{id: clusterset.ClusterID(fmt.Sprintf("m%02d", i)), number: len(w.lab.Clusters()) + i}
	}
	return speakers, each(ctx, admitWidth, speakers, func(ctx context.Context, m *member) error {
		// The last one's range is that of the hub's Services, into which nothing is imported.
		toHub, err := membership.Admit(ctx, w.hub, manifests.MemberOptions{
			ClusterID: m.id, PodCIDRs: membership.PodCIDRs(m.number), MaxServices: roomy * services, MaxEndpoints: roomy * services,
		})
		if err != nil {
			return fmt.Errorf("admit %s: %w", m.id, err)
		}
		m.toHub = apart(toHub)
		m.remote, err = hub.Client(m.toHub)
		return err
	})
}

// apart returns a config whose clients have connections of their own, as the agents of several clusters have: clients with
// the same server and certificates share them otherwise. Whoever names a proxy gets a transport of its own.
func apart(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Proxy = http.ProxyFromEnvironment
	return config
}

// pulses writes the heartbeats of members for which the harness speaks, one after the other, until the function that it
// returns is called, which returns what has gone wrong.
func pulses(ctx context.Context, members []*member) (stop func() error, err error) {
	beats := make([]*hubv1alpha1.Heartbeat, len(members))
	for i, m := range members {
		beats[i] = &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: m.id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}}
		beats[i].Spec = hubv1alpha1.HeartbeatSpec{RenewTime: metav1.NowMicro(), ClusterUID: "bench-" + string(m.id), Publication: hubv1alpha1.PublicationComplete}
		if err := m.remote.Create(ctx, beats[i]); err != nil {
			return nil, fmt.Errorf("heartbeat of %s: %w", m.id, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- beat(ctx, members, beats) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

// beat renews heartbeats until ctx ends.
func beat(ctx context.Context, members []*member, beats []*hubv1alpha1.Heartbeat) error {
	tick := time.NewTicker(pulseInterval / time.Duration(len(members)))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		m, one := members[i%len(members)], beats[i%len(members)]
		one.Spec.RenewTime = metav1.NowMicro()
		if err := m.remote.Update(ctx, one); err != nil && ctx.Err() == nil {
			return fmt.Errorf("heartbeat of %s: %w", m.id, err)
		}
	}
}
