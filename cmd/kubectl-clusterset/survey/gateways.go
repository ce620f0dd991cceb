// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/manifests"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Gateways are the gateways of a member. The zero value has none.
type Gateways struct {
	// Exist is set if the member has the Service of the gateways.
	Exist bool
	// Ready are the addresses of the gateways that take connections, and All counts the addresses of all.
	Ready []string
	All   int
	// Statuses are what the gateways report, by the names of their pods.
	Statuses []gatewayv1alpha1.GatewayStatus
	// Remote are the gateways of other members that they know.
	Remote map[clusterset.ClusterID]gatewayv1alpha1.RemoteGateway
}

// ReadGateways reads the gateways of a member.
func (m *Member) ReadGateways(ctx context.Context) (Gateways, error) {
	in := client.InNamespace(manifests.AgentNamespace)
	service := &corev1.Service{}
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService}, service); err != nil {
		if apiserver.IsNotFound(err) {
			return Gateways{}, nil
		}
		return Gateways{}, fmt.Errorf("get Service %s: %w", clusterset.GatewayService, err)
	}
	result := Gateways{Exist: true, Remote: map[clusterset.ClusterID]gatewayv1alpha1.RemoteGateway{}}
	endpoints := &discoveryv1.EndpointSliceList{}
	if err := m.Client.List(ctx, endpoints, in, client.MatchingLabels{discoveryv1.LabelServiceName: clusterset.GatewayService}); err != nil {
		return Gateways{}, fmt.Errorf("list EndpointSlices: %w", err)
	}
	for _, slice := range endpoints.Items {
		for _, endpoint := range slice.Endpoints {
			result.All++
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				result.Ready = append(result.Ready, endpoint.Addresses...)
			}
		}
	}
	statuses, remote := &gatewayv1alpha1.GatewayStatusList{}, &gatewayv1alpha1.RemoteGatewayList{}
	for _, list := range []client.ObjectList{statuses, remote} {
		if err := m.Client.List(ctx, list, in); err != nil && !apiserver.IsNotFound(err) {
			return Gateways{}, fmt.Errorf("list %s: %w", clusterset.KindOf(list), err)
		}
	}
	result.Statuses = statuses.Items
	for _, r := range remote.Items {
		result.Remote[clusterset.ClusterID(r.Name)] = r
	}
	return result, nil
}

// Reach returns which other clusters the gateways reach, as they report it.
func (g Gateways) Reach() *reach.Reach {
	result := &reach.Reach{}
	for i := range g.Statuses {
		result.Report(g.Statuses[i].Name, &g.Statuses[i].Report)
	}
	return result
}

// Reports returns what the ready gateways report about a cluster: how many reach it, how many do not, and the message of one of these.
func (g Gateways) Reports(id clusterset.ClusterID) (reached, unreached int, message string) {
	for _, status := range g.Statuses {
		if !hasAny(g.Ready, status.Report.Addresses) {
			continue // a pod that is gone, or not ready
		}
		for _, cluster := range status.Report.Clusters {
			switch {
			case cluster.Cluster != string(id):
			case cluster.Reachable:
				reached++
			default:
				unreached++
				message = fmt.Sprintf("%s: %s", status.Name, cluster.Message)
			}
		}
	}
	return reached, unreached, message
}

// GatewayReach is what the gateways of a member report of another cluster.
type GatewayReach struct {
	// Installed is set if the member has gateways, and Known if these know the gateways of the other cluster.
	Installed, Known bool
	// Ready counts the addresses of the ready gateways, Reached and Unreached the ready gateways that reach the other cluster, and those
	// that do not.
	Ready, Reached, Unreached int
	// Message is what one of those that do not reach it reports.
	Message string
}

// ReachThroughGateways returns what the gateways of the member report of another cluster.
func (m *Member) ReachThroughGateways(ctx context.Context, to clusterset.ClusterID) (GatewayReach, error) {
	g, err := m.ReadGateways(ctx)
	if err != nil {
		return GatewayReach{}, err
	}
	return g.reachOf(to), nil
}

func (g Gateways) reachOf(to clusterset.ClusterID) GatewayReach {
	result := GatewayReach{Installed: g.Exist, Ready: len(g.Ready)}
	_, result.Known = g.Remote[to]
	result.Reached, result.Unreached, result.Message = g.Reports(to)
	return result
}

// reachOfAll returns what the gateways report of the other members; nil if there are no gateways.
func (g Gateways) reachOfAll(others []clusterset.ClusterID) map[clusterset.ClusterID]GatewayReach {
	if !g.Exist {
		return nil
	}
	result := map[clusterset.ClusterID]GatewayReach{}
	for _, id := range others {
		result[id] = g.reachOf(id)
	}
	return result
}

func hasAny(all, some []string) bool {
	return slices.ContainsFunc(some, func(s string) bool { return slices.Contains(all, s) })
}
