// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package membership makes clusters of a lab the hub and the members of a clusterset, as their administrators would:
// with the manifests that are released, and with credentials that have no more rights than they need.
//
//	l := lab.Start(t, membership.Hub(), lab.Member("a"))
//	hub, cluster := l.Cluster("hub"), l.Cluster("a")
//	err := membership.InitHub(ctx, hub)
//	config, err := membership.Join(ctx, hub, cluster, manifests.MemberOptions{ClusterID: "a", PodCIDRs: membership.PodCIDRs(1)})
//
// The config is what the member's agent needs to reach the hub. Agents are not started.
package membership

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// patience is how long anything may take on a busy machine; it takes a second or two.
const patience = 3 * time.Minute

// Hub returns the options of a cluster that is started for InitHub, which starts its controllers.
func Hub() lab.ClusterOptions {
	o := lab.Hub()
	o.ControllersLater = true
	return o
}

// InitHub makes a cluster a hub. It must have the controllers of lab.Hub: without them quotas refuse every record.
func InitHub(ctx context.Context, hub *lab.Cluster) error {
	if hub.ControllerManager == nil {
		return fmt.Errorf("init hub %s: it has no controllers", hub.Name)
	}
	objects, err := manifests.Hub()
	if err != nil {
		return err
	}
	if err := apply(ctx, hub, objects...); err != nil {
		return fmt.Errorf("init hub: %w", err)
	}
	// It looks for kinds that a quota may count when it starts, and then every 30 s only.
	if err := hub.RestartControllers(ctx); err != nil {
		return fmt.Errorf("init hub: %w", err)
	}
	return nil
}

// Join makes a cluster a member: Admit, InstallCRDs and Declare. Where they are not set, its ID is the cluster's name and
// its service CIDRs are the cluster's. It returns the member's credentials for the hub.
func Join(ctx context.Context, hub, cluster *lab.Cluster, o manifests.MemberOptions) (*rest.Config, error) {
	o = withDefaults(cluster, o)
	if err := InstallCRDs(ctx, cluster); err != nil {
		return nil, fmt.Errorf("join of %s: %w", o.ClusterID, err)
	}
	if err := Declare(ctx, cluster, o.ClusterID); err != nil {
		return nil, fmt.Errorf("join of %s: %w", o.ClusterID, err)
	}
	config, err := Admit(ctx, hub, o)
	if err != nil {
		return nil, fmt.Errorf("join of %s: %w", o.ClusterID, err)
	}
	return config, nil
}

// PodCIDRs returns those of a lab's n-th member, 10.<n>.0.0/16 and fd00:<n>::/64, which overlap with no other member's.
// n is 1 to 99: the lab's service CIDRs begin at 10.100.0.0/16.
func PodCIDRs(n int) []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", n)),
		netip.MustParsePrefix(fmt.Sprintf("fd00:%d::/64", n)),
	}
}

func withDefaults(cluster *lab.Cluster, o manifests.MemberOptions) manifests.MemberOptions {
	result := o
	if result.ClusterID == "" {
		result.ClusterID = clusterID(cluster)
	}
	if len(result.ServiceCIDRs) == 0 {
		result.ServiceCIDRs = cluster.ServiceCIDRs
	}
	return result
}

// apply applies objects in their order.
func apply(ctx context.Context, cluster *lab.Cluster, objects ...*unstructured.Unstructured) error {
	texts := make([][]byte, 0, len(objects))
	for _, object := range objects {
		text, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	return cluster.Apply(ctx, texts...)
}
