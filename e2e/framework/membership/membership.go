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
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// waitLimit is how long anything may take on a busy machine; it takes a second or two.
const waitLimit = 3 * time.Minute

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
	if err := Apply(ctx, hub, objects...); err != nil {
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
	o.ClusterID = cmp.Or(o.ClusterID, clusterset.ClusterID(cluster.Name))
	if len(o.ServiceCIDRs) == 0 {
		o.ServiceCIDRs = cluster.ServiceCIDRs
	}
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

// Apply applies objects in their order.
func Apply(ctx context.Context, cluster *lab.Cluster, objects ...*unstructured.Unstructured) error {
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

// InstallAgent applies the agent's manifests to a member and returns the credentials that its pods would have there: an
// agent that a test or the demo runs as a process has no more rights than a released one.
func InstallAgent(ctx context.Context, cluster *lab.Cluster) (*rest.Config, error) {
	objects, err := manifests.Render("agent")
	if err != nil {
		return nil, err
	}
	if err := Apply(ctx, cluster, objects...); err != nil {
		return nil, fmt.Errorf("install the agent in %s: %w", cluster.Name, err)
	}
	return cluster.ServiceAccountConfig(ctx, manifests.AgentNamespace, manifests.AgentServiceAccount)
}

// AgentArgs returns the arguments with which the agent of a member runs as a process, with the rights of its pod. It serves no probes, and
// needs no lease: a busy machine on which a lease is not renewed in time would end the agent.
func AgentArgs(ctx context.Context, hub, cluster *lab.Cluster, metrics string) ([]string, error) {
	local, err := cluster.ServiceAccountKubeconfig(ctx, manifests.AgentNamespace, manifests.AgentServiceAccount)
	if err != nil {
		return nil, err
	}
	remote, err := hub.ServiceAccountKubeconfig(ctx, clusterset.ClusterID(cluster.Name).HubNamespace(), manifests.MemberServiceAccount)
	return []string{
		"--kubeconfig=" + local, "--hub-kubeconfig=" + remote, "--namespace=" + manifests.AgentNamespace, "--leader-elect=false",
		"--service-cidrs=" + lab.Joined(cluster.ServiceCIDRs), "--metrics-bind-address=" + metrics, "--health-probe-bind-address=0",
	}, err
}

// InstallGateway applies the manifests of the gateways to a member that has those of the agent.
func InstallGateway(ctx context.Context, cluster *lab.Cluster) error {
	objects, err := manifests.Render("gateway")
	if err != nil {
		return err
	}
	return Apply(ctx, cluster, objects...)
}

// InstallAutoExport gives the agent of a member the rights for automatic export.
func InstallAutoExport(ctx context.Context, cluster *lab.Cluster) error {
	objects, err := manifests.AutoExportRights()
	if err != nil {
		return err
	}
	return Apply(ctx, cluster, objects...)
}

// Scheme returns a scheme with every kind that the hub and the members have: those of the agent and of the hub.
func Scheme() (*runtime.Scheme, error) {
	scheme, err := agent.Scheme()
	return scheme, errors.Join(err, hubv1alpha1.AddToScheme(scheme))
}

// Client returns a client with the rights of a cluster's administrator and the kinds of Scheme.
func Client(t testing.TB, cluster *lab.Cluster) client.WithWatch {
	t.Helper()
	scheme, err := Scheme()
	lab.Must(t, err)
	c, err := cluster.Client(scheme)
	lab.Must(t, err)
	return c
}
